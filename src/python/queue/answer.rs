//! `answer`: an end without a claim.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::{Arg, Queue, finish, target};
use crate::model::Answer;
use crate::python::ending::failure_text;
use crate::python::enlist::Enlistment;
use crate::python::interpreter_exit::Native;
use crate::python::new_item::reserved_ms;

#[pymethods]
impl Queue {
    #[doc = words!(Queue.answer)]
    #[pyo3(signature = (id = None, result = None, *, error = None, key = None, key_ttl = None, connection = None))]
    #[allow(clippy::too_many_arguments)]
    fn answer(
        slf: &Bound<'_, Self>,
        id: Arg,
        result: Arg,
        error: Arg,
        key: Arg,
        key_ttl: Arg,
        connection: Arg,
    ) -> PyResult<bool> {
        let (py, queue) = (slf.py(), slf.get());
        let item = target::one("answer", id, key)?;
        if result.is_some() && error.is_some() {
            return Err(PyTypeError::new_err("answer takes a result or an error, not both"));
        }
        if key_ttl.is_some() && key.is_none() {
            return Err(PyTypeError::new_err(
                "key_ttl keeps an answer for the item that will have a key; give the key",
            ));
        }
        let key_ttl = key_ttl.map(reserved_ms).transpose()?;
        let answer = match error {
            Some(error) => Answer::Failed(failure_text(error)?),
            None => Answer::Done(finish::stored_result(slf, result)?),
        };
        if let Some(connection) = connection {
            let steps = Enlistment::new(py.native(|| queue.core.enlist_answer(&item, answer, key_ttl))?);
            return slf.call_method1("_run_steps", (connection, steps))?.extract();
        }
        Ok(py.native(|| queue.core.answer(&item, answer, key_ttl))?)
    }
}
