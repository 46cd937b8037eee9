//! Opening: which files are refused, the settings of every connection, and the first connection of a database.

use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::super::references::References;
use super::super::{locks, migrate};
use super::busy::busy;
use super::checkpointer::Checkpointer;
use super::group_commit::GroupCommit;
use super::identity::Identity;
use super::writer::{Patience, Writer, WriterState};
use super::{Database, Location};
use crate::error::{Error, Result};
use crate::process;
use crate::store::CommitSync;
use crate::sync::{Exclusive, Mutex};
use crate::wake::WakeSignal;

/// Prepared statements cached by each connection.
const KEPT_STATEMENTS: usize = 64;
/// How long a call that is not about an open queue waits for other writers.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// After a checkpoint the WAL file keeps at most this size.
pub(super) const WAL_BYTES_KEPT: i64 = 16 * 1024 * 1024;

impl Database {
    pub(super) fn create(location: Location, limit: Duration) -> Result<Self> {
        let patience = Patience::new(limit);
        let (mut connection, prepared) = open(&location, OpenMode::CreateIfMissing, &patience, limit)?;
        let identity = match &location {
            Location::Memory(_) => Identity(0, 0),
            Location::File(path) => {
                Identity::of(path).ok_or_else(|| Error::Storage("the file vanished while it was opened".into()))?
            }
        };
        let checkpointer = checkpointer(&location);
        checkpointer.watch(&mut connection)?;
        let state = WriterState::install(&connection)?;
        let mut writer = Writer {
            connection: Some(connection),
            patience,
            commit_sync: CommitSync::Full,
            checked_at: None,
            turns: Box::default(),
            state,
        };
        for commit_sync in [CommitSync::Normal, CommitSync::Full] {
            writer.switch(commit_sync)?;
        }
        Ok(Self {
            location,
            writer: ManuallyDrop::new(Exclusive::new(writer)),
            readers: ManuallyDrop::default(),
            wake_signal: WakeSignal::default(),
            checkpointer,
            group_commit: GroupCommit::default(),
            waits_to_renew: AtomicBool::new(false),
            sign: Mutex::default(),
            awaited_ends: Mutex::default(),
            live_in_memory: Arc::default(),
            shape: prepared.shape,
            recreated: prepared.recreated,
            references: References::default(),
            identity,
            generation: process::generation(),
        })
    }
}

fn checkpointer(location: &Location) -> Arc<Checkpointer> {
    let location = location.clone();
    Checkpointer::new(move || connect(&location, OpenMode::ExistingOnly, &Patience::new(Duration::ZERO)))
}

/// Opens a connection, and creates or migrates our tables if that is needed.
pub(super) fn open(
    location: &Location,
    mode: OpenMode,
    patience: &Patience,
    limit: Duration,
) -> Result<(Connection, migrate::Prepared)> {
    // While the connection is open: without one, the locks of other processes cannot be queried.
    let explain = |error| match error {
        Error::Busy(_) => busy(location, limit),
        other => other,
    };
    let mut connection = connect(location, mode, patience).map_err(explain)?;
    let prepared = migrate::prepare(&mut connection, location, limit).map_err(explain)?;
    Ok((connection, prepared))
}

/// Whether a missing file is created. Only the first open of a queue creates one: a file that vanished under an open
/// queue is an error, not an empty queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenMode {
    CreateIfMissing,
    ExistingOnly,
}

/// Returns whether an existing file has a queue in it, ours or membox's. Writes nothing.
pub fn has_queue(path: &Path) -> Result<bool> {
    let location = Location::resolve(path)?;
    let found = connect_existing(&location).and_then(|connection| migrate::has_queue(&connection));
    locks::sweep();
    found.map_err(|error| error.about(path))
}

/// Opens a connection to an existing file, for a single call that is not about an open queue.
pub fn connect_existing(location: &Location) -> Result<Connection> {
    connect(location, OpenMode::ExistingOnly, &Patience::new(PATIENCE))
}

