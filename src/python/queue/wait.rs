//! `wait` for the end of an item, and the native part of waits in asyncio.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;

use super::{Arg, Queue};
use crate::model;
use crate::python::convert::{integer, patience};
use crate::python::interpreter_exit::{self, Native};
use crate::python::item::Item;
use crate::python::waits;
use crate::python::watcher::{Watcher, as_seconds};
use crate::queue::Awaited;

#[pymethods]
impl Queue {
    #[pyo3(signature = (id, timeout = None), text_signature = "($self, id, timeout=None)")]
    fn wait(&self, py: Python<'_>, id: &Bound<'_, PyAny>, timeout: Arg) -> PyResult<Option<Item>> {
        let id = integer("id", id)?;
        let limit = timeout.map_or(Ok(Duration::MAX), |timeout| patience("timeout", timeout))?;
        let seen = py.native(|| self.core.seen_before_wait(id))?;
        match waits::for_ending(py, &self.core, id, limit)? {
            Some(end) => self.ended(py, end, seen),
            None => {
                let text = format!("item {id} has not ended within {} s", limit.as_secs_f64());
                Err(PyTimeoutError::new_err(text))
            }
        }
    }

    #[getter]
    fn _removes_done(&self) -> bool {
        self.core.settings().settings.removes_done()
    }

    #[pyo3(signature = (id, /))]
    fn _seen_before_wait(&self, py: Python<'_>, id: i64) -> PyResult<Option<Item>> {
        let seen = py.native(|| self.core.seen_before_wait(id))?;
        seen.map(|item| self.shown(py, item.removed_as_done())).transpose()
    }

    #[pyo3(signature = (id, /))]
    fn _ended(&self, py: Python<'_>, id: i64) -> PyResult<Option<(bool, Option<Item>)>> {
        interpreter_exit::check(py)?;
        let end = py.native(|| self.core.ended_by_now(id))?;
        end.map(|end| Ok((true, self.ended(py, end, None)?))).transpose()
    }

    fn _watcher(&self, py: Python<'_>) -> PyResult<Watcher> {
        Ok(Watcher(Arc::new(py.native(|| self.core.watcher())?)))
    }

    #[getter]
    fn _database(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.native(|| self.core.database_number())?)
    }

    #[staticmethod]
    #[pyo3(signature = (what, value, /))]
    fn _seconds(what: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(as_seconds(patience(what, value)?))
    }

    #[staticmethod]
    #[pyo3(signature = (id, /))]
    fn _id(id: &Bound<'_, PyAny>) -> PyResult<i64> {
        integer("id", id)
    }
}

impl Queue {
    /// An item that was removed as it ended is shown as it was seen before.
    fn ended(&self, py: Python<'_>, end: Awaited, seen: Option<model::Item>) -> PyResult<Option<Item>> {
        let item = match end {
            Awaited::Ended(item) => Some(*item),
            Awaited::Gone => seen.map(model::Item::removed_as_done),
        };
        item.map(|item| self.shown(py, item)).transpose()
    }
}
