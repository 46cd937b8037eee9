//! Ctrl-C while a call waits for other writers.

use std::cell::RefCell;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

thread_local! {
    /// What a signal handler raised in this thread, until the call that waited has come back.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Lets Python run its signal handlers. Called between two slices of a wait, without any lock held.
pub fn interrupted() -> bool {
    Python::attach(|py| match py.check_signals() {
        Ok(()) => false,
        Err(error) => {
            RAISED.set(Some(error));
            true
        }
    })
}

/// The exception that ended the wait.
pub fn raised() -> PyErr {
    RAISED.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
}
