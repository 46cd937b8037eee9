//! `Schedule`: an item that is enqueued at every tick.

use pyo3::prelude::*;

use super::convert::{datetime, object_to_python, stored_to_python};
use crate::model::{self, KeyName};
use crate::rules::tick::Timing;

#[doc = words!(Schedule)]
#[pyclass(frozen, module = "membox_queue")]
pub struct Schedule(pub model::Schedule);

#[pymethods]
impl Schedule {
    #[doc = words!(Schedule.name)]
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[doc = words!(Schedule.content)]
    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        stored_to_python(py, &self.0.item.content)
    }

    #[doc = words!(Schedule.cron)]
    #[getter]
    fn cron(&self) -> Option<&str> {
        match &self.0.timing {
            Timing::Cron { pattern, .. } => Some(pattern),
            Timing::Every(_) => None,
        }
    }

    #[doc = words!(Schedule.every)]
    #[getter]
    fn every(&self) -> Option<f64> {
        match &self.0.timing {
            Timing::Cron { .. } => None,
            Timing::Every(every) => Some(*every as f64 / 1000.0),
        }
    }

    #[doc = words!(Schedule.tz)]
    #[getter]
    fn tz(&self) -> &str {
        match &self.0.timing {
            Timing::Cron { tz, .. } => tz,
            Timing::Every(_) => "UTC",
        }
    }

    #[doc = words!(Schedule.next_at)]
    #[getter]
    fn next_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, Some(self.0.next_at))
    }

    #[doc = words!(Schedule.last_at)]
    #[getter]
    fn last_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.0.last_at)
    }

    #[doc = words!(Schedule.last_id)]
    #[getter]
    fn last_id(&self) -> Option<i64> {
        self.0.last_id
    }

    #[doc = words!(Schedule.group)]
    #[getter]
    fn group(&self) -> Option<&str> {
        self.0.item.group.as_deref()
    }

    #[doc = words!(Schedule.priority)]
    #[getter]
    fn priority(&self) -> i64 {
        self.0.item.priority
    }

    #[doc = words!(Schedule.project)]
    #[getter]
    fn project(&self) -> Option<&str> {
        self.0.item.project.as_deref()
    }

    #[doc = words!(Schedule.source_path)]
    #[getter]
    fn source_path(&self) -> Option<&str> {
        self.0.item.source_path.as_deref()
    }

    #[doc = words!(Schedule.doc_date)]
    #[getter]
    fn doc_date(&self) -> Option<&str> {
        self.0.item.doc_date.as_deref()
    }

    #[doc = words!(Schedule.max_retries)]
    #[getter]
    fn max_retries(&self) -> Option<u32> {
        self.0.item.max_retries
    }

    #[doc = words!(Schedule.headers)]
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let headers = self.0.item.headers.as_deref().and_then(|text| serde_json::from_str(text).ok());
        object_to_python(py, &headers.unwrap_or_default())
    }

    #[doc = words!(Schedule.key)]
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
