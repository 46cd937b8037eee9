//! The statements that end a claim on SQLite.

use rusqlite::params;

use super::{Transaction, padding, statement};
use crate::error::{Error, Result};
use crate::model::{IfFailed, Status};
use crate::rules::outcome::{ATTEMPTS_KEPT, Decision, HistoryEntry, Settled, Verdict};
use crate::store::{
    ClaimTx, Claimed, Consequences, End, EnqueueTx, Fence, FinishTx, FlowTx, Needed, RetentionTx, StepTx, Tx, WhenDone,
};

impl FinishTx for Transaction<'_> {
    fn end(&self, queue: &str, end: &End) -> Result<Settled> {
        if let (Some((fraction, note)), Some(receipt)) = (&end.progress, end.claim.fence.receipt()) {
            // The end matters more: if the transaction survives the error, only the progress is lost.
            match self.set_progress(queue, receipt, *fraction, note.as_deref()) {
                Err(error) if matches!(error, Error::Io(_)) || !self.is_open() => return Err(error),
                _ => {}
            }
        }
        let Consequences { children, needs, if_failed, step } = &end.consequences;
        if let (Some((name, kind)), Some(receipt)) = (step, end.claim.fence.receipt()) {
            let result = self.suspended_until(&end.decision.verdict, end.claim.fence.id, needs.len())?;
            self.add_step(queue, receipt, name, *kind, &result)?;
        }
        let settled = self.record(queue, &end.claim, &end.decision, end.when_done)?;
        if settled.is_completed() {
            for child in children {
                self.put(&child.queue, child.put.clone())?;
            }
        }
        if matches!(settled, Settled::Moved | Settled::Blocked) && !needs.is_empty() {
            self.block(end.claim.fence.id, needs, *if_failed)?;
        }
        Ok(settled)
    }
}

