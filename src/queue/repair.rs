//! Administrative verbs on items and queues: retry, copy, cancel, delete, pause, back up.

use std::path::Path;

use super::Queue;
use super::portions::AT_A_TIME;
use super::run::{Change, Verb};
use super::target::{Target, Targets};
use crate::error::{Error, Result};
use crate::model::{Event, Status, When};
use crate::store::ReferencedItem;

/// How many of the items that need another an error names.
pub(super) const NAMED_AT_MOST: i64 = 100;

impl Queue {
    /// Returns failed items below their retry limit to pending, in batches; returns how many. An item that fails again
    /// meanwhile is not retried twice.
    pub fn retry_failed(&self, max_retries: Option<u32>, delay: i64) -> Result<usize> {
        self.reread_settings()?;
        // An item without its own retry limit has the retry policy's, else the queue's.
        let otherwise = self.settings().settings.retry_state(0, None).limit();
        let ids = self.read(|view| view.retriable(self.name(), max_retries, otherwise))?;
        self.bring_back(&ids, delay, |tx, id, run_at| tx.retry_failed(self.name(), id, max_retries, otherwise, run_at))
    }

    /// Returns several failed or cancelled items to pending with their retries reset, including dead letters, in
    /// batches; returns how many. Of several items with one key, only the latest is retried.
    pub fn retry_many(&self, targets: &Targets, delay: i64) -> Result<usize> {
        if let Targets::Status(status) = targets {
            retriable_status(*status)?;
        }
        let mut ids = self.locate_all(targets)?;
        ids.sort_unstable_by(|one, other| other.cmp(one));
        self.bring_back(&ids, delay, |tx, id, run_at| tx.retry(self.name(), id, run_at))
    }

    /// Enqueues copies of several items, in batches; returns how many.
    pub fn replay_many(&self, targets: &Targets, delay: i64) -> Result<usize> {
        if let Targets::Status(status) = targets
            && !matches!(status, Status::Done | Status::Failed | Status::Cancelled)
        {
            let text = format!("replay copies done, failed or cancelled items, not {} ones", status.as_str());
            return Err(Error::Invalid(text));
        }
        let ids = self.locate_all(targets)?;
        self.bring_back(&ids, delay, |tx, id, run_at| Ok(tx.replay(self.name(), id, run_at)?.is_some()))
    }

    fn bring_back(
        &self,
        ids: &[i64],
        delay: i64,
        bring_back: impl Fn(&Change, i64, Option<i64>) -> Result<bool> + Send + Sync,
    ) -> Result<usize> {
        if ids.is_empty() {
            return Ok(0);
        }
        let mut portions = ids.chunks(AT_A_TIME as usize);
        self.in_portions(Verb::Repair, |tx| {
            let run_at = due(tx, delay);
            let mut count = 0;
            for id in portions.next().unwrap_or_default() {
                count += usize::from(bring_back(tx, *id, run_at)?);
            }
            Ok((count, portions.len() > 0))
        })
    }

    /// Runs a change of one item. Without such an item, nothing is changed.
    pub(super) fn change<T: Default + Send>(
        &self,
        target: &Target,
        change: impl FnOnce(&Change, i64) -> Result<T> + Send,
    ) -> Result<T> {
        self.run(Verb::Repair, |tx| match self.locate(tx.view(), target)? {
            Some(id) => change(tx, id),
            None => Ok(T::default()),
        })
    }

    /// Returns one failed or cancelled item to pending with its retries reset, in its old place.
    pub fn retry(&self, target: &Target, delay: i64) -> Result<bool> {
        self.change(target, |tx, id| {
            tx.tell(Event::Claimable);
            tx.retry(self.name(), id, due(tx, delay))
        })
    }

    /// Enqueues a copy of an item and returns its id.
    pub fn replay(&self, target: &Target, delay: i64) -> Result<Option<i64>> {
        self.change(target, |tx, id| {
            tx.tell(Event::Claimable);
            tx.replay(self.name(), id, due(tx, delay))
        })
    }

