//! `Schedule`: an item that is enqueued at every tick.

use pyo3::prelude::*;

use super::convert::{datetime, object_to_python, stored_to_python};
use crate::model::{self, KeyName};
use crate::rules::tick::Timing;

#[pyclass(frozen, module = "membox_queue")]
pub struct Schedule(pub model::Schedule);

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

    #[getter]
    fn project(&self) -> Option<&str> {
        self.0.item.project.as_deref()
    }

    #[getter]
    fn source_path(&self) -> Option<&str> {
        self.0.item.source_path.as_deref()
    }

    #[getter]
    fn doc_date(&self) -> Option<&str> {
        self.0.item.doc_date.as_deref()
    }

    #[getter]
    fn max_retries(&self) -> Option<u32> {
        self.0.item.max_retries
    }

    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let headers = self.0.item.headers.as_deref().and_then(|text| serde_json::from_str(text).ok());
        object_to_python(py, &headers.unwrap_or_default())
    }

    #[getter]
    fn key(&self) -> Option<&str> {
        match &self.0.item.key.as_ref()?.name {
            KeyName::Given(name) => Some(name),
            KeyName::ByContent => None,
        }
    }

    fn __repr__(&self) -> String {
        let when = match &self.0.timing {
            Timing::Cron { pattern, tz } => format!("cron '{pattern}' in {tz}"),
            Timing::Every(every) => format!("every {} s", *every as f64 / 1000.0),
        };
        format!("<Schedule '{}', {when}>", self.0.name)
    }
}
