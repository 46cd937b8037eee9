//! Conversion of errors to exceptions, in one place.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::Error;

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let class = match &error {
            Error::Invalid(text) => return PyValueError::new_err(text.clone()),
            Error::Interrupted => return super::signals::raised(),
            Error::Stale { .. } => "StaleClaimError",
            Error::Busy(_) => "QueueBusyError",
            Error::Closed | Error::Forked(..) => "QueueClosedError",
            Error::Duplicate { id, .. } => return duplicate(*id, error.to_string()),
            Error::Full { .. } | Error::NeverRoom { .. } => "QueueFullError",
            Error::SettingsConflict(_) => "SettingsConflictError",
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
        Python::attach(|py| named(py, class, error.to_string()))
    }
}

fn duplicate(id: i64, text: String) -> PyErr {
    Python::attach(|py| match exception_class(py, "DuplicateItemError").and_then(|class| class.call1((text, id))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    })
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
