//! One error enum. "Nothing there" is not an error; a stale receipt is an answer, not an error.

use std::path::PathBuf;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// An argument that cannot be used; nothing was read or written.
    #[error("{0}")]
    Invalid(String),

    #[error("{0}")]
    Busy(String),

    #[error("an item with the key {key:?} exists already: {id}")]
    Duplicate { key: String, id: i64 },

    #[error(
        "the queue would hold {pending} pending items and may hold {limit}; wait for workers, or raise max_pending"
    )]
    Full { pending: i64, limit: i64 },

    #[error("the batch has {added} new items and the queue may hold {limit}; make it smaller, or raise max_pending")]
    NeverRoom { added: i64, limit: i64 },

    #[error("{0}")]
    SettingsConflict(String),

    /// A signal handler raised while the call waited for other writers, or between two of its steps; the transaction it
    /// was about to make was not made.
    #[error("interrupted")]
    Interrupted,

    #[error("the claim on item {id} has ended: {why}")]
    Stale { id: i64, why: String },

    #[error("this queue is closed; open a new Queue to go on")]
    Closed,

    /// What a forked child cannot take over from its parent.
    #[error("{0} belongs to the parent process and does not cross a fork; {1}")]
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

    /// A file that SQLite would read together with a new database.
    #[error(
        "{}: left by an earlier file of that name, and SQLite would read it as a part of the copy; move it away or choose another name",
        .0.display()
    )]
    LeftBeside(PathBuf),

    #[error("{0}")]
    Storage(String),

    /// A trigger of the application ignored a change of ours.
    #[error("{0}")]
    Ignored(String),

    /// Reading or writing failed in the operating system, or went to a log that is no longer the file's.
    #[error("{0}")]
    Io(String),

    #[error("{0}")]
    DiskFull(String),

    #[error("{0}")]
    ReadOnly(String),

    #[error("{0}")]
    Corrupt(String),

    /// A test lets the process die here; see `faults`.
    #[error("{0}")]
    Crash(&'static str),

    #[error("{0}")]
    NotADatabase(String),
}

impl Error {
    /// Tells a storage error in other words.
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

    /// A trigger of the application ignored a change of ours; the names of those there are, as far as they are known.
    pub fn ignored(what: &str, triggers: &[String]) -> Self {
        let names = if triggers.is_empty() { String::new() } else { format!(": {}", triggers.join(", ")) };
        Error::Ignored(format!(
            "{what} was not written: a trigger of the application on ingest_queue ignored the change (RAISE(IGNORE)), \
             and nothing was stored; change the trigger or drop it{names}"
        ))
    }

    /// An index of the file names something that its table does not have: going on would mean to meet it for ever.
    pub fn disagreement(what: impl std::fmt::Display) -> Self {
        Error::Corrupt(format!(
            "the database is damaged: a table and its index disagree about {what}; restore a backup, nothing was changed"
        ))
    }
}