/// Opens a connection. Every connection of this crate is opened here, except the target of a backup.
pub(super) fn connect(location: &Location, mode: OpenMode, patience: &Patience) -> Result<Connection> {
    let mut flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, mode == OpenMode::CreateIfMissing);
    locks::install()?;
    let mut connection = match location {
        Location::Memory(_) => Connection::open_in_memory_with_flags(flags)?,
        Location::File(path) => {
            // SQLite treats a one-byte file as empty and would overwrite it.
            if std::fs::metadata(path).is_ok_and(|file| file.len() == 1) {
                return Err(Error::NotADatabase(
                    "the file has one byte and is not a database; it was left as it is".into(),
                ));
            }
            check_wal_has_database(path, mode)?;
            if locks::is_hard_linked(path) {
                return Err(Error::Storage(
                    "the file has several names (hard links), and each would have a log of its own; use one name, or a \
                     symbolic link"
                        .into(),
                ));
            }
            if locks::is_mounted(path) {
                return Err(Error::Storage(
                    "the file itself is mounted here (a bind mount, as `docker -v FILE:FILE` makes one), so it has \
                     another name elsewhere, and each would have a log of its own; mount its directory instead"
                        .into(),
                ));
            }
            let connection = Connection::open_with_flags(path, flags).map_err(|error| cannot_open(path, error))?;
            locks::check_shareable(path)?;
            if connection.is_readonly("main")? {
                return Err(Error::ReadOnly("the file cannot be written; check its permissions".into()));
            }
            connection
        }
    };
    connection.busy_handler(Some(patience.handler()))?;
    // `checkpointer.rs` runs the checkpoints, not the caller that commits.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
    // Without it SQLite plans a cached statement again whenever a value is bound: 100 µs per claim.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Against a damaged or hostile file: pages are checked when they are read, and the schema is not trusted.
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    // SQLite's default: our deletes must not cascade into other tables. See `references.rs`.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
    Ok(connection)
}

/// Refuses a WAL whose database is missing or empty: SQLite would treat the database as new and delete the WAL. The WAL
/// is checked first: another process may be creating both right now, and it creates the database before its WAL.
fn check_wal_has_database(path: &Path, mode: OpenMode) -> Result<()> {
    let mut wal = path.to_owned().into_os_string();
    wal.push("-wal");
    if !std::fs::metadata(wal).is_ok_and(|wal| wal.len() > 0) {
        return Ok(());
    }
    match std::fs::metadata(path) {
        Ok(file) if file.len() == 0 => Err(Error::Corrupt(
            "the file is empty, but its log (-wal) is not; restore a backup, nothing was changed".into(),
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && mode == OpenMode::CreateIfMissing => {
            Err(Error::Storage(
                "the file is missing, but its log (-wal) is there and may hold acknowledged items: the file was moved or \
                 removed alone. Put it back beside its log; to begin anew, move the log away. Nothing was changed"
                    .into(),
            ))
        }
        _ => Ok(()),
    }
}

/// Explains why a file cannot be opened. SQLite needs a writable directory, too, for the WAL.
fn cannot_open(path: &Path, error: rusqlite::Error) -> Error {
    let directory = path.parent().unwrap_or(Path::new("/"));
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::CannotOpen)
            if !path.exists() && directory.exists() && locks::is_writable(directory) =>
        {
            Error::Storage("the file is gone: it was moved or deleted while the queue was open".into())
        }
        Some(rusqlite::ErrorCode::CannotOpen) if path.exists() && !locks::is_writable(path) => {
            Error::ReadOnly(format!("the file cannot be written ({error}); check its permissions"))
        }
        Some(rusqlite::ErrorCode::CannotOpen) if !locks::is_writable(directory) => {
            Error::ReadOnly(format!("the directory cannot be written ({error}); check its permissions"))
        }
        _ => error.into(),
    }
}
