//! `WorkerInfo`: a loop, or a process that holds items.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::convert::datetime;
use crate::queue::Worker;

#[doc = words!(WorkerInfo)]
#[pyclass(frozen, module = "membox_queue")]
pub struct WorkerInfo(pub Worker);

#[pymethods]
impl WorkerInfo {
    #[doc = words!(WorkerInfo.name)]
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[doc = words!(WorkerInfo.pid)]
    #[getter]
    fn pid(&self) -> Option<i64> {
        self.0.pid
    }

    #[doc = words!(WorkerInfo.host)]
    #[getter]
    fn host(&self) -> Option<&str> {
        self.0.host.as_deref()
    }

    #[doc = words!(WorkerInfo.since)]
    #[getter]
    fn since<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.0.since)
    }

    #[doc = words!(WorkerInfo.kind)]
    #[getter]
    fn kind(&self) -> Option<&'static str> {
        self.0.kind.map(|kind| kind.as_str())
    }

    #[doc = words!(WorkerInfo.queues)]
    #[getter]
    fn queues<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.queues)
    }

    #[doc = words!(WorkerInfo.item_ids)]
    #[getter]
    fn item_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.items)
    }

    #[doc = words!(WorkerInfo.alive)]
    #[getter]
    fn alive(&self) -> bool {
        self.0.is_alive
    }

    #[doc = words!(WorkerInfo.stopping)]
    #[getter]
    fn stopping(&self) -> bool {
        self.0.is_stopping
    }

    fn __repr__(&self) -> String {
        let what = if !self.0.is_alive {
            "dead"
        } else if self.0.is_stopping {
            "stopping"
        } else {
            self.kind().unwrap_or("no loop")
        };
        format!("<WorkerInfo {}, {what}, {} in progress>", self.0.name, self.0.items.len())
    }
}
