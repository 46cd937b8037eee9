//! `Rate`: how many items may be claimed in a period.

use pyo3::prelude::*;

use super::convert::{lease_ms, positive};
use crate::rules::rate;

#[doc = words!(Rate)]
#[pyclass(frozen, eq, hash, module = "membox_queue", from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub struct Rate {
    pub rate: rate::Rate,
}

impl std::hash::Hash for Rate {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.rate.count, self.rate.per_ms).hash(state);
    }
}

#[pymethods]
impl Rate {
    #[new]
    #[pyo3(signature = (count, per = None), text_signature = "(count, per=60.0)")]
    fn new(count: &Bound<'_, PyAny>, per: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let per_ms = per.map_or(Ok(60_000), |per| lease_ms("Rate per", per))?;
        Ok(Self { rate: rate::Rate::new(positive("Rate count", count)?, per_ms)? })
    }

    #[doc = words!(Rate.count)]
    #[getter]
    fn count(&self) -> u32 {
        self.rate.count
    }

    #[doc = words!(Rate.per)]
    #[getter]
    fn per(&self) -> f64 {
        self.rate.per_ms as f64 / 1000.0
    }

    fn __repr__(&self) -> String {
        self.rate.to_string()
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> (Py<PyAny>, (u32, f64)) {
        (slf.get_type().into_any().unbind(), (slf.get().count(), slf.get().per()))
    }
}
