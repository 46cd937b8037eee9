//! SQLite's result codes as errors of this crate.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::Error;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let failure = match &error {
            rusqlite::Error::SqliteFailure(failure, _) => failure,
            // Its display would include the whole statement.
            rusqlite::Error::SqlInputError { msg, .. } => return Error::Storage(with_advice(msg)),
            other => return Error::Storage(other.to_string()),
        };
        match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Busy(error.to_string()),
            ErrorCode::DiskFull => Error::DiskFull(format!(
                "the disk is full ({error}); nothing was written, free some space and try again"
            )),
            ErrorCode::ReadOnly => Error::ReadOnly(format!("the database cannot be written ({error})")),
            ErrorCode::DatabaseCorrupt => {
                Error::Corrupt(format!("the database is damaged ({error}); restore a backup, nothing was changed"))
            }
            ErrorCode::NotADatabase => {
                Error::NotADatabase(format!("the file is not an SQLite database ({error}); it was left as it is"))
            }
            ErrorCode::CannotOpen if is_out_of_descriptors() => Error::Storage(format!(
                "this process has as many files open as it may ({error}); close some, or raise the limit (ulimit -n)"
            )),
            ErrorCode::SystemIoFailure => Error::Io(error.to_string()),
            _ => Error::Storage(with_advice(&error.to_string())),
        }
    }
}

/// Says what to do if our tables were dropped from an open file.
fn with_advice(message: &str) -> String {
    let is_ours = |name: &str| name == "ingest_queue" || name.starts_with("membox_queue_");
    match message.strip_prefix("no such table: ").map(|name| name.trim_start_matches("main.")) {
        Some(name) if is_ours(name) => {
            format!(
                "{message}: the queue was removed from the file; close this Queue and open it again to make it anew"
            )
        }
        _ => message.to_owned(),
    }
}

/// Returns whether the process is out of descriptors: SQLite does not report why it could not open a file.
fn is_out_of_descriptors() -> bool {
    let tried = std::fs::File::open("/dev/null");
    tried.is_err_and(|error| matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)))
}

impl Error {
    /// Adds the path of the file to a storage error's text.
    pub(in crate::sqlite) fn about(self, path: &Path) -> Self {
        self.retold(|text| format!("{}: {text}", path.display()))
    }
}
