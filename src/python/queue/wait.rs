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
use crate::queue::{self, Awaited};

#[pymethods]
impl Queue {
    #[doc = words!(Queue.wait)]
    #[pyo3(signature = (id = None, timeout = None, *, key = None))]
    fn wait(&self, py: Python<'_>, id: Arg, timeout: Arg, key: Arg) -> PyResult<Option<Item>> {
        let item = target::one("wait", id, key)?;
        let limit = timeout.map_or(Ok(Duration::MAX), |timeout| patience("timeout", timeout))?;
        let id = py.native(|| self.core.find(&item))?;
        let _awaited = py.native(|| self.core.await_end())?;
        match waits::for_ending(py, &self.core, id, limit)? {
            Some(end) => self.ended(py, end),
            None => {
                let text = format!("item {id} has not ended within {} s", limit.as_secs_f64());
                Err(PyTimeoutError::new_err(text))
            }
        }
    }

    #[doc = words!(Queue._await_end)]
    fn _await_end(&self, py: Python<'_>) -> PyResult<AwaitedEnd> {
        Ok(AwaitedEnd(py.native(|| self.core.await_end())?))
    }

    #[doc = words!(Queue._ended)]
    #[pyo3(signature = (id, /))]
    fn _ended(&self, py: Python<'_>, id: i64) -> PyResult<Option<(bool, Option<Item>)>> {
        interpreter_exit::check(py)?;
        let end = py.native(|| self.core.ended_by_now(id))?;
        end.map(|end| Ok((true, self.ended(py, end)?))).transpose()
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

    #[doc = words!(Queue._seconds)]
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
    /// `None` for an item that was removed.
    fn ended(&self, py: Python<'_>, end: Awaited) -> PyResult<Option<Item>> {
        match end {
            Awaited::Ended(item) => self.shown(py, *item).map(Some),
            Awaited::Gone => Ok(None),
        }
    }
}

#[doc = words!(AwaitedEnd)]
#[pyclass(frozen, module = "membox_queue._native")]
pub struct AwaitedEnd(#[allow(dead_code)] queue::AwaitedEnd);
