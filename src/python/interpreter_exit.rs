//! The interpreter's exit: waits end, and a thread that returns from native code too late never touches Python again.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::error::named;

/// The thread that ends the interpreter. Once it is set, no other thread starts to wait.
static EXITING: OnceLock<ThreadId> = OnceLock::new();
/// The thread that finalizes the interpreter. Once it is set, no other thread returns to Python.
static LAST: OnceLock<Last> = OnceLock::new();

/// Exit functions take less time than this, unless they wait for a thread that is kept out.
const EXIT_TAKES: Duration = Duration::from_secs(1);

struct Last {
    thread: ThreadId,
    since: Instant,
    is_finalizing: Option<unsafe extern "C" fn() -> c_int>,
}

impl Last {
    /// Returns whether this thread must stay out of Python. Exit functions registered before ours run after it, and may
    /// wait for such a thread. If they take too long, the thread may return.
    fn keeps_out(&self) -> bool {
        // After the interpreter is gone, `Py_IsFinalizing` no longer reports it.
        // SAFETY: each reads one number of the interpreter, whose memory is never freed.
        let is_gone = unsafe { pyo3::ffi::Py_IsInitialized() } == 0;
        let is_finalizing = is_gone || self.is_finalizing.is_none_or(|ask| unsafe { ask() } != 0);
        self.thread != std::thread::current().id() && (is_finalizing || self.since.elapsed() < EXIT_TAKES)
    }
}

/// Finds `Py_IsFinalizing` by the name it has in this interpreter; the stable ABI does not have it in every version.
#[cfg(unix)]
fn is_finalizing() -> Option<unsafe extern "C" fn() -> c_int> {
    let found = [c"Py_IsFinalizing", c"_Py_IsFinalizing"].into_iter().find_map(|name| {
        // SAFETY: looks up a name among the libraries already loaded.
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
    let _ = EXITING.set(std::thread::current().id());
    super::worker_loop::stop_all();
    crate::store::wake_all();
}

/// From now on, lets only this thread return to Python. Threads that are already returning get a moment to arrive.
pub fn keep_other_threads_out(py: Python<'_>) {
    end_waits();
    let thread = std::thread::current().id();
    let _ = LAST.set(Last { thread, since: Instant::now(), is_finalizing: is_finalizing() });
    py.detach(|| std::thread::sleep(Duration::from_millis(5)));
}

/// Returns whether this thread must no longer claim or wait. The thread that ends the interpreter may, in its exit
/// functions.
pub fn is_exiting() -> bool {
    EXITING.get().is_some_and(|exiting| *exiting != std::thread::current().id())
}

/// Fails if the interpreter is about to exit, so that the caller stops waiting.
pub fn check(py: Python<'_>) -> PyResult<()> {
    if is_exiting() {
        return Err(named(py, "QueueClosedError", "the interpreter is exiting; the wait was ended".into()));
    }
    Ok(())
}

/// Runs work without the GIL. A thread whose interpreter is gone sleeps until the process ends: attaching would end the
/// thread in the middle of native code.
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

/// Called before a thread that has released the GIL returns to Python.
pub fn until_let_back() {
    while LAST.get().is_some_and(Last::keeps_out) {
        std::thread::sleep(Duration::from_millis(100));
    }
}
