//! Warnings of native code, sent to the package's logger.

use std::cell::Cell;

use pyo3::prelude::*;

use super::interpreter_exit::until_let_back;

thread_local! {
    /// Set while this thread warns: a logging handler that calls the queue must not cause another warning.
    static IS_WARNING: Cell<bool> = const { Cell::new(false) };
}

/// Logs a warning. This runs the program's logging handlers, so no lock may be held.
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
