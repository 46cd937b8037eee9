//! What people do to items and queues: bring back, copy, cancel, delete, pause.

use super::Queue;
use crate::clock::Now;
use crate::error::{Error, Result};
use crate::item::Status;

/// Rows removed in one transaction; others may write in between.
const REMOVED_AT_A_TIME: i64 = 1_000;

impl Queue {
    /// Brings failed items below their ceiling back to pending; returns how many.
    pub fn retry_failed(&self, max_retries: Option<u32>, delay: i64) -> Result<usize> {
        // An item without a ceiling of its own has the policy's, else the queue's.
        let otherwise = self.allowance(0, None).ceiling();
        let count = self.write(|tx| {
            let run_at = (delay > 0).then(|| tx.now().plus(delay));
            tx.retry_failed(self.name(), max_retries, otherwise, run_at)
        })?;
        self.ring();
        Ok(count)
    }

    /// Brings one failed or cancelled item back with a fresh allowance, in its old place.
    pub fn retry(&self, id: i64) -> Result<bool> {
        let brought_back = self.write(|tx| tx.retry(self.name(), id))?;
        self.ring();
        Ok(brought_back)
    }

    /// Enqueues a copy of an item and returns its id.
    pub fn replay(&self, id: i64) -> Result<Option<i64>> {
        let copy = self.write(|tx| tx.replay(self.name(), id))?;
        self.ring();
        Ok(copy)
    }

    /// Lets a delayed item fall due at once.
    pub fn run_now(&self, id: i64) -> Result<bool> {
        let changed = self.write(|tx| tx.run_now(self.name(), id))?;
        self.ring();
        Ok(changed)
    }

    /// Cancels an item. One that is being worked on comes to rest when its holder reports or its lease ends; its
    /// receipt is worth nothing from now on.
    pub fn cancel(&self, id: i64) -> Result<bool> {
        let cancelled = self.write(|tx| Ok(tx.cancel(self.name(), id)? || tx.cancel_running(self.name(), id)?))?;
        self.ring();
        Ok(cancelled)
    }

    /// Removes an item. If somebody holds it, that receipt is worth nothing from now on.
    pub fn delete(&self, id: i64) -> Result<bool> {
        let deleted = self.write(|tx| tx.delete(self.name(), id))?;
        self.ring();
        Ok(deleted)
    }

    /// Removes all items of one status, a few at a time; returns how many.
    pub fn purge(&self, status: Status) -> Result<usize> {
        let mut total = 0;
        loop {
            let removed = self.write(|tx| tx.purge(self.name(), status.as_str(), REMOVED_AT_A_TIME as usize))?;
            total += removed;
            if removed < REMOVED_AT_A_TIME as usize {
                self.ring();
                return Ok(total);
            }
        }
    }

    /// Removes items of one finished status that ended longer ago than `age_ms`, a few at a time; returns how many.
    pub fn prune(&self, status: Status, age_ms: i64) -> Result<usize> {
        if matches!(status, Status::Pending | Status::Processing | Status::Blocked) {
            return Err(Error::Invalid(format!("prune removes finished items, not {} ones", status.as_str())));
        }
        let (last, before) = self.write_lightly(|tx| {
            let before = Now(tx.now().ms().saturating_sub(age_ms)).text();
            Ok((tx.last_id()?, before))
        })?;
        let mut total = 0;
        let mut after = 0;
        while after < last {
            let ids = after..after.saturating_add(REMOVED_AT_A_TIME).min(last);
            after = ids.end;
            total += self.write(|tx| tx.prune(self.name(), status.as_str(), &before, ids))?;
        }
        Ok(total)
    }

    /// Gives the space of removed rows back to the file system.
    pub fn compact(&self) -> Result<()> {
        self.session()?.database.compact(self.wait())
    }

    /// Lets nobody claim from this queue, in any process, until `resume`. Says whether that changed anything.
    pub fn pause(&self) -> Result<bool> {
        let key = self.paused_key();
        self.write(|tx| {
            let was_running = tx.setting(&key)?.is_none();
            tx.set_setting(&key, "yes")?;
            Ok(was_running)
        })
    }

    pub fn resume(&self) -> Result<bool> {
        let resumed = self.write(|tx| tx.clear_setting(&self.paused_key()))?;
        self.ring();
        Ok(resumed)
    }

    pub fn is_paused(&self) -> Result<bool> {
        Ok(self.session()?.database.setting(&self.paused_key())?.is_some())
    }

    fn paused_key(&self) -> String {
        format!("paused:{}", self.name())
    }

    /// The group limit is enforced in the file, for all processes: the first to give one stores it, and a different one
    /// is refused.
    pub(super) fn settle_group_limit(&self, wanted: u32) -> Result<()> {
        let key = format!("group_limit:{}", self.name());
        self.write(|tx| match tx.setting(&key)? {
            Some(stored) if stored == wanted.to_string() => Ok(()),
            Some(stored) => Err(Error::SettingsConflict(format!(
                "this file has group_limit={stored} for the queue '{}', not {wanted}; leave the argument out to take the \
                 stored one",
                self.name()
            ))),
            None if wanted == 1 => Ok(()),
            None => {
                tx.set_setting(&key, &wanted.to_string())?;
                tx.groups_moved(self.name())
            }
        })
    }
}
