//! What an operator does with items (retry, replay, reschedule, cancel, delete), and pausing the queue.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::{Arg, Queue};
use crate::python::convert::{count, duration_ms, integer};
use crate::python::interpreter_exit::Native;
use crate::python::new_item::when;

#[pymethods]
impl Queue {
    #[doc = words!(Queue.retry)]
    #[pyo3(signature = (id))]
    fn retry(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = integer("id", id)?;
        Ok(py.native(|| self.core.retry(id))?)
    }

    #[doc = words!(Queue.retry_failed)]
    #[pyo3(signature = (max_retries = None, *, delay = None),
           text_signature = "($self, max_retries=None, *, delay=0.0)")]
    fn retry_failed(&self, py: Python<'_>, max_retries: Arg, delay: Arg) -> PyResult<usize> {
        let max_retries = max_retries.map(|max| count("max_retries", max)).transpose()?;
        let delay = delay.map_or(Ok(0), |delay| duration_ms("delay", delay))?;
        Ok(py.native(|| self.core.retry_failed(max_retries, delay))?)
    }

    #[doc = words!(Queue.retry_all)]
    #[pyo3(signature = (*, delay = None), text_signature = "($self, *, delay=0.0)")]
    fn retry_all(&self, py: Python<'_>, delay: Arg) -> PyResult<usize> {
        let delay = delay.map_or(Ok(0), |delay| duration_ms("delay", delay))?;
        Ok(py.native(|| self.core.retry_all(delay))?)
    }

    #[doc = words!(Queue.replay)]
    #[pyo3(signature = (id))]
    fn replay(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
        let id = integer("id", id)?;
        Ok(py.native(|| self.core.replay(id))?)
    }

    #[doc = words!(Queue.run_now)]
    #[pyo3(signature = (id))]
    fn run_now(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = integer("id", id)?;
        Ok(py.native(|| self.core.run_now(id))?)
    }

    #[doc = words!(Queue.run_later)]
    #[pyo3(signature = (id, delay = None, *, run_at = None))]
    fn run_later(&self, py: Python<'_>, id: &Bound<'_, PyAny>, delay: Arg, run_at: Arg) -> PyResult<bool> {
        if delay.is_none() && run_at.is_none() {
            return Err(PyTypeError::new_err("run_later takes a delay or run_at; for now there is run_now"));
        }
        let (id, when) = (integer("id", id)?, when(delay, run_at)?);
        Ok(py.native(|| self.core.run_later(id, when))?)
    }

    #[doc = words!(Queue.cancel)]
    #[pyo3(signature = (id))]
    fn cancel(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = integer("id", id)?;
        Ok(py.native(|| self.core.cancel(id))?)
    }

    #[doc = words!(Queue.delete)]
    #[pyo3(signature = (id))]
    fn delete(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = integer("id", id)?;
        Ok(py.native(|| self.core.delete(id))?)
    }

    #[doc = words!(Queue.pause)]
    fn pause(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.pause())?)
    }

    #[doc = words!(Queue.resume)]
    fn resume(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.resume())?)
    }
}
