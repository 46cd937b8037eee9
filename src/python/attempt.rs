//! `Attempt`: how one claim of an item ended.

use pyo3::prelude::*;

use super::convert::datetime;
use crate::model;
use crate::model::parse_ms;

#[pyclass(frozen, module = "membox_queue")]
pub struct Attempt(pub model::Attempt);

#[pymethods]
impl Attempt {
    #[getter]
    fn attempt(&self) -> i64 {
        self.0.attempt
    }

    #[getter]
    fn ending(&self) -> &str {
        &self.0.ending
    }

    #[getter]
    fn worker(&self) -> Option<&str> {
        self.0.worker.as_deref()
    }

    #[getter]
    fn started_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.0.started_at.as_deref().and_then(parse_ms))
    }

    #[getter]
    fn ended_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.0.ended_at.as_deref().and_then(parse_ms))
    }

    #[getter]
    fn error(&self) -> Option<&str> {
        self.0.error.as_deref()
    }

    fn __repr__(&self) -> String {
        format!("<Attempt {}, {}>", self.0.attempt, self.0.ending)
    }
}
