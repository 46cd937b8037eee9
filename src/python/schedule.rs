//! `Schedule`: something that is enqueued again and again.

use pyo3::prelude::*;

use super::convert::{datetime, stored_to_python};
use crate::item;
use crate::schedule::Timing;

#[pyclass(frozen, module = "membox_queue")]
pub struct Schedule(pub item::Schedule);

#[pymethods]
impl Schedule {
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        stored_to_python(py, &self.0.item.content)
    }

    #[getter]
    fn cron(&self) -> Option<&str> {
        match &self.0.timing {
            Timing::Cron { pattern, .. } => Some(pattern),
            Timing::Every(_) => None,
        }
    }

    #[getter]
    fn every(&self) -> Option<f64> {
        match &self.0.timing {
            Timing::Cron { .. } => None,
            Timing::Every(every) => Some(*every as f64 / 1000.0),
        }
    }

    #[getter]
    fn tz(&self) -> &str {
        match &self.0.timing {
            Timing::Cron { tz, .. } => tz,
            Timing::Every(_) => "UTC",
        }
    }

    #[getter]
    fn next_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, Some(self.0.next_at))
    }

    #[getter]
    fn last_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.0.last_at)
    }

    #[getter]
    fn last_id(&self) -> Option<i64> {
        self.0.last_id
    }

    #[getter]
    fn group(&self) -> Option<&str> {
        self.0.item.group.as_deref()
    }

    #[getter]
    fn priority(&self) -> i64 {
        self.0.item.priority
    }

    fn __repr__(&self) -> String {
        let when = match &self.0.timing {
            Timing::Cron { pattern, tz } => format!("cron '{pattern}' in {tz}"),
            Timing::Every(every) => format!("every {} s", *every as f64 / 1000.0),
        };
        format!("<Schedule '{}', {when}>", self.0.name)
    }
}
