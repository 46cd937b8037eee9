//! The statements that end a claim on SQLite.

use rusqlite::{ToSql, params};

use super::stage::with_next_stage;
use super::{Transaction, padding, statement};
use crate::error::{Error, Result};
use crate::model::{IfFailed, Now, Status};
use crate::rules::outcome::{ATTEMPTS_KEPT, HistoryEntry, Settled, Verdict};
use crate::store::{
    Consequences, End, EndAnswer, EndStep, EndSteps, EnqueueTx, Fence, FinishTx, FlowTx, Needed, RetentionTx, StepTx,
    Tx, WhenDone,
};

impl FinishTx for Transaction<'_> {
    fn end(&self, queue: &str, end: &End) -> Result<Settled> {
        let Consequences { children, needs, if_failed, step } = &end.consequences;
        if let (Some((name, kind)), Some(receipt)) = (step, end.claim.fence.receipt()) {
            let result = self.suspended_until(&end.decision.verdict, end.claim.fence.id, needs.len())?;
            self.add_step(queue, receipt, name, *kind, &result)?;
        }
        let settled = self.record(queue, end)?;
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
    /// Takes all steps of an end.
    fn record(&self, queue: &str, end: &End) -> Result<Settled> {
        let mut steps = EndSteps::new(end);
        let mut answer = EndAnswer::Nothing;
        loop {
            let step = steps.next(answer);
            if let EndStep::Over(settled) = step {
                return Ok(settled);
            }
            answer = self.take(queue, step, steps.end(), steps.history())?;
        }
    }

    fn take(&self, queue: &str, step: EndStep, end: &End, entry: Option<&HistoryEntry>) -> Result<EndAnswer> {
        let fence = &end.claim.fence;
        let mut checksum = None;
        match step {
            EndStep::FindRest => {
                let batch = end.claim.batch.unwrap_or_default();
                return Ok(EndAnswer::Rest(self.rest_of_batch(queue, batch, fence.id)?));
            }
            // If the fence still holds although nothing was written, the claim is not lost.
            EndStep::CheckHeld if self.is_held(queue, fence)? => {
                return Err(self.without_effect(&format!("the end of item {}", fence.id)));
            }
            EndStep::Remove if self.is_needed(queue, fence.id)? => return Ok(EndAnswer::Nothing),
            EndStep::CheckHeld | EndStep::Over(_) => return Ok(EndAnswer::Nothing),
            EndStep::Remove => self.removing_done(queue, fence.id)?,
            EndStep::MoveOn => {
                if let Verdict::Moved { next } = &end.decision.verdict {
                    checksum = self.checksum_of(fence.id, next)?;
                }
                self.let_triggers_fire()?;
            }
            _ => {}
        }
        let run = |has_group| {
            let values = EndValues { now: self.now, text: self.now_text(), has_group, checksum };
            with_statement(queue, step, end, entry, values, |sql, values| self.run(sql, values))
        };
        let is_verdict = matches!(step, EndStep::Finish | EndStep::FinishCancelled);
        match run(self.keeps_books().then_some(end.claim.has_group)) {
            Ok(1) if is_verdict => {
                let status = if step == EndStep::Finish { status(&end.decision.verdict) } else { Status::Cancelled };
                self.changed(queue, fence.id, Some(Status::Processing), status, end.claim.has_group)?;
                Ok(EndAnswer::TookEffect(true))
            }
            // Another program may have put the item into a group, or taken it out.
            Ok(0) if is_verdict && self.keeps_books() && self.has_group(fence.id)? != end.claim.has_group => {
                self.let_triggers_fire()?;
                Ok(EndAnswer::TookEffect(run(None)? == 1))
            }
            Ok(changed) => Ok(EndAnswer::TookEffect(changed == 1)),
            // The end matters more, if the transaction survives the error: only the progress is lost, or an item that a
            // trigger of the application keeps stays as done.
            Err(error) if step.is_optional() && !matches!(error, Error::Io(_)) && self.is_open() => {
                Ok(EndAnswer::Nothing)
            }
            Err(error) => Err(error),
        }
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

    /// Whether a done item is not removed as it ends. A waiting caller must see the end; retention removes it later.
    fn is_needed(&self, queue: &str, id: i64) -> Result<bool> {
        Ok(self.database.are_ends_awaited() || (self.has_references()? && !self.kept(queue, &[id])?.is_empty()))
    }

    /// What becomes of the row of an item that was done without a claim.
    pub(super) fn clean_up(&self, queue: &str, id: i64, when_done: WhenDone) -> Result<()> {
        match when_done {
            WhenDone::Keep => Ok(()),
            WhenDone::DropContent => {
                self.run(statement!("drop_content"), params![id, queue])?;
                self.run(statement!("history_drop_content"), params![id])?;
                self.run(statement!("steps_forget"), params![id]).map(drop)
            }
            WhenDone::Remove if self.is_needed(queue, id)? => Ok(()),
            WhenDone::Remove => {
                self.removing_done(queue, id)?;
                self.run(statement!("remove_done"), params![id, queue, self.now.ms()]).map(drop)
            }
        }
    }
}

/// What the statements of an end need beside the end itself.
pub(super) struct EndValues<'a> {
    pub now: Now,
    /// The same as text.
    pub text: &'a str,
    /// Whether the item is known to have a group; `None` if that does not matter, because triggers fire.
    pub has_group: Option<bool>,
    /// The checksum of the next stage; `None` if it has the content and the headers of the one before.
    pub checksum: Option<Option<i64>>,
}

