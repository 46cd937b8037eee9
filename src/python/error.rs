//! Conversion of errors to exceptions, in one place.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::settings;
use crate::error::Error;

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let class = match &error {
            Error::Invalid(text) => return PyValueError::new_err(text.clone()),
            Error::Interrupted => return super::signals::raised(),
            Error::Stale { .. } => "StaleClaimError",
            Error::Busy(_) => "QueueBusyError",
            Error::Closed | Error::Forked(..) => "QueueClosedError",
            Error::Duplicate { .. } => "DuplicateItemError",
            Error::Needed { .. } => "NeededItemError",
            Error::Full { .. } | Error::NeverRoom { .. } => "QueueFullError",
            Error::SettingsConflict { .. } => "SettingsConflictError",
            Error::TooLarge { .. } => "PayloadTooLargeError",
            Error::SchemaVersion { .. } => "SchemaVersionError",
            Error::MissingDirectory(_) => "MissingDirectoryError",
            Error::ExistingFile(_) | Error::LeftBeside(_) => "ExistingFileError",
            Error::Storage(_) | Error::Ignored(_) | Error::Io(_) => "StorageError",
            Error::DiskFull(_) => "DiskFullError",
            Error::ReadOnly(_) => "ReadOnlyError",
            Error::Corrupt(_) => "CorruptDatabaseError",
            Error::Crash(_) => "SimulatedCrash",
            Error::NotADatabase(_) => "NotADatabaseError",
        };
        Python::attach(|py| match raised(py, class, &error) {
            Ok(exception) => PyErr::from_value(exception),
            Err(failure) => failure,
        })
    }
}

/// Creates the exception for an error, with the error's facts as attributes.
fn raised<'py>(py: Python<'py>, class: &str, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let (class, text) = (exception_class(py, class)?, error.to_string());
    let exception = match error {
        Error::Duplicate { id, .. } => class.call1((text, id))?,
        Error::Needed { id, needed_by } => class.call1((text, id, needed_by.clone()))?,
        _ => class.call1((text,))?,
    };
    match error {
        Error::Duplicate { key, .. } => exception.setattr("key", key)?,
        Error::Full { queue, pending, limit } => {
            exception.setattr("queue", queue)?;
            exception.setattr("pending", pending)?;
            exception.setattr("limit", limit)?;
        }
        Error::NeverRoom { queue, limit, .. } => {
            exception.setattr("queue", queue)?;
            exception.setattr("limit", limit)?;
        }
        Error::SettingsConflict { name, queue, given, stored, .. } => {
            exception.setattr("name", name)?;
            exception.setattr("queue", queue)?;
            exception.setattr("given", settings::value(py, name, given)?)?;
            exception.setattr("stored", settings::value(py, name, stored)?)?;
        }
        Error::Stale { id, .. } => exception.setattr("id", id)?,
        Error::TooLarge { size, limit } => {
            exception.setattr("size", size)?;
            exception.setattr("limit", limit)?;
        }
        Error::SchemaVersion { found, known } => {
            exception.setattr("found", found)?;
            exception.setattr("known", known)?;
        }
        Error::MissingDirectory(path) | Error::ExistingFile(path) | Error::LeftBeside(path) => {
            exception.setattr("path", path)?;
        }
        _ => {}
    }
    Ok(exception)
}

/// Creates an exception of `membox_queue.errors`.
pub fn named(py: Python<'_>, class: &str, text: String) -> PyErr {
    let raised = exception_class(py, class).and_then(|class| class.call1((text,)));
    match raised {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

pub fn exception_class<'py>(py: Python<'py>, class: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("membox_queue.errors")?.getattr(class)
}
