//! The end of the interpreter: waits end, and threads that come back from native code too late never touch Python again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use pyo3::prelude::*;

use super::error::named;

/// The thread that ends the interpreter; no other may begin to wait any more.
static LEAVING: OnceLock<ThreadId> = OnceLock::new();
/// The thread that finalizes the interpreter; no other may go back to Python.
static LAST: OnceLock<ThreadId> = OnceLock::new();

/// Ends all waits of this process.
pub fn end_waits() {
    let _ = LEAVING.set(std::thread::current().id());
    super::crew::stop_all();
    crate::sqlite::ring_all();
}

/// From now on only this thread goes back to Python. Those on their way get a moment to arrive.
pub fn be_last(py: Python<'_>) {
    end_waits();
    let _ = LAST.set(std::thread::current().id());
    py.detach(|| std::thread::sleep(Duration::from_millis(5)));
}

/// Whether this thread is to claim and to wait no more. The one that ends the interpreter may, in what it calls at exit.
pub fn is_leaving() -> bool {
    LEAVING.get().is_some_and(|leaving| *leaving != std::thread::current().id())
}

/// Refuses to go on waiting when the interpreter is about to end.
pub fn check(py: Python<'_>) -> PyResult<()> {
    if is_leaving() {
        return Err(named(py, "QueueClosedError", "the interpreter is exiting; the wait was ended".into()));
    }
    Ok(())
}

/// Ends one wait from another thread; waits in asyncio are cancelled through it.
#[pyclass(frozen, module = "membox_queue._native")]
#[derive(Default)]
pub struct Token(AtomicBool);

#[pymethods]
impl Token {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
        crate::sqlite::ring_all();
    }

    /// Calls a function whose waits end when the token is cancelled.
    #[pyo3(signature = (function, /))]
    fn call<'py>(slf: &Bound<'py, Self>, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        super::signals::call_until(slf, function)
    }
}

impl Token {
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Work without the GIL. A thread that would come back to an interpreter that is gone sleeps for the rest of the process
/// instead: attaching there would end the thread in the middle of native code.
pub trait Native {
    fn native<T: Send, F: Send + FnOnce() -> T>(self, work: F) -> T;
}

impl Native for Python<'_> {
    fn native<T: Send, F: Send + FnOnce() -> T>(self, work: F) -> T {
        self.detach(|| {
            let value = work();
            while LAST.get().is_some_and(|last| *last != std::thread::current().id()) {
                std::thread::sleep(Duration::from_secs(3600));
            }
            value
        })
    }
}
