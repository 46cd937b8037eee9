//! `wait` for the end of an item, and the native part of waits in asyncio.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;

use super::{Arg, Queue, target};
use crate::model;
use crate::python::convert::patience;
use crate::python::interpreter_exit::{self, Native};
use crate::python::item::Item;
use crate::python::waits;
use crate::python::watcher::{Watcher, as_seconds};
use crate::queue::Awaited;

#[pymethods]
impl Queue {
    #[doc = words!(Queue.wait)]
    #[pyo3(signature = (id = None, timeout = None, *, key = None))]
    fn wait(&self, py: Python<'_>, id: Arg, timeout: Arg, key: Arg) -> PyResult<Option<Item>> {
        let item = target::one("wait", id, key)?;
        let limit = timeout.map_or(Ok(Duration::MAX), |timeout| patience("timeout", timeout))?;
        let id = py.native(|| self.core.find(&item))?;
        let seen = py.native(|| self.core.seen_before_wait(id))?;
        match waits::for_ending(py, &self.core, id, limit)? {
            Some(end) => self.ended(py, end, seen),
            None => {
                let text = format!("item {id} has not ended within {} s", limit.as_secs_f64());
                Err(PyTimeoutError::new_err(text))
            }
        }
    }

    #[doc = words!(Queue._removes_done)]
    #[getter]
    fn _removes_done(&self) -> bool {
        self.core.settings().settings.removes_done()
    }

    #[doc = words!(Queue._seen_before_wait)]
    #[pyo3(signature = (id, /))]
    fn _seen_before_wait(&self, py: Python<'_>, id: i64) -> PyResult<Option<Item>> {
        let seen = py.native(|| self.core.seen_before_wait(id))?;
        seen.map(|item| self.shown(py, item.removed_as_done())).transpose()
    }

    #[doc = words!(Queue._ended)]
    #[pyo3(signature = (id, /))]
    fn _ended(&self, py: Python<'_>, id: i64) -> PyResult<Option<(bool, Option<Item>)>> {
        interpreter_exit::check(py)?;
        let end = py.native(|| self.core.ended_by_now(id))?;
        end.map(|end| Ok((true, self.ended(py, end, None)?))).transpose()
    }

    #[doc = words!(Queue._watcher)]
    fn _watcher(&self, py: Python<'_>) -> PyResult<Watcher> {
        Ok(Watcher(Arc::new(py.native(|| self.core.watcher())?)))
    }

    #[doc = words!(Queue._database)]
    #[getter]
    fn _database(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.native(|| self.core.database_number())?)
    }

    #[staticmethod]
    #[pyo3(signature = (what, value, /))]
    fn _seconds(what: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(as_seconds(patience(what, value)?))
    }

    #[doc = words!(Queue._find)]
    #[pyo3(signature = (id, key, /))]
    fn _find(&self, py: Python<'_>, id: Arg, key: Arg) -> PyResult<i64> {
        let item = target::one("wait", id, key)?;
        Ok(py.native(|| self.core.find(&item))?)
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