    /// Makes a delayed item due at once.
    pub fn run_now(&self, target: &Target) -> Result<bool> {
        self.change(target, |tx, id| {
            tx.tell(Event::Claimable);
            tx.run_now(self.name(), id)
        })
    }

    /// Reschedules a pending item to an earlier or later time.
    pub fn run_later(&self, target: &Target, when: When) -> Result<bool> {
        self.change(target, |tx, id| {
            tx.tell(Event::Claimable);
            tx.run_later(self.name(), id, when.due(tx.now()))
        })
    }

    /// Cancels an item. An item in progress becomes `cancelled` when its worker reports or its lease ends. Its receipt
    /// is invalid from now on.
    pub fn cancel(&self, target: &Target) -> Result<bool> {
        self.change(target, |tx, id| {
            tx.tell(Event::Removed { id });
            self.cancel_one(tx, id)
        })
    }

    /// Cancels an item, whatever it does. One that another item's end has cancelled stays so.
    pub(super) fn cancel_one(&self, tx: &Change, id: i64) -> Result<bool> {
        let name = self.name();
        Ok(tx.cancel(name, id)? || tx.cancel_running(name, id)? || tx.cancel_for_good(name, id)?)
    }

    /// Removes an item, unless another item needs it or a foreign key of another table refers to it. If the item is
    /// claimed, its receipt is invalid from now on.
    pub fn delete(&self, target: &Target) -> Result<bool> {
        self.change(target, |tx, id| {
            let Some(item) = tx.get(self.name(), id)? else { return Ok(false) };
            let needed_by = tx.needed_by(id, NAMED_AT_MOST)?;
            if !needed_by.is_empty() {
                return Err(Error::Needed { id, needed_by });
            }
            self.delete_one(tx, &item.queue, id)
        })
    }

    /// Removes an item that no other needs, unless a foreign key refers to it.
    pub(super) fn delete_one(&self, tx: &Change, queue: &str, id: i64) -> Result<bool> {
        match tx.kept(queue, &[id])?.first() {
            None => {
                tx.tell(Event::Removed { id });
                tx.delete(queue, id)
            }
            Some(ReferencedItem { table, .. }) => Err(referred_to(id, table)),
        }
    }

    /// Stops all claims from this queue, in every process, until `resume`. Returns whether that changed anything.
    pub fn pause(&self) -> Result<bool> {
        let key = self.paused_key();
        self.run(Verb::Configure, |tx| {
            let was_running = tx.setting(&key)?.is_none();
            tx.set_setting(&key, "yes")?;
            Ok(was_running)
        })
    }

    pub fn resume(&self) -> Result<bool> {
        self.run(Verb::Configure, |tx| {
            tx.tell(Event::Claimable);
            tx.clear_setting(&self.paused_key())
        })
    }

    pub fn is_paused(&self) -> Result<bool> {
        Ok(self.read(|view| view.setting(&self.paused_key()))?.is_some())
    }

    /// Copies a snapshot of the whole file to a new file.
    pub fn backup(&self, target: &Path) -> Result<()> {
        self.session()?.store.backup(target, self.wait())
    }

    pub(super) fn paused_key(&self) -> String {
        format!("paused:{}", self.name())
    }
}

/// Refuses to retry items of a status that cannot be retried.
pub(super) fn retriable_status(status: Status) -> Result<()> {
    if matches!(status, Status::Failed | Status::Cancelled) {
        return Ok(());
    }
    Err(Error::Invalid(format!("retry brings back failed or cancelled items, not {} ones", status.as_str())))
}

/// The error for an item that a row of another table refers to.
pub(super) fn referred_to(id: i64, table: &str) -> Error {
    Error::Storage(format!(
        "item {id} was not deleted: a row of the table {table} refers to it by a foreign key; delete or change that row \
         first"
    ))
}

pub(super) fn due(tx: &Change, delay: i64) -> Option<i64> {
    (delay > 0).then(|| tx.now().plus(delay))
}
