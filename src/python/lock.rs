//! `Lock`: `with queue.lock("nightly"):`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::error::named;
use super::interpreter_exit::{self, Native};
use super::signals;
use crate::queue;
use crate::sync::Mutex;

/// How often a held lock is asked for again.
const PAUSE: Duration = Duration::from_millis(20);

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
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn held(&self, py: Python<'_>) -> bool {
        py.native(|| self.taken().is_some_and(|lock| lock.is_held()))
    }

    #[getter]
    fn lost(&self, py: Python<'_>) -> bool {
        py.native(|| self.taken().is_some_and(|lock| lock.is_held() && lock.is_lost()))
    }

    fn acquire(&self, py: Python<'_>) -> PyResult<bool> {
        let started = Instant::now();
        loop {
            let taken = py.native(|| -> crate::Result<bool> {
                let lock = self.queue.try_lock(&self.name, self.ttl_ms)?;
                let is_taken = lock.is_some();
                if is_taken {
                    *self.held.lock() = lock;
                }
                Ok(is_taken)
            })?;
            if taken {
                return Ok(true);
            }
            let left = self.wait.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            py.native(|| std::thread::sleep(left.min(PAUSE)));
            signals::check(py)?;
            interpreter_exit::check(py)?;
        }
    }

    fn release(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| -> crate::Result<bool> {
            // A wait for the file may let Python run, and that must not happen under the mutex.
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
                    "the lock '{}' was taken over while the block ran: it was not renewed for {} ms, and somebody else may \
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
    /// What was taken last, given back or not.
    fn taken(&self) -> Option<Arc<queue::Lock>> {
        self.held.lock().clone()
    }
}
