//! The verbs with which a worker ends, releases or extends its claim.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::{Arg, Queue, on_connection, within_limit};
use crate::python::convert::{duration_ms, json};
use crate::python::ending;
use crate::python::enlist::Enlistment;
use crate::python::interpreter_exit::Native;
use crate::python::item::{Item, claimed};
use crate::python::next_stage::Next;
use crate::queue::ClaimedItem;
use crate::rules::outcome::Ending;

#[pymethods]
impl Queue {
    #[doc = words!(Queue.mark_done)]
    #[pyo3(signature = (item, result = None, *, connection = None))]
    fn mark_done(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>, result: Arg, connection: Arg) -> PyResult<bool> {
        let (py, queue) = (slf.py(), slf.get());
        let held = claimed(item)?;
        if let Some(Ok(next)) = result.map(|result| result.cast::<Next>()) {
            let shape = queue.shape.get(py).map(|shape| shape.bind(py));
            let next = Box::new(next.get().stage(py, &queue.core, shape)?);
            return finish(slf, item, held, Ending::Next { next }, connection);
        }
        let stored = stored_result(slf, result)?;
        finish(slf, item, held, Ending::Done { result: stored }, connection)
    }

    #[doc = words!(Queue.mark_done_many)]
    #[pyo3(signature = (items))]
    fn mark_done_many(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<usize> {
        let items = items.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let held = items.iter().map(|item| Ok(&**claimed(item)?)).collect::<PyResult<Vec<&ClaimedItem>>>()?;
        Ok(py.native(|| self.core.mark_done_many(&held))?)
    }

    #[doc = words!(Queue.mark_failed)]
    #[pyo3(signature = (item, error, retry_in = None, give_up = false, *, connection = None))]
    fn mark_failed(
        slf: &Bound<'_, Self>,
        item: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        retry_in: Arg,
        give_up: bool,
        connection: Arg,
    ) -> PyResult<bool> {
        let held = claimed(item)?;
        let retry_in = retry_in.map(|delay| duration_ms("retry_in", delay)).transpose()?;
        let ending = ending::of_failure(error, retry_in, give_up)?;
        finish(slf, item, held, ending, connection)
    }

    #[doc = words!(Queue.release)]
    #[pyo3(signature = (item, delay = None, *, connection = None),
           text_signature = "($self, item, delay=0.0, *, connection=None)")]
    fn release(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>, delay: Arg, connection: Arg) -> PyResult<bool> {
        let held = claimed(item)?;
        let delay = delay.map_or(Ok(0), |delay| duration_ms("delay", delay))?;
        finish(slf, item, held, Ending::Released { delay, reason: None }, connection)
    }

    #[doc = words!(Queue._release_abandoned)]
    #[pyo3(signature = (item, /))]
    fn _release_abandoned(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let held = claimed(item)?;
        Ok(py.native(|| self.core.release_abandoned(held))?)
    }

    #[doc = words!(Queue._release_many)]
    #[pyo3(signature = (items, /))]
    fn _release_many(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<usize> {
        let items = items.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let held = items.iter().map(|item| Ok(&**claimed(item)?)).collect::<PyResult<Vec<&ClaimedItem>>>()?;
        Ok(py.native(|| self.core.release_many(&held))?)
    }

    #[doc = words!(Queue._fail_batch)]
    #[pyo3(signature = (items, exception, /))]
    fn _fail_batch(
        &self,
        py: Python<'_>,
        items: Vec<Bound<'_, PyAny>>,
        exception: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let held = items.iter().map(|item| Ok(&**claimed(item)?)).collect::<PyResult<Vec<&ClaimedItem>>>()?;
        let ending = ending::of_failure(exception, None, false)?;
        Ok(py.native(|| self.core.finish_batch(&held, 0, ending))?)
    }

    #[doc = words!(Queue.extend)]
    #[pyo3(signature = (item, seconds))]
    fn extend(&self, py: Python<'_>, item: &Bound<'_, PyAny>, seconds: &Bound<'_, PyAny>) -> PyResult<bool> {
        let held = claimed(item)?;
        let lease_ms = duration_ms("the lease", seconds)?;
        if lease_ms == 0 {
            return Err(PyValueError::new_err(
                "the lease must be longer than a millisecond; release() gives an item back",
            ));
        }
        Ok(py.native(|| self.core.extend(held, lease_ms))?)
    }
}

/// Converts a result to JSON text; typed content knows how to convert some values that are not JSON by themselves.
pub fn stored_result(slf: &Bound<'_, Queue>, result: Arg) -> PyResult<Option<String>> {
    let (py, queue) = (slf.py(), slf.get());
    let read = |result: &Bound<'_, PyAny>| within_limit(py, &[&queue.core], |limit| json("the result", result, limit));
    match result.map(read).transpose() {
        // A value that is not JSON by itself may be one that typed content knows.
        Err(error) if is_refused(py, &error) && slf.hasattr("_storable")? => {
            let converted = slf.call_method1("_storable", (result,))?;
            if result.is_some_and(|result| result.is(&converted)) {
                return Err(error);
            }
            read(&converted).map(Some)
        }
        stored => stored,
    }
}

/// Ends a claim: returns whether that took effect. On the caller's own connection a lost claim raises.
fn finish(
    slf: &Bound<'_, Queue>,
    item: &Bound<'_, PyAny>,
    held: &Arc<ClaimedItem>,
    ending: Ending,
    connection: Arg,
) -> PyResult<bool> {
    let (py, queue) = (slf.py(), slf.get());
    let Some(connection) = connection else {
        return Ok(py.native(|| queue.core.finish(held, ending))?.took_effect());
    };
    let item = item.cast::<Item>()?;
    let begun = py.native(|| queue.core.enlist_finish(held, ending));
    let begun = begun.map_err(|error| item.get().about_this(py, error.into()))?;
    on_connection(slf, connection, Enlistment::about(begun, item.clone().unbind()))?.extract()
}

/// Whether a value is not JSON, rather than too large.
fn is_refused(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyValueError>(py)
}
