//! How an exception ends a claim. Its attributes may raise, so only its type is trusted.

use pyo3::exceptions::{PyGeneratorExit, PySystemExit, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::convert::{duration_ms, type_name, utf8_or_escaped};
use super::error::exception_class;
use crate::rules::ending::{Meaning, Raised, Within, meaning};
use crate::rules::outcome::Ending;

/// Returns what an exception of a handler means to its loop. `is_cancelled`: the task that ran the handler was
/// cancelled.
pub fn in_handler(exception: &Bound<'_, PyAny>, is_cancelled: bool) -> PyResult<Meaning> {
    Ok(meaning(raised(exception, || is_cancelled)?, Within::Handler))
}

/// Does the same for a `with item:` block. Without `is_cancelled` it checks the running task.
pub fn in_block(exception: &Bound<'_, PyAny>, is_cancelled: Option<bool>) -> PyResult<Meaning> {
    let is_cancelled = || is_cancelled.unwrap_or_else(|| is_task_cancelled(exception.py()).unwrap_or(false));
    Ok(meaning(raised(exception, is_cancelled)?, Within::Block))
}

/// Returns how an exception ends the claim; `None` leaves the claim as it is.
pub fn of_raised(exception: &Bound<'_, PyAny>, meaning: Meaning) -> PyResult<Option<Ending>> {
    Ok(match meaning {
        Meaning::Failed => Some(of_failure(exception, None, false)?),
        // Treated as a lost claim: pending again at once, until the retry limit is reached.
        Meaning::Exited => Some(Ending::Failed { error: describe(exception), retry_in: Some(0), give_up: false }),
        Meaning::Released => Some(Ending::released_now()),
        // How it ends is known to the claim.
        Meaning::Suspended | Meaning::Crashed => None,
    })
}

/// Reads the arguments of `mark_failed`. `RetryLater` and `GiveUp` mean the same here as in a handler.
pub fn of_failure(error: &Bound<'_, PyAny>, retry_in: Option<i64>, give_up: bool) -> PyResult<Ending> {
    if retry_in.is_none() && !give_up && is_exception(error) {
        return as_it_says(error);
    }
    Ok(Ending::Failed { error: failure_text(error)?, retry_in, give_up })
}

/// Returns the failure; `RetryLater` and `GiveUp` state its kind themselves.
fn as_it_says(exception: &Bound<'_, PyAny>) -> PyResult<Ending> {
    if is_a(exception, &exception_class(exception.py(), "RetryLater")?)?
        && let Ok((retry_in, counted)) = later(exception)
    {
        if !counted {
            return Ok(Ending::Released { delay: retry_in, reason: said(exception) });
        }
        return Ok(Ending::Failed { error: reason(exception), retry_in: Some(retry_in), give_up: false });
    }
    if is_a(exception, &exception_class(exception.py(), "GiveUp")?)? {
        return Ok(Ending::Failed { error: reason(exception), retry_in: None, give_up: true });
    }
    Ok(Ending::Failed { error: describe(exception), retry_in: None, give_up: false })
}

fn is_a(exception: &Bound<'_, PyAny>, class: &Bound<'_, PyAny>) -> PyResult<bool> {
    exception.get_type().is_subclass(class)
}

fn is_exception(error: &Bound<'_, PyAny>) -> bool {
    error.is_instance_of::<pyo3::exceptions::PyBaseException>()
}

/// Classifies the exception. A group counts as the most severe of its members. A cancellation inside a group ended only
/// a subtask.
fn raised(exception: &Bound<'_, PyAny>, is_cancelled: impl FnOnce() -> bool) -> PyResult<Raised> {
    let py = exception.py();
    let group = py.import("builtins")?.getattr("BaseExceptionGroup")?;
    if !is_a(exception, &group)? {
        return match asyncio(py).and_then(|asyncio| asyncio.getattr("CancelledError").ok()) {
            Some(cancelled) if is_a(exception, &cancelled)? => Ok(Raised::Cancelled { from_outside: is_cancelled() }),
            _ => by_type(exception),
        };
    }
    let members = group.getattr("exceptions")?;
    let mut worst = Raised::Other;
    let mut open = vec![exception.clone()];
    while let Some(next) = open.pop() {
        if is_a(&next, &group)? {
            // Read through the base class, because a subclass may override the attribute with one that raises.
            open.extend(members.call_method1("__get__", (next,))?.cast::<PyTuple>()?.iter());
            continue;
        }
        worst = match (worst, by_type(&next)?) {
            (Raised::Crash, _) | (_, Raised::Crash) => Raised::Crash,
            (Raised::Stop, _) | (_, Raised::Stop) => Raised::Stop,
            (_, Raised::SystemExit) => Raised::SystemExit,
            (worst, _) => worst,
        };
    }
    Ok(worst)
}

fn by_type(exception: &Bound<'_, PyAny>) -> PyResult<Raised> {
    let py = exception.py();
    Ok(if is_a(exception, &exception_class(py, "SimulatedCrash")?)? {
        Raised::Crash
    } else if is_a(exception, &exception_class(py, "STOPS")?)? {
        Raised::Stop
    } else if is_a(exception, &exception_class(py, "Suspended")?)? {
        Raised::Suspended
    } else if exception.is_instance_of::<PySystemExit>() {
        Raised::SystemExit
    } else if exception.is_instance_of::<PyGeneratorExit>() {
        Raised::GeneratorExit
    } else {
        Raised::Other
    })
}

/// The asyncio module, if the program has imported it; importing it is slow.
fn asyncio(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    py.import("sys").and_then(|sys| sys.getattr("modules")?.get_item("asyncio")).ok()
}

/// Returns whether the task running in this thread was cancelled; `None` outside a task.
fn is_task_cancelled(py: Python<'_>) -> Option<bool> {
    let task = asyncio(py)?.call_method0("current_task").ok()?;
    task.call_method0("cancelling").and_then(|count| count.is_truthy()).ok()
}

/// Returns the delay and whether it counts. If a subclass made them unreadable, it is an ordinary failure.
fn later(exception: &Bound<'_, PyAny>) -> PyResult<(i64, bool)> {
    let retry_in = duration_ms("RetryLater", &exception.getattr("seconds")?)?;
    Ok((retry_in, exception.getattr("count")?.is_truthy()?))
}

/// Returns the failure text for `mark_failed`: a string as it is, or the description of an exception.
pub fn failure_text(error: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = error.cast::<PyString>() {
        return utf8_or_escaped(text);
    }
    if is_exception(error) {
        return Ok(describe(error));
    }
    Err(PyTypeError::new_err(format!("error must be str or an exception, not {}", type_name(error))))
}

/// Returns `ValueError: text`, even if the exception's own methods raise.
fn describe(exception: &Bound<'_, PyAny>) -> String {
    let name = exception.get_type().qualname().and_then(|name| utf8_or_escaped(&name));
    let name = name.unwrap_or_else(|_| "exception".into());
    match exception.str().and_then(|text| utf8_or_escaped(&text)) {
        Ok(text) if text.is_empty() => name,
        Ok(text) => format!("{name}: {text}"),
        Err(_) => format!("{name} (its text could not be made)"),
    }
}

/// Returns the reason that the handler gave, if any.
fn said(exception: &Bound<'_, PyAny>) -> Option<String> {
    exception.getattr("reason").and_then(|reason| failure_text(&reason)).ok()
}

/// Returns the reason that the handler gave, else the cause of the exception.
fn reason(exception: &Bound<'_, PyAny>) -> String {
    let cause = || exception.getattr("__cause__").and_then(|cause| failure_text(&cause));
    said(exception).or_else(|| cause().ok()).unwrap_or_else(|| describe(exception))
}
