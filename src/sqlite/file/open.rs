//! Opening a file: what is refused, what a connection is set to, and the first connection of a database.

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
use super::checkpointer::Folding;
use super::group_commit::Joint;
use super::identity::Identity;
use super::writer::{Flush, Patience, Writer};
use super::{Database, Place};
use crate::error::{Error, Result};
use crate::process;
use crate::sync::{Mutex, Seat};
use crate::wake::Bell;

const KEPT_STATEMENTS: usize = 64;
/// What a checkpointed WAL may keep of its size.
pub(super) const WAL_BYTES_KEPT: i64 = 16 * 1024 * 1024;

impl Database {
    pub(super) fn create(place: Place, limit: Duration) -> Result<Self> {
        let patience = Patience::new(limit);
        let (mut connection, prepared) = open(&place, Making::IfMissing, &patience, limit)?;
        let identity = match &place {
            Place::Memory(_) => Identity(0, 0),
            Place::File(path) => {
                Identity::of(path).ok_or_else(|| Error::Storage("the file vanished while it was opened".into()))?
            }
        };
        let folding = folding(&place);
        folding.watch(&mut connection)?;
        let mut writer = Writer {
            connection: Some(connection),
            patience,
            flush: Flush::Full,
            checked_at: None,
            turns: Box::default(),
        };
        for flush in [Flush::Normal, Flush::Full] {
            writer.switch(flush)?;
        }
        Ok(Self {
            place,
            writer: ManuallyDrop::new(Seat::new(writer)),
            readers: ManuallyDrop::default(),
            bell: Bell::default(),
            folding,
            joint: Joint::default(),
            waits_to_renew: AtomicBool::new(false),
            sign: Mutex::default(),
            shape: prepared.shape,
            mended: prepared.mended,
            references: References::default(),
            identity,
            generation: process::generation(),
        })
    }
}

/// What folds the log of a database back.
fn folding(place: &Place) -> Arc<Folding> {
    let place = place.clone();
    Folding::new(move || connect(&place, Making::Existing, &Patience::new(Duration::ZERO)))
}

/// A connection to a file that is known to have our tables.
pub(super) fn open(
    place: &Place,
    making: Making,
    patience: &Patience,
    limit: Duration,
) -> Result<(Connection, migrate::Prepared)> {
    // Told while the connection is open: without it the locks of others cannot be asked for.
    let tell = |error| match error {
        Error::Busy(_) => busy(place, limit),
        other => other,
    };
    let mut connection = connect(place, making, patience).map_err(tell)?;
    let prepared = migrate::prepare(&mut connection, place, limit).map_err(tell)?;
    Ok((connection, prepared))
}

/// Whether a file that is not there may be made. Only the first open of a queue makes one: a file that vanished under
/// an open queue is an error, not an empty queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Making {
    IfMissing,
    Existing,
}

/// Whether a file that exists has a queue in it, ours or membox's. Nothing is written.
pub fn has_queue(path: &Path) -> Result<bool> {
    let place = Place::resolve(path)?;
    let found = connect(&place, Making::Existing, &Patience::new(Duration::from_secs(30)));
    let found = found.and_then(|connection| migrate::has_queue(&connection));
    locks::sweep();
    found.map_err(|error| error.about(path))
}

/// Every connection of this crate is opened here, but for the target of a backup.
pub(super) fn connect(place: &Place, making: Making, patience: &Patience) -> Result<Connection> {
    let mut flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, making == Making::IfMissing);
    locks::install()?;
    let mut connection = match place {
        Place::Memory(_) => Connection::open_in_memory_with_flags(flags)?,
        Place::File(path) => {
            // SQLite treats a one-byte file as empty and would overwrite it.
            if std::fs::metadata(path).is_ok_and(|file| file.len() == 1) {
                return Err(Error::NotADatabase(
                    "the file has one byte and is not a database; it was left as it is".into(),
                ));
            }
            check_log_has_file(path, making)?;
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
    // The log is folded back by `checkpoint.rs`, not by whoever happens to commit.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
    // Without it SQLite plans a cached statement anew whenever a value is bound: 100 µs a claim.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A damaged or hostile file: pages are looked over when they are read, and its schema is not trusted.
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    // As SQLite has it by default: a delete of ours must not reach into other tables. See `references.rs`.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
    Ok(connection)
}

/// A database is there, and not empty, once it has a log; SQLite would take it for a new one and remove the log. The log
/// is looked at first: another process may be making both right now, and makes the file before its log.
fn check_log_has_file(path: &Path, making: Making) -> Result<()> {
    let mut log = path.to_owned().into_os_string();
    log.push("-wal");
    if !std::fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return Ok(());
    }
    match std::fs::metadata(path) {
        Ok(file) if file.len() == 0 => Err(Error::Corrupt(
            "the file is empty, but its log (-wal) is not; restore a backup, nothing was changed".into(),
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && making == Making::IfMissing => {
            Err(Error::Storage(
                "the file is missing, but its log (-wal) is there and may hold acknowledged items: the file was moved or \
                 removed alone. Put it back beside its log; to begin anew, move the log away. Nothing was changed"
                    .into(),
            ))
        }
        _ => Ok(()),
    }
}

/// A file that cannot be opened because its directory cannot be written is a matter of permissions.
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