/// The statement of a step and its values, for our connection and for the caller's.
pub(super) fn with_statement<T>(
    queue: &str,
    step: EndStep,
    end: &End,
    entry: Option<&HistoryEntry>,
    given: EndValues,
    run: impl FnOnce(&'static str, &[&dyn ToSql]) -> T,
) -> T {
    let End { claim, decision, progress, .. } = end;
    let Fence { id, attempt, token } = &claim.fence;
    let EndValues { now, text, has_group, .. } = &given;
    match step {
        EndStep::SaveProgress => {
            let (fraction, note) = progress.as_ref().map_or((0.0, None), |(fraction, note)| (*fraction, note.as_ref()));
            run(statement!("progress_set"), params![id, queue, attempt, token, fraction, note])
        }
        EndStep::Finish => with_verdict(queue, end, &given, |values| run(statement!("finish"), values)),
        EndStep::FinishCancelled => {
            let values = params![id, queue, attempt, token, text, has_group, now.ms()];
            run(statement!("finish_cancelled"), values)
        }
        EndStep::RecordStage => run(statement!("history_moved"), params![id, queue, attempt, token, text, now.ms()]),
        EndStep::MoveOn => {
            let Verdict::Moved { next } = &decision.verdict else { return run(statement!("nothing"), &[]) };
            with_next_stage(queue, &claim.fence, next, *now, given.checksum, |values| {
                run(statement!("move_on"), values)
            })
        }
        EndStep::ForgetSteps => run(statement!("steps_forget"), params![id]),
        EndStep::ClearNeeds => run(statement!("after_clear"), params![id]),
        EndStep::CheckHeld | EndStep::Over(_) => run(statement!("holds"), params![id, queue, attempt, token, now.ms()]),
        EndStep::AddAttempt => {
            let (ending, error) = entry.map_or(("", None), |entry| (entry.ending, entry.error.as_ref()));
            let number = claim.fence.attempt_number();
            let values = params![id, number, ending, claim.worker, claim.started_at, text, error];
            run(statement!("history_add"), values)
        }
        EndStep::TrimHistory => {
            run(statement!("history_trim"), params![id, claim.fence.attempt_number(), ATTEMPTS_KEPT])
        }
        EndStep::FindRest => run(statement!("rest_of_batch"), params![queue, claim.batch, id]),
        EndStep::DropContent => run(statement!("drop_content"), params![id, queue]),
        EndStep::DropStages => run(statement!("history_drop_content"), params![id]),
        EndStep::Remove => run(statement!("remove_done"), params![id, queue, now.ms()]),
    }
}

/// The status that a verdict writes.
fn status(verdict: &Verdict) -> Status {
    match verdict {
        Verdict::Done { .. } => Status::Done,
        Verdict::Failed { .. } => Status::Failed,
        Verdict::Blocked => Status::Blocked,
        Verdict::Pending { .. } | Verdict::Moved { .. } => Status::Pending,
    }
}

/// The values of `finish.sql`, in its order.
fn with_verdict<T>(queue: &str, end: &End, given: &EndValues, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
    let (fence, worker, verdict) = (&end.claim.fence, end.claim.worker.as_deref(), &end.decision.verdict);
    let EndValues { now, text, has_group, .. } = given;
    let (retries, error, result, run_at, finished, gave_up) = match verdict {
        Verdict::Moved { .. } | Verdict::Blocked => (None, None, None, None, None, false),
        Verdict::Done { result } => (None, None, result.as_deref(), None, Some(text), false),
        Verdict::Pending { delay_ms, retries, error } => {
            (Some(*retries), error.as_deref(), None, delay_ms.map(|delay| now.plus(delay)), None, false)
        }
        Verdict::Failed { retries, error, gave_up } => {
            (Some(*retries), Some(error.as_str()), None, None, Some(text), *gave_up)
        }
    };
    let status = status(verdict);
    let padding_bytes = match status {
        Status::Pending | Status::Blocked => padding::pending(run_at),
        ended => padding::finished(ended.as_str(), worker),
    };
    run(params![
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
        now.ms(),
    ])
}
