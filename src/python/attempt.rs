//! `Attempt`: how one claim of an item ended.

use pyo3::prelude::*;

use super::convert::{content_to_python, datetime};
use crate::model;
use crate::model::parse_ms;

#[doc = words!(Attempt)]
#[pyclass(frozen, module = "membox_queue")]
pub struct Attempt(pub model::Attempt);

#[pymethods]
impl Attempt {
    #[doc = words!(Attempt.attempt)]
    #[getter]
    fn attempt(&self) -> i64 {
        self.0.attempt
    }

    #[doc = words!(Attempt.ending)]
    #[getter]
    fn ending(&self) -> &str {
        &self.0.ending
    }

    #[doc = words!(Attempt.worker)]
    #[getter]
    fn worker(&self) -> Option<&str> {
        self.0.worker.as_deref()
    }

    #[doc = words!(Attempt.started_at)]
    #[getter]
    fn started_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.0.started_at.as_deref().and_then(parse_ms))
    }

    #[doc = words!(Attempt.ended_at)]
    #[getter]
    fn ended_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.0.ended_at.as_deref().and_then(parse_ms))
    }

    #[doc = words!(Attempt.error)]
    #[getter]
    fn error(&self) -> Option<&str> {
        self.0.error.as_deref()
    }

    #[doc = words!(Attempt.queue)]
    #[getter]
    fn queue(&self) -> &str {
        &self.0.queue
    }

    #[doc = words!(Attempt.stage)]
    #[getter]
    fn stage(&self) -> i64 {
        self.0.stage
    }

    #[doc = words!(Attempt.content)]
    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.content.as_ref().map(|content| content_to_python(py, content)).transpose()
    }

    fn __repr__(&self) -> String {
        format!("<Attempt {}, {}>", self.0.attempt, self.0.ending)
    }
}
