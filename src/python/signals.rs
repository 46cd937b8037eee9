//! Ctrl-C, or a token that was cancelled, while a call waits.

use std::cell::RefCell;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use super::error::named;
use super::leaving::{Token, until_let_back};

thread_local! {
    /// What a signal handler raised in this thread, until the call that waited has come back.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// What ends the waits of this thread, if somebody else may.
    static TOKEN: RefCell<Option<Py<Token>>> = const { RefCell::new(None) };
}

/// Calls something whose waits the token ends.
pub fn call_until<'py>(token: &Bound<'py, Token>, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let before = TOKEN.replace(Some(token.clone().unbind()));
    let outcome = function.call0();
    TOKEN.set(before);
    outcome
}

/// Lets Python run its signal handlers. Called between two slices of a wait, without any lock held.
pub fn interrupted() -> bool {
    until_let_back();
    Python::attach(|py| match check(py) {
        Ok(()) => false,
        Err(error) => {
            RAISED.set(Some(error));
            true
        }
    })
}

/// Lets Python run its signal handlers, and refuses to go on waiting once the thread's token was cancelled.
pub fn check(py: Python<'_>) -> PyResult<()> {
    py.check_signals()?;
    let is_cancelled = TOKEN.with_borrow(|token| token.as_ref().is_some_and(|token| token.get().is_cancelled()));
    if is_cancelled {
        let text = "the call was cancelled while it waited, and changed nothing from then on";
        return Err(named(py, "QueueBusyError", text.into()));
    }
    Ok(())
}

/// The exception that ended the wait.
pub fn raised() -> PyErr {
    RAISED.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
}
