//! Warnings of native code go to the package's logger.

use std::cell::Cell;

use pyo3::prelude::*;

use super::interpreter_exit::until_let_back;

thread_local! {
    /// A logging handler that calls the queue must not make it warn again.
    static IS_WARNING: Cell<bool> = const { Cell::new(false) };
}

/// Logs a warning. Runs whatever handlers the program has for it, so no lock may be held.
pub fn warn(text: &str) {
    if IS_WARNING.replace(true) {
        return;
    }
    until_let_back();
    Python::attach(|py| {
        let logger = py.import("logging").and_then(|logging| logging.call_method1("getLogger", ("membox_queue",)));
        if let Err(error) = logger.and_then(|logger| logger.call_method1("warning", ("%s", text))) {
            error.write_unraisable(py, None);
        }
    });
    IS_WARNING.set(false);
}
