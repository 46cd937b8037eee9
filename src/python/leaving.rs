//! The end of the interpreter: waits end, and threads that come back from native code too late never touch Python again.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::error::named;

/// The thread that ends the interpreter; no other may begin to wait any more.
static LEAVING: OnceLock<ThreadId> = OnceLock::new();
/// The thread that finalizes the interpreter; no other may go back to Python.
static LAST: OnceLock<Last> = OnceLock::new();

/// What is called at exit takes less, unless it waits for a thread that is not let back.
const EXIT_TAKES: Duration = Duration::from_secs(1);

struct Last {
    thread: ThreadId,
    since: Instant,
    is_finalizing: Option<unsafe extern "C" fn() -> c_int>,
}

impl Last {
    /// Whether other threads are to stay away from Python. Functions that were registered before us are called after us,
    /// and may wait for such a thread: if they take long, it is let back.
    fn keeps_out(&self) -> bool {
        // Once the interpreter is gone, nothing is being finalized any more.
        // SAFETY: each reads one number of the interpreter, whose memory is never given back.
        let is_gone = unsafe { pyo3::ffi::Py_IsInitialized() } == 0;
        let is_finalizing = is_gone || self.is_finalizing.is_none_or(|ask| unsafe { ask() } != 0);
        self.thread != std::thread::current().id() && (is_finalizing || self.since.elapsed() < EXIT_TAKES)
    }
}

/// `Py_IsFinalizing`, by the name it has in this interpreter: it is not part of the interface that all versions share.
#[cfg(unix)]
fn is_finalizing() -> Option<unsafe extern "C" fn() -> c_int> {
    let found = [c"Py_IsFinalizing", c"_Py_IsFinalizing"].into_iter().find_map(|name| {
        // SAFETY: looks a name up in what is loaded already.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    })?;
    // SAFETY: both names have this signature in every version that has them.
    Some(unsafe { std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn() -> c_int>(found) })
}

#[cfg(not(unix))]
fn is_finalizing() -> Option<unsafe extern "C" fn() -> c_int> {
    None
}

/// Ends all waits of this process.
pub fn end_waits() {
    let _ = LEAVING.set(std::thread::current().id());
    super::crew::stop_all();
    crate::sqlite::ring_all();
}

/// From now on only this thread goes back to Python. Those on their way get a moment to arrive.
pub fn be_last(py: Python<'_>) {
    end_waits();
    let thread = std::thread::current().id();
    let _ = LAST.set(Last { thread, since: Instant::now(), is_finalizing: is_finalizing() });
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
            until_let_back();
            value
        })
    }
}

/// Comes before every way back to Python from a thread that has released the GIL.
pub fn until_let_back() {
    while LAST.get().is_some_and(Last::keeps_out) {
        std::thread::sleep(Duration::from_millis(100));
    }
}
