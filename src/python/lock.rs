//! `Lock`: a named lock, used as `with queue.lock("nightly"):`.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;

use super::error::named;
use super::interpreter_exit::Native;
use super::waits;
use crate::queue;
use crate::sync::Mutex;

#[doc = words!(Lock)]
#[pyclass(frozen, module = "membox_queue")]
pub struct Lock {
    pub queue: Arc<queue::Queue>,
    pub name: String,
    pub ttl_ms: i64,
    pub wait: Duration,
    pub held: Mutex<Option<Arc<queue::Lock>>>,
}

#[pymethods]
impl Lock {
    #[doc = words!(Lock.name)]
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[doc = words!(Lock.held)]
    #[getter]
    fn held(&self, py: Python<'_>) -> bool {
        py.native(|| self.taken().is_some_and(|lock| lock.is_held()))
    }

    #[doc = words!(Lock.lost)]
    #[getter]
    fn lost(&self, py: Python<'_>) -> bool {
        py.native(|| self.taken().is_some_and(|lock| lock.is_held() && lock.is_lost()))
    }

    #[doc = words!(Lock.acquire)]
    fn acquire(&self, py: Python<'_>) -> PyResult<bool> {
        waits::for_lock(py, self.wait, || {
            let lock = self.queue.try_lock(&self.name, self.ttl_ms)?;
            let is_acquired = lock.is_some();
            if is_acquired {
                *self.held.lock() = lock;
            }
            Ok(is_acquired)
        })
    }

    #[doc = words!(Lock.release)]
    fn release(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| -> crate::Result<bool> {
            // Waiting for the file may run Python code, which must not happen while the mutex is held.
            self.taken().map_or(Ok(false), |lock| self.queue.unlock(&lock))
        })?)
    }

    fn __enter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let lock = slf.get();
        if lock.acquire(slf.py())? {
            return Ok(slf);
        }
        let holder = slf.py().native(|| lock.queue.lock_holder(&lock.name))?;
        let who =
            holder.map_or_else(String::new, |record| format!(" by process {} on {}", record.pid, record.hostname));
        let text = format!("the lock '{}' is held{who}; try again later, or give wait= to wait for it", lock.name);
        Err(named(slf.py(), "QueueBusyError", text))
    }

    #[pyo3(signature = (kind, exception, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = (kind, traceback);
        let was_held = self.held(py);
        match self.release(py) {
            _ if !exception.is_none() => Ok(false),
            Ok(false) if was_held => {
                let text = format!(
                    "the lock '{}' was taken over while the block ran: it was not renewed for {} ms, and another holder may \
                     have run beside it",
                    self.name, self.ttl_ms
                );
                Err(named(py, "StaleClaimError", text))
            }
            released => released.map(|_| false),
        }
    }
}

impl Lock {
    /// The lock acquired last, released or not.
    fn taken(&self) -> Option<Arc<queue::Lock>> {
        self.held.lock().clone()
    }
}
