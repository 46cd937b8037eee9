//! What an operator does with items (retry, replay, reschedule, cancel, delete), and pausing the queue.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::target::{self, Which};
use super::{Arg, Queue};
use crate::model::Status;
use crate::python::convert::{count, duration_ms};
use crate::python::interpreter_exit::Native;
use crate::python::new_item::when;
use crate::queue::Targets;

#[pymethods]
impl Queue {
    #[doc = words!(Queue.retry)]
    #[pyo3(signature = (id = None, *, key = None, status = None, delay = None, tree = false),
           text_signature = "($self, id=None, *, key=None, status=None, delay=0.0, tree=False)")]
    fn retry<'py>(
        &self,
        py: Python<'py>,
        id: Arg,
        key: Arg,
        status: Arg,
        delay: Arg,
        tree: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let delay = delay_ms(delay)?;
        match target::one_or_several("retry", id, key, status)? {
            Which::One(item) if tree => py.native(|| self.core.retry_tree(&item, delay))?.into_bound_py_any(py),
            Which::Several(_) if tree => {
                Err(PyTypeError::new_err("retry takes one item with tree=True: what it waits for comes back with it"))
            }
            Which::One(item) => py.native(|| self.core.retry(&item, delay))?.into_bound_py_any(py),
            Which::Several(items) => py.native(|| self.core.retry_many(&items, delay))?.into_bound_py_any(py),
        }
    }

    #[doc = words!(Queue.retry_failed)]
    #[pyo3(signature = (max_retries = None, *, delay = None),
           text_signature = "($self, max_retries=None, *, delay=0.0)")]
    fn retry_failed(&self, py: Python<'_>, max_retries: Arg, delay: Arg) -> PyResult<usize> {
        let max_retries = max_retries.map(|max| count("max_retries", max)).transpose()?;
        let delay = delay_ms(delay)?;
        Ok(py.native(|| self.core.retry_failed(max_retries, delay))?)
    }

    #[doc = words!(Queue.retry_all)]
    #[pyo3(signature = (*, delay = None), text_signature = "($self, *, delay=0.0)")]
    fn retry_all(&self, py: Python<'_>, delay: Arg) -> PyResult<usize> {
        let delay = delay_ms(delay)?;
        Ok(py.native(|| self.core.retry_many(&Targets::Status(Status::Failed), delay))?)
    }

    #[doc = words!(Queue.replay)]
    #[pyo3(signature = (id = None, *, key = None, status = None, delay = None),
           text_signature = "($self, id=None, *, key=None, status=None, delay=0.0)")]
    fn replay<'py>(&self, py: Python<'py>, id: Arg, key: Arg, status: Arg, delay: Arg) -> PyResult<Bound<'py, PyAny>> {
        let delay = delay_ms(delay)?;
        match target::one_or_several("replay", id, key, status)? {
            Which::One(item) => py.native(|| self.core.replay(&item, delay))?.into_bound_py_any(py),
            Which::Several(items) => py.native(|| self.core.replay_many(&items, delay))?.into_bound_py_any(py),
        }
    }

    #[doc = words!(Queue.run_now)]
    #[pyo3(signature = (id = None, *, key = None))]
    fn run_now(&self, py: Python<'_>, id: Arg, key: Arg) -> PyResult<bool> {
        let item = target::one("run_now", id, key)?;
        Ok(py.native(|| self.core.run_now(&item))?)
    }

    #[doc = words!(Queue.run_later)]
    #[pyo3(signature = (id = None, delay = None, *, key = None, run_at = None))]
    fn run_later(&self, py: Python<'_>, id: Arg, delay: Arg, key: Arg, run_at: Arg) -> PyResult<bool> {
        if delay.is_none() && run_at.is_none() {
            return Err(PyTypeError::new_err("run_later takes a delay or run_at; for now there is run_now"));
        }
        let (item, when) = (target::one("run_later", id, key)?, when(delay, run_at)?);
        Ok(py.native(|| self.core.run_later(&item, when))?)
    }

    #[doc = words!(Queue.cancel)]
    #[pyo3(signature = (id = None, *, key = None, tree = false))]
    fn cancel(&self, py: Python<'_>, id: Arg, key: Arg, tree: bool) -> PyResult<bool> {
        let item = target::one("cancel", id, key)?;
        Ok(py.native(|| if tree { self.core.cancel_tree(&item) } else { self.core.cancel(&item) })?)
    }

    #[doc = words!(Queue.delete)]
    #[pyo3(signature = (id = None, *, key = None, tree = false))]
    fn delete(&self, py: Python<'_>, id: Arg, key: Arg, tree: bool) -> PyResult<bool> {
        let item = target::one("delete", id, key)?;
        Ok(py.native(|| if tree { self.core.delete_tree(&item) } else { self.core.delete(&item) })?)
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

fn delay_ms(delay: Arg) -> PyResult<i64> {
    delay.map_or(Ok(0), |delay| duration_ms("delay", delay))
}
