//! Connections that read beside the writer: lent, taken back, kept open for the next call.

use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::open::{Making, connect};
use super::writer::Patience;
use super::{Database, Place};
use crate::error::Result;

/// Readers kept open beside the writer; more are opened when needed and closed after use.
const IDLE_READERS: usize = 4;

#[derive(Default)]
pub(super) struct Readers {
    pub(super) idle: Vec<Connection>,
    /// Rises when all connections are given up: one that was in use then is not put back.
    pub(super) epoch: u64,
}

/// A connection in somebody's hands.
pub struct Lent {
    connection: Connection,
    epoch: u64,
}

impl Lent {
    /// Changes whenever another connection has committed.
    pub fn data_version(&self) -> Result<i64> {
        let mut statement = self.connection.prepare_cached("PRAGMA data_version")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }
}

impl Database {
    /// Runs `look` on a connection beside the writer; it sees everything committed before the call.
    pub fn read<T>(&self, look: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        if let Place::Memory(_) = self.place {
            let writer = self.writer.take(Duration::MAX).expect("a wait without end ends with the writer");
            return look(writer.connection());
        }
        let lent = self.borrow_reader().map_err(|error| self.about(error))?;
        let value = look(&lent.connection).map_err(|error| self.about(error))?;
        self.take_back(lent);
        Ok(value)
    }

    /// A connection beside the writer for somebody who watches; `None` in memory, where nobody else writes.
    pub fn lend(&self) -> Result<Option<Lent>> {
        match &self.place {
            Place::Memory(_) => Ok(None),
            Place::File(_) => self.borrow_reader().map(Some).map_err(|error| self.about(error)),
        }
    }

    fn borrow_reader(&self) -> Result<Lent> {
        let (idle, epoch) = {
            let mut readers = self.readers.lock();
            (readers.idle.pop(), readers.epoch)
        };
        let connection = idle.map_or_else(|| self.reader(), Ok)?;
        Ok(Lent { connection, epoch })
    }

    pub fn take_back(&self, lent: Lent) {
        let mut readers = self.readers.lock();
        if readers.epoch != lent.epoch {
            abandon(lent.connection);
        } else if readers.idle.len() < IDLE_READERS {
            readers.idle.push(lent.connection);
        }
    }

    fn reader(&self) -> Result<Connection> {
        let reader = connect(&self.place, Making::Existing, &Patience::new(Duration::from_secs(30)))?;
        reader.execute_batch("PRAGMA query_only = ON")?;
        Ok(reader)
    }
}

/// Closes a connection without the checkpoint that could write what it only believes.
pub(super) fn abandon(connection: Connection) {
    // Only makes the close gentler; the connection is dropped either way.
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
}
