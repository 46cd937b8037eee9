//! `wait` for the end of an item, and the native part of waits in asyncio.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;

use super::{Arg, Queue};
use crate::python::convert::{integer, patience};
use crate::python::interpreter_exit::{self, Native};
use crate::python::item::Item;
use crate::python::waits;
use crate::python::watcher::{Watcher, as_seconds};

#[pymethods]
impl Queue {
    #[doc = words!(Queue.wait)]
    #[pyo3(signature = (id, timeout = None), text_signature = "($self, id, timeout=None)")]
    fn wait(&self, py: Python<'_>, id: &Bound<'_, PyAny>, timeout: Arg) -> PyResult<Item> {
        let id = integer("id", id)?;
        let limit = timeout.map_or(Ok(Duration::MAX), |timeout| patience("timeout", timeout))?;
        match waits::for_ending(py, &self.core, id, limit)? {
            Some(item) => self.shown(py, item),
            None => {
                let text = format!("item {id} has not ended within {} s", limit.as_secs_f64());
                Err(PyTimeoutError::new_err(text))
            }
        }
    }

    #[doc = words!(Queue._ended)]
    #[pyo3(signature = (id, /))]
    fn _ended(&self, py: Python<'_>, id: i64) -> PyResult<Option<Item>> {
        interpreter_exit::check(py)?;
        py.native(|| self.core.ended_by_now(id))?.map(|item| self.shown(py, item)).transpose()
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

    #[staticmethod]
    #[pyo3(signature = (id, /))]
    fn _id(id: &Bound<'_, PyAny>) -> PyResult<i64> {
        integer("id", id)
    }
}
