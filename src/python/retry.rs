//! `Retry`: when a failed item becomes pending again by itself.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::{positive, seconds};
use crate::rules::retry::{self, Backoff};

#[doc = words!(Retry)]
#[pyclass(frozen, eq, module = "membox_queue", from_py_object)]
#[derive(Clone, PartialEq)]
pub struct Retry {
    pub policy: retry::Retry,
}

#[pymethods]
impl Retry {
    #[new]
    #[pyo3(signature = (max = None, base = None, factor = 2.0, cap = None, jitter = 0.1, *, kind = "exponential"),
           text_signature = "(max=5, base=30, factor=2.0, cap=3600, jitter=0.1, *, kind='exponential')")]
    fn new(
        max: Option<&Bound<'_, PyAny>>,
        base: Option<&Bound<'_, PyAny>>,
        factor: f64,
        cap: Option<&Bound<'_, PyAny>>,
        jitter: f64,
        kind: &str,
    ) -> PyResult<Self> {
        let kind = match kind {
            "exponential" => Backoff::Exponential,
            "linear" => Backoff::Linear,
            other => {
                return Err(PyValueError::new_err(format!(
                    "Retry kind must be 'exponential' or 'linear', not {other:?}"
                )));
            }
        };
        let max = max.map_or(Ok(5), |max| positive("Retry max", max))?;
        let base = base.map_or(Ok(30.0), |base| seconds("Retry base", base))?;
        let cap = cap.map_or(Ok(3600.0), |cap| seconds("Retry cap", cap))?;
        Ok(Self { policy: retry::Retry::new(max, base, factor, cap, jitter, kind)? })
    }

    #[doc = words!(Retry.max)]
    #[getter]
    fn max(&self) -> u32 {
        self.policy.max
    }

    #[doc = words!(Retry.base)]
    #[getter]
    fn base(&self) -> f64 {
        self.policy.base
    }

    #[doc = words!(Retry.factor)]
    #[getter]
    fn factor(&self) -> f64 {
        self.policy.factor
    }

    #[doc = words!(Retry.cap)]
    #[getter]
    fn cap(&self) -> f64 {
        self.policy.cap
    }

    #[doc = words!(Retry.jitter)]
    #[getter]
    fn jitter(&self) -> f64 {
        self.policy.jitter
    }

    #[doc = words!(Retry.kind)]
    #[getter]
    fn kind(&self) -> &'static str {
        self.policy.kind.as_str()
    }

    fn __repr__(&self) -> String {
        self.policy.to_string()
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<(Py<PyAny>, (u32, f64, f64, f64, f64))> {
        let p = &slf.get().policy;
        let keyed = slf.py().import("functools")?.getattr("partial")?;
        let kwargs = pyo3::types::PyDict::new(slf.py());
        kwargs.set_item("kind", slf.get().kind())?;
        let make = keyed.call((slf.get_type(),), Some(&kwargs))?;
        Ok((make.unbind(), (p.max, p.base, p.factor, p.cap, p.jitter)))
    }
}
