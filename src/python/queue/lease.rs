//! The worker lease, the announcement of a worker that is starting, and named locks.

use std::time::Duration;

use pyo3::prelude::*;

use super::{Arg, Queue};
use crate::model::millis;
use crate::python::convert::{lease_ms, patience, ttl_ms};
use crate::python::interpreter_exit::Native;
use crate::python::lock::Lock;
use crate::sync::Mutex;

#[pymethods]
impl Queue {
    #[doc = words!(Queue.acquire_worker_lease)]
    #[pyo3(signature = (ttl = None), text_signature = "($self, ttl=60.0)")]
    fn acquire_worker_lease(&self, py: Python<'_>, ttl: Arg) -> PyResult<bool> {
        let ttl_ms = ttl_ms(ttl)?;
        Ok(py.native(|| self.core.acquire_worker_lease(ttl_ms))?)
    }

    #[doc = words!(Queue.refresh_worker_lease)]
    fn refresh_worker_lease(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.refresh_worker_lease())?)
    }

    #[doc = words!(Queue.release_worker_lease)]
    fn release_worker_lease(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.release_worker_lease())?)
    }

    #[doc = words!(Queue.worker_is_alive)]
    fn worker_is_alive(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.worker_is_alive())?)
    }

    #[doc = words!(Queue._announce_worker)]
    #[pyo3(signature = (seconds, /))]
    fn _announce_worker(&self, py: Python<'_>, seconds: f64) -> PyResult<Option<String>> {
        let ttl_ms = millis("seconds", seconds)?;
        Ok(py.native(|| self.core.announce_worker(ttl_ms))?)
    }

    #[doc = words!(Queue._confirm_worker)]
    #[pyo3(signature = (announcement, seconds, /))]
    fn _confirm_worker(&self, py: Python<'_>, announcement: &str, seconds: f64) -> PyResult<bool> {
        let ttl_ms = millis("seconds", seconds)?;
        Ok(py.native(|| self.core.confirm_worker(announcement, ttl_ms))?)
    }

    #[doc = words!(Queue._withdraw_worker)]
    #[pyo3(signature = (announcement, /))]
    fn _withdraw_worker(&self, py: Python<'_>, announcement: &str) -> PyResult<bool> {
        Ok(py.native(|| self.core.withdraw_worker(announcement))?)
    }

    #[doc = words!(Queue._share_leases_with_membox)]
    fn _share_leases_with_membox(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.share_leases_with_membox())?)
    }

    #[doc = words!(Queue._take_over_worker_lease)]
    #[pyo3(signature = (ttl, /))]
    fn _take_over_worker_lease(&self, py: Python<'_>, ttl: f64) -> PyResult<bool> {
        let ttl_ms = millis("ttl", ttl)?;
        Ok(py.native(|| self.core.take_over_worker_lease(ttl_ms))?)
    }

    #[doc = words!(Queue._refresh_process_lease)]
    #[pyo3(signature = (ttl, /))]
    fn _refresh_process_lease(&self, py: Python<'_>, ttl: f64) -> PyResult<bool> {
        let ttl_ms = millis("ttl", ttl)?;
        Ok(py.native(|| self.core.refresh_process_lease(ttl_ms))?)
    }

    #[doc = words!(Queue._release_process_lease)]
    fn _release_process_lease(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.release_process_lease())?)
    }

    #[doc = words!(Queue._is_worker_younger_than)]
    #[pyo3(signature = (ttl, /))]
    fn _is_worker_younger_than(&self, py: Python<'_>, ttl: f64) -> PyResult<bool> {
        let ttl_ms = millis("ttl", ttl)?;
        Ok(py.native(|| self.core.is_worker_younger_than(ttl_ms))?)
    }

    #[doc = words!(Queue.lock)]
    #[pyo3(signature = (name, *, ttl = None, wait = None), text_signature = "($self, name, *, ttl=30.0, wait=0.0)")]
    fn lock(&self, name: &str, ttl: Arg, wait: Arg) -> PyResult<Lock> {
        Ok(Lock {
            queue: self.core.clone(),
            name: name.to_owned(),
            ttl_ms: ttl.map_or(Ok(30_000), |ttl| lease_ms("ttl", ttl))?,
            wait: wait.map_or(Ok(Duration::ZERO), |wait| patience("wait", wait))?,
            held: Mutex::default(),
        })
    }
}
