//! After an I/O error: fresh connections, and a WAL whose contents are on the disk.

use std::time::Duration;

use rusqlite::Connection;

use super::super::locks;
use super::open::{OpenMode, open};
use super::readers::close_without_checkpoint;
use super::writer::{Rollback, Writer, WriterState, run};
use super::{Database, Location};
use crate::error::Result;
use crate::store::CommitSync;

impl Database {
    /// Opens a fresh connection and rewrites the WAL, if an I/O error made the writer's connection unusable.
    pub(super) fn recover(&self, writer: &mut Writer, left: Duration) -> Result<()> {
        if self.checkpointer.take_failure() {
            self.discard_connections(writer);
        }
        if writer.connection.is_none() {
            let (mut connection, _) = open(&self.location, OpenMode::ExistingOnly, &writer.patience, left)?;
            self.rewrite_wal(&connection)?;
            self.checkpointer.watch(&mut connection)?;
            writer.state = WriterState::install(&connection)?;
            writer.connection = Some(connection);
            writer.commit_sync = CommitSync::Full;
        }
        Ok(())
    }

    /// Writes the WAL over itself and syncs it. After an I/O error it may have a gap that only the page cache hides:
    /// the system counts pages as written although their sync failed. A commit acknowledged later must not lie behind a
    /// gap.
    ///
    /// This is sufficient; the WAL need not restart, which a reader could prevent forever. A power cut leaves the
    /// database as of the WAL's last restart, which synced it, plus any of the pages checkpointed since. SQLite's
    /// recovery takes all of those pages from the WAL, which is complete. Frames that the failed call wrote after the
    /// last commit are overwritten by the next one. A checkpoint whose sync failed does not count as done, and is
    /// repeated.
    fn rewrite_wal(&self, connection: &Connection) -> Result<()> {
        let Some(wal) = self.wal_path() else { return Ok(()) };
        run(connection, "BEGIN IMMEDIATE")?;
        // No other connection writes to the WAL, or truncates it, while this one has the write lock.
        let _guard = Rollback(connection);
        locks::rewrite_wal(&wal)
    }

    /// Closes all connections; the next call opens fresh ones. After an I/O error the page cache and the disk may
    /// differ, and a WAL that was replaced belongs to no file.
    pub(super) fn discard_connections(&self, writer: &mut Writer) {
        if let Location::File(_) = self.location {
            let mut readers = self.readers.lock();
            readers.epoch += 1;
            drop(self.checkpointer.pause());
            writer.connection.take().into_iter().chain(readers.idle.drain(..)).for_each(close_without_checkpoint);
        }
    }
}
