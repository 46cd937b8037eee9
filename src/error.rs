//! The one error enum. A missing item is not an error, and neither is a stale receipt: both are results.

use std::path::PathBuf;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// An argument is unusable; nothing was read or written.
    #[error("{0}")]
    Invalid(String),

    #[error("{0}")]
    Busy(String),

    #[error("an item with the key {key:?} exists already: {id}{why}")]
    Duplicate { key: String, id: i64, why: &'static str },

    #[error(
        "the queue '{queue}' would hold {pending} pending items and may hold {limit}; wait for workers, or raise \
         max_pending"
    )]
    Full { queue: String, pending: i64, limit: i64 },

    #[error(
        "the batch has {added} new items for the queue '{queue}', which may hold {limit}; make it smaller, or raise \
         max_pending"
    )]
    NeverRoom { queue: String, added: i64, limit: i64 },

    #[error(
        "item {id} is needed by {}: they wait for it or need its result; delete them first, or all of them with tree=True",
        ids(needed_by)
    )]
    Needed { id: i64, needed_by: Vec<i64> },

    /// The values are JSON.
    #[error("{text}")]
    SettingsConflict { name: &'static str, queue: String, given: String, stored: String, text: String },

    /// A signal handler raised while the call waited for other writers, or between two of its steps. The transaction
    /// that was next did not begin.
    #[error("interrupted")]
    Interrupted,

    #[error("the claim on item {id} has ended: {why}")]
    Stale { id: i64, why: String },

    #[error("this queue is closed; open a new Queue to go on")]
    Closed,

    /// A forked child used something that only its parent can use.
    #[error("{0} belongs to the parent process and cannot be used in a forked child; {1}")]
    Forked(&'static str, &'static str),

    #[error(
        "it has {size} bytes, the limit is {limit}; store large bodies elsewhere and keep a reference, or raise max_bytes"
    )]
    TooLarge { size: usize, limit: usize },

    #[error(
        "the file has queue schema version {found}, this version of membox_queue knows up to {known}; upgrade membox_queue to open it"
    )]
    SchemaVersion { found: i64, known: i64 },

    #[error("{}: the directory does not exist; create it first", .0.display())]
    MissingDirectory(PathBuf),

    #[error("{}: the file exists already, and is not written over; choose another name or remove it", .0.display())]
    ExistingFile(PathBuf),

    /// There is a file that SQLite would read together with a new database.
    #[error(
        "{}: left by an earlier file of that name, and SQLite would read it as a part of the copy; move it away or choose another name",
        .0.display()
    )]
    LeftBeside(PathBuf),

    #[error("{0}")]
    Storage(String),

    /// A trigger of the application ignored one of our changes.
    #[error("{0}")]
    Ignored(String),

    /// The operating system failed to read or write, or the write went to a WAL that no longer belongs to the file.
    #[error("{0}")]
    Io(String),

    #[error("{0}")]
    DiskFull(String),

    #[error("{0}")]
    ReadOnly(String),

    #[error("{0}")]
    Corrupt(String),

    /// A test simulates the death of the process here; see `faults`.
    #[error("{0}")]
    Crash(&'static str),

    #[error("{0}")]
    NotADatabase(String),
}

impl Error {
    /// Rewords a storage error.
    pub fn retold(self, tell: impl FnOnce(String) -> String) -> Self {
        match self {
            Error::Busy(text) => Error::Busy(tell(text)),
            Error::Storage(text) => Error::Storage(tell(text)),
            Error::Ignored(text) => Error::Ignored(tell(text)),
            Error::Io(text) => Error::Io(tell(text)),
            Error::DiskFull(text) => Error::DiskFull(tell(text)),
            Error::ReadOnly(text) => Error::ReadOnly(tell(text)),
            Error::Corrupt(text) => Error::Corrupt(tell(text)),
            Error::NotADatabase(text) => Error::NotADatabase(tell(text)),
            other => other,
        }
    }

    /// A trigger of the application ignored one of our changes. Names the triggers, as far as they are known.
    pub fn ignored(what: &str, triggers: &[String]) -> Self {
        let names = if triggers.is_empty() { String::new() } else { format!(": {}", triggers.join(", ")) };
        Error::Ignored(format!(
            "{what} was not written: a trigger of the application on ingest_queue ignored the change (RAISE(IGNORE)), \
             and nothing was stored; change the trigger or drop it{names}"
        ))
    }

    /// An index names a row that its table does not have. A retry would find the same row again and never end.
    pub fn disagreement(what: impl std::fmt::Display) -> Self {
        Error::Corrupt(format!(
            "the database is damaged: a table and its index disagree about {what}; restore a backup, nothing was changed"
        ))
    }
}

/// Names items: the first ten of them.
fn ids(ids: &[i64]) -> String {
    let shown = ids.iter().take(10).map(i64::to_string).collect::<Vec<_>>().join(", ");
    let more = if ids.len() > 10 { ", …" } else { "" };
    format!("item{} {shown}{more}", if ids.len() == 1 { "" } else { "s" })
}
