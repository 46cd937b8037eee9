//! `wait` for the end of an item, and the native part of waits in asyncio.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;

use super::{Arg, Queue, target};
use crate::python::convert::patience;
use crate::python::interpreter_exit::{self, Native};
use crate::python::item::Item;
use crate::python::waits;
use crate::python::watcher::{Watcher, as_seconds};

#[pymethods]
impl Queue {
    #[pyo3(signature = (id = None, timeout = None, *, key = None))]
    fn wait(&self, py: Python<'_>, id: Arg, timeout: Arg, key: Arg) -> PyResult<Item> {
        let item = target::one("wait", id, key)?;
        let limit = timeout.map_or(Ok(Duration::MAX), |timeout| patience("timeout", timeout))?;
        let id = py.native(|| self.core.find(&item))?;
        match waits::for_ending(py, &self.core, id, limit)? {
            Some(item) => self.shown(py, item),
            None => {
                let text = format!("item {id} has not ended within {} s", limit.as_secs_f64());
                Err(PyTimeoutError::new_err(text))
            }
        }
    }

    #[pyo3(signature = (id, /))]
    fn _ended(&self, py: Python<'_>, id: i64) -> PyResult<Option<Item>> {
        interpreter_exit::check(py)?;
        py.native(|| self.core.ended_by_now(id))?.map(|item| self.shown(py, item)).transpose()
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

    #[pyo3(signature = (id, key, /))]
    fn _find(&self, py: Python<'_>, id: Arg, key: Arg) -> PyResult<i64> {
        let item = target::one("wait", id, key)?;
        Ok(py.native(|| self.core.find(&item))?)
    }
}
