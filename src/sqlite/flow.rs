//! Dependencies, deadlines and answers on SQLite. The rule for dependents is a trigger, `membox_queue_look`, so that it
//! holds for what plain SQL does, too.

use rusqlite::{ToSql, params};

use super::{Transaction, padding, statement};
use crate::error::{Error, Result};
use crate::model::{Answer, IfFailed, Status};
use crate::store::{EnqueueTx, FlowTx, Updated, WhenDone, missing};

/// How many dependents one transaction updates.
pub const DEPENDENTS_AT_A_TIME: i64 = 1_000;
/// About how many rows change for each dependent: its own, its dependency and a count.
const CHANGES_EACH: u64 = 3;

impl FlowTx for Transaction<'_> {
    fn update_dependents(&self, ended: &[i64]) -> Result<Updated> {
        let mut updated = Updated::default();
        let mut left = DEPENDENTS_AT_A_TIME + ended.len() as i64;
        let is_quiet = !ended.is_empty() && !self.may_be_needed()?;
        if is_quiet || self.awaited()?.is_none() {
            return Ok(updated);
        }
        for id in ended {
            if left > 0 && self.finds(statement!("is_awaited"), params![id])? {
                left -= self.update_dependents_of(*id, left, &mut updated)?;
            }
        }
        // Those that were cancelled are awaited in turn.
        while left > 0 {
            let Some(next) = self.awaited()? else { return Ok(updated) };
            left -= self.update_dependents_of(next, left, &mut updated)?;
        }
        updated.is_more = self.awaited()?.is_some();
        Ok(updated)
    }

    fn expire(&self, limit: usize) -> Result<usize> {
        self.change_items(statement!("expire"), params![self.now_text(), self.now.ms(), limit as i64])
    }

    fn wait_for(&self, id: i64, needs: &[i64], if_failed: IfFailed) -> Result<bool> {
        for needed in needs {
            if self.finds(statement!("after_circle"), params![id, needed])? {
                return Err(Error::Invalid(format!(
                    "item {id} cannot wait for item {needed}, which waits for item {id}: neither would ever run"
                )));
            }
        }
        let is_open = self.check_needs(needs)?;
        self.add_needs(id, needs, if_failed)?;
        Ok(is_open)
    }

    fn answer(&self, queue: &str, id: i64, answer: &Answer) -> Result<bool> {
        self.let_triggers_fire()?;
        let mut statement = self.connection.prepare_cached(statement!("answer"))?;
        Ok(with_answer_values(queue, id, answer, self.now_text(), |values| statement.execute(values))? == 1)
    }

    fn has_answer(&self, id: i64) -> Result<bool> {
        self.finds(statement!("has_answer"), params![id, self.now.ms()])
    }

    fn clean_up_done(&self, queue: &str, id: i64, when_done: WhenDone) -> Result<()> {
        self.clean_up(queue, id, when_done)
    }

    fn put_answer(&self, queue: &str, key: &str, key_until: i64, answer: &Answer) -> Result<i64> {
        self.let_triggers_fire()?;
        let mut statement = self.connection.prepare_cached(statement!("answer_add"))?;
        let added = with_kept_answer_values(queue, key, key_until, answer, self.now_text(), |values| {
            statement.execute(values).map_err(|error| self.not_inserted(error))
        });
        match added? {
            0 => Err(self.without_effect("the answer")),
            _ => Ok(self.connection.last_insert_rowid()),
        }
    }

    fn cancel_for_good(&self, queue: &str, id: i64) -> Result<bool> {
        Ok(self.run(statement!("cancel_for_good"), params![id, queue])? == 1)
    }

    fn needed(&self, ids: &[i64]) -> Result<Vec<i64>> {
        let mut needed = Vec::new();
        if ids.is_empty() || !self.has_dependencies()? {
            return Ok(needed);
        }
        for id in ids {
            if self.finds(statement!("needed_by"), params![id, 1])? {
                needed.push(*id);
            }
        }
        Ok(needed)
    }

    fn has_dependencies(&self) -> Result<bool> {
        self.finds(statement!("has_after"), params![])
    }
}

impl Transaction<'_> {
    /// An item whose dependents are to be updated.
    fn awaited(&self) -> Result<Option<i64>> {
        self.one(statement!("awaited"), params![])
    }

    /// Updates up to `most` dependents of an item. Returns about how many, and at least one.
    fn update_dependents_of(&self, id: i64, most: i64, updated: &mut Updated) -> Result<i64> {
        let before = self.connection.total_changes();
        self.change_items(statement!("look"), params![id, most, self.now_text()])?;
        let changes = self.connection.total_changes() - before;
        // One change is the note itself.
        updated.any |= changes > 1;
        Ok(i64::try_from(changes / CHANGES_EACH).unwrap_or(most).max(1))
    }

    /// Refuses items that do not exist. Returns whether one of them is not done.
    pub(super) fn check_needs(&self, needs: &[i64]) -> Result<bool> {
        let mut is_open = false;
        for id in needs {
            let Some(status) = self.one::<String>(statement!("status"), params![id])? else {
                return Err(missing(*id));
            };
            is_open |= status != Status::Done.as_str();
        }
        Ok(is_open)
    }

    /// Makes an item wait for others, which exist. What has become of them already takes effect at once.
    pub(super) fn add_needs(&self, id: i64, needs: &[i64], if_failed: IfFailed) -> Result<()> {
        let first: i64 = self.one(statement!("after_places"), params![id])?.unwrap_or(0);
        self.dependencies_changed();
        for (place, needed) in (first..).zip(needs) {
            self.run(statement!("after_add"), params![id, place, needed, if_failed.as_str()])?;
        }
        let mut ended = Vec::new();
        for needed in needs {
            let status = self.one::<String>(statement!("status"), params![needed])?;
            if matches!(status.as_deref(), Some("failed" | "cancelled")) && !ended.contains(needed) {
                self.run(statement!("awaited_add"), params![needed])?;
                ended.push(*needed);
            }
        }
        if !ended.is_empty() {
            self.update_dependents(&ended)?;
        }
        Ok(())
    }
}

/// The values of `answer.sql`, in its order.
pub fn with_answer_values<T>(
    queue: &str,
    id: i64,
    answer: &Answer,
    now: &str,
    run: impl FnOnce(&[&dyn ToSql]) -> T,
) -> T {
    let bytes = padding::finished(answer.status(), None);
    run(params![id, queue, answer.status(), answer.result(), answer.error(), now, bytes.0, bytes.1])
}

/// The values of `answer_add.sql`, in its order.
pub fn with_kept_answer_values<T>(
    queue: &str,
    key: &str,
    key_until: i64,
    answer: &Answer,
    now: &str,
    run: impl FnOnce(&[&dyn ToSql]) -> T,
) -> T {
    let bytes = padding::finished(answer.status(), None);
    let (status, result, error) = (answer.status(), answer.result(), answer.error());
    run(params![queue, key, key_until, status, result, error, now, bytes.0, bytes.1])
}
