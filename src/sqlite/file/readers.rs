//! Readers: connections beside the writer, borrowed by calls and kept open for the next one.

use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::open::{OpenMode, connect};
use super::writer::Patience;
use super::{Database, Location};
use crate::error::Result;

/// Idle readers kept open; more are opened when needed and closed after use.
const IDLE_READERS: usize = 4;

#[derive(Default)]
pub(super) struct Readers {
    pub(super) idle: Vec<Connection>,
    /// Rises when all connections are discarded: a reader that was borrowed before then is not kept.
    pub(super) epoch: u64,
}

/// A reader while a call uses it.
pub struct BorrowedReader {
    connection: Connection,
    epoch: u64,
}

impl BorrowedReader {
    /// Changes whenever another connection has committed.
    pub fn data_version(&self) -> Result<i64> {
        let mut statement = self.connection.prepare_cached("PRAGMA data_version")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }
}

impl Database {
    /// Runs `look` on a reader; it sees everything committed before the call.
    pub fn read<T>(&self, look: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        if let Location::Memory(_) = self.location {
            let writer = self.writer.take(Duration::MAX).expect("a wait without end ends with the writer");
            return look(writer.connection());
        }
        let reader = self.borrow_reader().map_err(|error| self.about(error))?;
        let value = look(&reader.connection).map_err(|error| self.about(error))?;
        self.return_reader(reader);
        Ok(value)
    }

    /// Borrows a reader for a watcher; `None` in memory, where no other process writes.
    pub fn borrow_reader_if_file(&self) -> Result<Option<BorrowedReader>> {
        match &self.location {
            Location::Memory(_) => Ok(None),
            Location::File(_) => self.borrow_reader().map(Some).map_err(|error| self.about(error)),
        }
    }

    fn borrow_reader(&self) -> Result<BorrowedReader> {
        let (idle, epoch) = {
            let mut readers = self.readers.lock();
            (readers.idle.pop(), readers.epoch)
        };
        let connection = idle.map_or_else(|| self.reader(), Ok)?;
        Ok(BorrowedReader { connection, epoch })
    }

    pub fn return_reader(&self, reader: BorrowedReader) {
        let mut readers = self.readers.lock();
        if readers.epoch != reader.epoch {
            close_without_checkpoint(reader.connection);
        } else if readers.idle.len() < IDLE_READERS {
            readers.idle.push(reader.connection);
        }
    }

    fn reader(&self) -> Result<Connection> {
        let reader = connect(&self.location, OpenMode::ExistingOnly, &Patience::new(Duration::from_secs(30)))?;
        reader.execute_batch("PRAGMA query_only = ON")?;
        Ok(reader)
    }
}

/// Closes a connection whose page cache is unreliable: a checkpoint could write wrong pages.
pub(super) fn close_without_checkpoint(connection: Connection) {
    // The connection is closed either way.
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
}
