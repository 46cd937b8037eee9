//! What an exception says about the end of a claim.

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::convert::{duration_ms, type_name, utf8_or_escaped};
use super::error::exception_class;
use crate::outcome::Ending;

/// `RetryLater` and `GiveUp` say it themselves; any other `Exception`, and a panic of native code, is a failure; what only
/// stops the program (KeyboardInterrupt, SystemExit, cancellation) gives the item back.
pub fn of_exception(py: Python<'_>, exception: &Bound<'_, PyAny>) -> PyResult<Ending> {
    if exception.is_instance(&exception_class(py, "RetryLater")?)?
        && let Ok((retry_in, counted)) = later(exception)
    {
        if !counted {
            return Ok(Ending::Released { delay: retry_in, reason: said(exception) });
        }
        return Ok(Ending::Failed { error: reason(exception), retry_in: Some(retry_in), give_up: false });
    }
    if exception.is_instance(&exception_class(py, "GiveUp")?)? {
        return Ok(Ending::Failed { error: reason(exception), retry_in: None, give_up: true });
    }
    if exception.is_instance_of::<PyException>() || is_panic(exception) {
        return Ok(Ending::Failed { error: describe(exception), retry_in: None, give_up: false });
    }
    Ok(Ending::given_back())
}

/// Every module made with pyo3 has a class of its own for its panics, and none is an `Exception`.
fn is_panic(exception: &Bound<'_, PyAny>) -> bool {
    exception.get_type().module().is_ok_and(|name| name == "pyo3_runtime")
}

/// When to try again and whether it counts. What a subclass made unreadable is an ordinary failure.
fn later(exception: &Bound<'_, PyAny>) -> PyResult<(i64, bool)> {
    let retry_in = duration_ms("RetryLater", &exception.getattr("seconds")?)?;
    Ok((retry_in, exception.getattr("count")?.is_truthy()?))
}

/// What `mark_failed` was given. `RetryLater` and `GiveUp` say the same here as in a handler.
pub fn of_failure(py: Python<'_>, error: &Bound<'_, PyAny>, retry_in: Option<i64>, give_up: bool) -> PyResult<Ending> {
    let is_request = |class: &str| error.is_instance(&exception_class(py, class)?);
    if retry_in.is_none() && !give_up && (is_request("RetryLater")? || is_request("GiveUp")?) {
        return of_exception(py, error);
    }
    Ok(Ending::Failed { error: failure_text(error)?, retry_in, give_up })
}

/// The failure text of what `mark_failed` was given: a string as it is, an exception described.
fn failure_text(error: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = error.cast::<PyString>() {
        return utf8_or_escaped(text);
    }
    if error.is_instance_of::<pyo3::exceptions::PyBaseException>() {
        return Ok(describe(error));
    }
    Err(PyTypeError::new_err(format!("error must be str or an exception, not {}", type_name(error))))
}

/// `ValueError: what it says`, whatever the exception does when it is asked.
fn describe(exception: &Bound<'_, PyAny>) -> String {
    let name = exception.get_type().qualname().and_then(|name| utf8_or_escaped(&name));
    let name = name.unwrap_or_else(|_| "exception".into());
    match exception.str().and_then(|text| utf8_or_escaped(&text)) {
        Ok(text) if text.is_empty() => name,
        Ok(text) => format!("{name}: {text}"),
        Err(_) => format!("{name} (its text could not be made)"),
    }
}

/// What the handler gave as its reason, if anything.
fn said(exception: &Bound<'_, PyAny>) -> Option<String> {
    exception.getattr("reason").and_then(|reason| failure_text(&reason)).ok()
}

/// What the handler gave as its reason, else what made it raise.
fn reason(exception: &Bound<'_, PyAny>) -> String {
    let cause = || exception.getattr("__cause__").and_then(|cause| failure_text(&cause));
    said(exception).or_else(|| cause().ok()).unwrap_or_else(|| describe(exception))
}
