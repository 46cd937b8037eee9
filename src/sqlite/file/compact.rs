//! Rewriting a file without its free space, and emptying its WAL.

use std::time::{Duration, Instant};

use super::busy::busy;
use super::{Database, Wait};
use crate::error::{Error, Result};

/// Between two tries to empty the log.
const EMPTYING_PAUSE: Duration = Duration::from_millis(10);

impl Database {
    /// Rewrites the file without the space that removed rows left, and empties the log. A reader can keep the log from
    /// being emptied, and the file from shrinking: it is waited for, with no lock in hand, and then left to later folds.
    pub fn compact(&self, wait: Wait) -> Result<()> {
        let started = Instant::now();
        self.vacuum(wait).map_err(|error| self.about(error))?;
        while !self.try_to_empty_log().map_err(|error| self.about(error))? && started.elapsed() < wait.limit {
            self.may_go_on(wait)?;
            std::thread::sleep(EMPTYING_PAUSE.min(wait.limit));
        }
        Ok(())
    }

    fn vacuum(&self, wait: Wait) -> Result<()> {
        let Some(mut writer) = self.writer.take(wait.limit) else { return Err(busy(&self.place, wait.limit)) };
        writer.patience.set(wait.limit);
        self.mend(&mut writer, wait.limit)?;
        let _alone = self.folding.pause();
        let vacuumed = writer.connection().execute_batch("VACUUM").map_err(Error::from);
        self.folding.note(&vacuumed);
        vacuumed.map_err(|error| match error {
            Error::Busy(_) => busy(&self.place, wait.limit),
            other => other,
        })
    }

    /// Says whether the log is empty now. Most is folded before the write lock is taken, and no reader is waited for with
    /// the lock in hand.
    fn try_to_empty_log(&self) -> Result<bool> {
        let Some(writer) = self.writer.take(Duration::ZERO) else { return Ok(false) };
        let Some(connection) = &writer.connection else { return Ok(false) };
        let _alone = self.folding.pause();
        writer.patience.set(Duration::ZERO);
        let is_busy = |how| connection.query_row(how, [], |row| row.get::<_, bool>(0)).map_err(Error::from);
        let folded = is_busy("PRAGMA wal_checkpoint(PASSIVE)").and_then(|_| is_busy("PRAGMA wal_checkpoint(TRUNCATE)"));
        self.folding.note(&folded);
        match folded {
            Err(Error::Busy(_)) => Ok(false),
            folded => folded.map(|is_busy| !is_busy),
        }
    }
}