impl Transaction<'_> {
    fn record(&self, queue: &str, claim: &Claimed, decision: &Decision, when_done: WhenDone) -> Result<Settled> {
        let Decision { verdict, settled, history, was_lost } = decision;
        if !claim.cancelled && self.finish(queue, claim, verdict)? {
            if *settled == Settled::Done {
                self.clean_up(queue, claim.fence.id, when_done)?;
            } else if *settled == Settled::Moved {
                self.trim_history(claim)?;
            } else {
                self.add_attempt(claim, history.as_ref())?;
                self.release_rest(queue, claim)?;
            }
            return Ok(*settled);
        }
        if self.finish_cancelled(queue, claim)? {
            self.add_attempt(claim, Some(&HistoryEntry { ending: Settled::Cancelled.as_str(), error: None }))?;
            if *was_lost {
                self.release_rest(queue, claim)?;
            }
            return Ok(Settled::Cancelled);
        }
        // If the fence still holds although nothing was written, the claim is not lost.
        if self.is_held(queue, &claim.fence)? {
            // Another program may have put the item into a group, or taken it out.
            let has_group = self.has_group(claim.fence.id)?;
            if has_group != claim.has_group {
                return self.record(queue, &Claimed { has_group, ..claim.clone() }, decision, when_done);
            }
            return Err(self.without_effect(&format!("the end of item {}", claim.fence.id)));
        }
        Ok(Settled::Lost)
    }

    /// What a suspension is recorded with: when a sleep ends, or the first place and the number of what is gathered.
    fn suspended_until(&self, verdict: &Verdict, id: i64, needs: usize) -> Result<String> {
        if let Verdict::Pending { delay_ms, .. } = verdict {
            return Ok(self.now.plus(delay_ms.unwrap_or(0)).to_string());
        }
        let first: i64 = self.one(statement!("after_places"), params![id])?.unwrap_or(0);
        Ok(format!("[{first},{needs}]"))
    }

    /// Makes an item that was just blocked wait for others, which are stored first. It may run at once if all are done.
    fn block(&self, id: i64, needs: &[Needed], if_failed: IfFailed) -> Result<()> {
        let mut ids = Vec::with_capacity(needs.len());
        for need in needs {
            match need {
                Needed::Id(id) => ids.push(*id),
                Needed::Put(queue, put) => ids.extend(self.put(queue, (**put).clone())?),
            }
        }
        if !self.wait_for(id, &ids, if_failed)? {
            self.change_items(statement!("unblock"), params![id])?;
        }
        Ok(())
    }

    /// Whether the claim is still the one the fence names.
    pub(super) fn is_held(&self, queue: &str, fence: &Fence) -> Result<bool> {
        self.finds(statement!("holds"), params![fence.id, queue, fence.attempt, fence.token, self.now.ms()])
    }

    /// An item of a batch was not done: the later ones are released, so that the order is kept.
    fn release_rest(&self, queue: &str, claim: &Claimed) -> Result<()> {
        let Some(batch) = claim.batch else { return Ok(()) };
        for later in self.rest_of_batch(queue, batch, claim.fence.id)? {
            // Without its batch, so that ending the first one does not release the others again.
            let alone = Claimed { batch: None, ..later };
            self.record(queue, &alone, &Decision::release(alone.retries), WhenDone::Keep)?;
        }
        Ok(())
    }

    pub(super) fn clean_up(&self, queue: &str, id: i64, when_done: WhenDone) -> Result<()> {
        match when_done {
            WhenDone::Keep => Ok(()),
            WhenDone::DropContent => {
                self.run(statement!("drop_content"), params![id, queue])?;
                self.run(statement!("history_drop_content"), params![id])?;
                self.run(statement!("steps_forget"), params![id]).map(drop)
            }
            // A waiting caller must see the end; retention removes the item later.
            WhenDone::Remove if self.database.are_ends_awaited() => Ok(()),
            WhenDone::Remove if self.has_references()? && !self.kept(queue, &[id])?.is_empty() => Ok(()),
            // The end matters more: an item that a trigger of the application keeps stays as done.
            WhenDone::Remove => match self.remove_done(queue, id) {
                Err(error) if matches!(error, Error::Io(_)) || !self.is_open() => Err(error),
                _ => Ok(()),
            },
        }
    }

    fn remove_done(&self, queue: &str, id: i64) -> Result<usize> {
        self.removing_done(queue, id)?;
        self.run(statement!("remove_done"), params![id, queue, self.now.ms()])
    }

    /// Writes the verdict if the claim is still the one its fence names, and it is known
    /// whether it has a group. Returns whether it did.
    fn finish(&self, queue: &str, claim: &Claimed, verdict: &Verdict) -> Result<bool> {
        let Claimed { fence, worker, has_group, .. } = claim;
        let finished = self.now_text();
        let (status, retries, error, result, run_at, finished, gave_up) = match verdict {
            Verdict::Moved { next } => return self.move_on(queue, fence, next),
            Verdict::Blocked => (Status::Blocked, None, None, None, None, None, false),
            Verdict::Done { result } => (Status::Done, None, None, result.as_deref(), None, Some(finished), false),
            Verdict::Pending { delay_ms, retries, error } => {
                let run_at = delay_ms.map(|delay| self.now.plus(delay));
                (Status::Pending, Some(*retries), error.as_deref(), None, run_at, None, false)
            }
            Verdict::Failed { retries, error, gave_up } => {
                (Status::Failed, Some(*retries), Some(error.as_str()), None, None, Some(finished), *gave_up)
            }
        };
        let padding_bytes = match status {
            Status::Pending | Status::Blocked => padding::pending(run_at),
            ended => padding::finished(ended.as_str(), worker.as_deref()),
        };
        let changed = self.connection.prepare_cached(statement!("finish"))?.execute(params![
            fence.id,
            queue,
            fence.attempt,
            fence.token,
            status.as_str(),
            retries,
            error,
            result,
            run_at,
            finished,
            gave_up,
            padding_bytes.0,
            padding_bytes.1,
            has_group,
            self.now.ms(),
        ])?;
        if changed == 1 {
            self.changed(queue, fence.id, Some(Status::Processing), status, *has_group)?;
        }
        Ok(changed == 1)
    }

    /// Ends an item that was cancelled while in progress. Returns whether it was such an item.
    fn finish_cancelled(&self, queue: &str, claim: &Claimed) -> Result<bool> {
        let Claimed { fence, has_group, .. } = claim;
        let values = params![fence.id, queue, fence.attempt, fence.token, self.now_text(), has_group, self.now.ms()];
        let is_cancelled = self.run(statement!("finish_cancelled"), values)? == 1;
        if is_cancelled {
            self.changed(queue, fence.id, Some(Status::Processing), Status::Cancelled, *has_group)?;
        }
        Ok(is_cancelled)
    }

    fn add_attempt(&self, claim: &Claimed, entry: Option<&HistoryEntry>) -> Result<()> {
        let Some(HistoryEntry { ending, error }) = entry else { return Ok(()) };
        let (item, attempt) = (claim.fence.id, claim.fence.attempt_number());
        let values = params![item, attempt, ending, claim.worker, claim.started_at, self.now_text(), error];
        self.run(statement!("history_add"), values)?;
        self.trim_history(claim)
    }

    fn trim_history(&self, claim: &Claimed) -> Result<()> {
        let (item, attempt) = (claim.fence.id, claim.fence.attempt_number());
        if attempt > ATTEMPTS_KEPT {
            self.run(statement!("history_trim"), params![item, attempt, ATTEMPTS_KEPT])?;
        }
        Ok(())
    }
}
