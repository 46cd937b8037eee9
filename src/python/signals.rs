//! What interrupts a waiting call: Ctrl-C, or a `Token` that another thread cancels.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use super::error::named;
use super::interpreter_exit::until_let_back;

thread_local! {
    /// The exception that a signal handler raised in this thread, until the waiting call returns.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// The token that ends this thread's waits, if it has one.
    static TOKEN: RefCell<Option<Py<Token>>> = const { RefCell::new(None) };
}

#[doc = words!(Token)]
#[pyclass(frozen, module = "membox_queue._native")]
#[derive(Default)]
pub struct Token(AtomicBool);

#[pymethods]
impl Token {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[doc = words!(Token.cancel)]
    fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
        crate::store::wake_all();
    }

    #[doc = words!(Token.call)]
    #[pyo3(signature = (function, /))]
    fn call<'py>(slf: &Bound<'py, Self>, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let before = TOKEN.replace(Some(slf.clone().unbind()));
        let outcome = function.call0();
        TOKEN.set(before);
        outcome
    }
}

/// Runs Python's signal handlers. Called between two slices of a wait, with no lock held.
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

/// Runs Python's signal handlers, and fails once the thread's token was cancelled.
pub fn check(py: Python<'_>) -> PyResult<()> {
    py.check_signals()?;
    let is_cancelled =
        TOKEN.with_borrow(|token| token.as_ref().is_some_and(|token| token.get().0.load(Ordering::SeqCst)));
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
