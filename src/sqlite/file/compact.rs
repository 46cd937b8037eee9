//! Compaction: rewriting a file without its free pages, and truncating its WAL.

use std::time::{Duration, Instant};

use super::Database;
use super::busy::busy;
use crate::error::{Error, Result};
use crate::store::LockWait;

/// Between two tries to truncate the WAL.
const TRUNCATE_PAUSE: Duration = Duration::from_millis(10);

impl Database {
    /// Rewrites the file without its free pages, and truncates the WAL. A reader can keep the WAL from being truncated
    /// and the file from shrinking. The call waits for such a reader without holding a lock; after `wait.limit` it
    /// leaves the rest to later checkpoints.
    pub fn compact(&self, wait: LockWait) -> Result<()> {
        let started = Instant::now();
        self.vacuum(wait).map_err(|error| self.about(error))?;
        while !self.try_to_truncate_wal().map_err(|error| self.about(error))? && started.elapsed() < wait.limit {
            self.check_can_continue(wait)?;
            std::thread::sleep(TRUNCATE_PAUSE.min(wait.limit));
        }
        Ok(())
    }

    fn vacuum(&self, wait: LockWait) -> Result<()> {
        let Some(mut writer) = self.writer.take(wait.limit) else { return Err(busy(&self.location, wait.limit)) };
        writer.patience.set(wait.limit);
        self.recover(&mut writer, wait.limit)?;
        let _alone = self.checkpointer.pause();
        let vacuumed = writer.connection().execute_batch("VACUUM").map_err(Error::from);
        self.checkpointer.mark_failure(&vacuumed);
        vacuumed.map_err(|error| match error {
            Error::Busy(_) => busy(&self.location, wait.limit),
            other => other,
        })
    }

    /// Returns whether the WAL is empty now. The passive checkpoint copies most of it before the write lock is taken,
    /// so that the lock is held briefly; no reader is waited for while it is held.
    fn try_to_truncate_wal(&self) -> Result<bool> {
        let Some(writer) = self.writer.take(Duration::ZERO) else { return Ok(false) };
        let Some(connection) = &writer.connection else { return Ok(false) };
        let _alone = self.checkpointer.pause();
        writer.patience.set(Duration::ZERO);
        let is_busy = |how| connection.query_row(how, [], |row| row.get::<_, bool>(0)).map_err(Error::from);
        let is_blocked =
            is_busy("PRAGMA wal_checkpoint(PASSIVE)").and_then(|_| is_busy("PRAGMA wal_checkpoint(TRUNCATE)"));
        self.checkpointer.mark_failure(&is_blocked);
        match is_blocked {
            Err(Error::Busy(_)) => Ok(false),
            result => result.map(|is_busy| !is_busy),
        }
    }
}
