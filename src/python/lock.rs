//! `Lock`: `with queue.lock("nightly"):`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::error::named;
use super::leaving::{self, Native};
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
    pub held: Mutex<Option<queue::Lock>>,
}

#[pymethods]
impl Lock {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn held(&self, py: Python<'_>) -> bool {
        py.native(|| self.held.lock().is_some())
    }

    #[getter]
    fn lost(&self, py: Python<'_>) -> bool {
        py.native(|| self.held.lock().as_ref().is_some_and(queue::Lock::is_lost))
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
            leaving::check(py)?;
        }
    }

    fn release(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| -> crate::Result<bool> {
            // Taken out first: a wait for the file may let Python run, and that must not happen under a lock.
            let Some(lock) = self.held.lock().take() else { return Ok(false) };
            let released = self.queue.unlock(&lock);
            if released.is_err() {
                *self.held.lock() = Some(lock);
            }
            released
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
        match self.release(py) {
            Err(error) if exception.is_none() => Err(error),
            _ => Ok(false),
        }
    }
}
