//! What an operator does with items (retry, replay, reschedule, cancel, delete), and pausing the queue.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::target::{self, Which};
use super::{Arg, Queue, on_connection};
use crate::model::Status;
use crate::python::convert::{count, duration_ms};
use crate::python::enlist::Enlistment;
use crate::python::interpreter_exit::Native;
use crate::python::new_item::when;
use crate::queue::{self, Repair, Target, Targets};

#[pymethods]
impl Queue {
    #[doc = words!(Queue.retry)]
    #[pyo3(signature = (id = None, *, key = None, status = None, delay = None, tree = false, connection = None),
           text_signature = "($self, id=None, *, key=None, status=None, delay=0.0, tree=False, connection=None)")]
    #[allow(clippy::too_many_arguments)] // the arguments of the verb
    fn retry<'py>(
        slf: &Bound<'py, Self>,
        id: Arg,
        key: Arg,
        status: Arg,
        delay: Arg,
        tree: bool,
        connection: Arg<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, core, delay) = (slf.py(), &slf.get().core, delay_ms(delay)?);
        let which = target::one_or_several("retry", id, key, status)?;
        if tree && matches!(which, Which::Several(_)) {
            return Err(PyTypeError::new_err(
                "retry takes one item with tree=True: what it waits for comes back with it",
            ));
        }
        check_tree(tree, connection)?;
        let Some(connection) = connection else {
            return match which {
                Which::One(item) if tree => py.native(|| core.retry_tree(&item, delay))?.into_bound_py_any(py),
                Which::One(item) => py.native(|| core.retry(&item, delay))?.into_bound_py_any(py),
                Which::Several(items) => py.native(|| core.retry_many(&items, delay))?.into_bound_py_any(py),
            };
        };
        let steps = py.native(|| match &which {
            Which::One(item) => core.enlist_repair(item, Repair::Retry(delay)),
            Which::Several(items) => core.enlist_retry_many(items, delay),
        })?;
        on_connection(slf, connection, Enlistment::new(steps))
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
    #[pyo3(signature = (id = None, *, key = None, connection = None))]
    fn run_now(slf: &Bound<'_, Self>, id: Arg, key: Arg, connection: Arg) -> PyResult<bool> {
        let item = target::one("run_now", id, key)?;
        one(slf, &item, Repair::RunNow, connection, |core| core.run_now(&item))
    }

    #[doc = words!(Queue.run_later)]
    #[pyo3(signature = (id = None, delay = None, *, key = None, run_at = None, connection = None))]
    fn run_later(slf: &Bound<'_, Self>, id: Arg, delay: Arg, key: Arg, run_at: Arg, connection: Arg) -> PyResult<bool> {
        if delay.is_none() && run_at.is_none() {
            return Err(PyTypeError::new_err("run_later takes a delay or run_at; for now there is run_now"));
        }
        let (item, when) = (target::one("run_later", id, key)?, when(delay, run_at)?);
        one(slf, &item, Repair::RunLater(when), connection, |core| core.run_later(&item, when))
    }

    #[doc = words!(Queue.cancel)]
    #[pyo3(signature = (id = None, *, key = None, tree = false, connection = None))]
    fn cancel(slf: &Bound<'_, Self>, id: Arg, key: Arg, tree: bool, connection: Arg) -> PyResult<bool> {
        let item = target::one("cancel", id, key)?;
        check_tree(tree, connection)?;
        one(
            slf,
            &item,
            Repair::Cancel,
            connection,
            |core| {
                if tree { core.cancel_tree(&item) } else { core.cancel(&item) }
            },
        )
    }

    #[doc = words!(Queue.delete)]
    #[pyo3(signature = (id = None, *, key = None, tree = false, connection = None))]
    fn delete(slf: &Bound<'_, Self>, id: Arg, key: Arg, tree: bool, connection: Arg) -> PyResult<bool> {
        let item = target::one("delete", id, key)?;
        check_tree(tree, connection)?;
        one(
            slf,
            &item,
            Repair::Delete,
            connection,
            |core| {
                if tree { core.delete_tree(&item) } else { core.delete(&item) }
            },
        )
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

/// Changes one item, by `change` or on the caller's own connection. Returns whether there was one to change.
fn one(
    slf: &Bound<'_, Queue>,
    item: &Target,
    repair: Repair,
    connection: Arg,
    change: impl FnOnce(&queue::Queue) -> crate::Result<bool> + Send,
) -> PyResult<bool> {
    let (py, core) = (slf.py(), &slf.get().core);
    let Some(connection) = connection else { return Ok(py.native(|| change(core))?) };
    let steps = py.native(|| core.enlist_repair(item, repair))?;
    on_connection(slf, connection, Enlistment::new(steps))?.extract()
}

fn delay_ms(delay: Arg) -> PyResult<i64> {
    delay.map_or(Ok(0), |delay| duration_ms("delay", delay))
}

/// A whole tree is changed in portions, which the caller's transaction cannot be.
fn check_tree(tree: bool, connection: Arg) -> PyResult<()> {
    match connection {
        Some(_) if tree => Err(PyValueError::new_err("tree=True changes many items and takes no connection")),
        _ => Ok(()),
    }
}
