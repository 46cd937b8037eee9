//! The statements that end a claim on SQLite.

use rusqlite::{ToSql, params};

use super::{Transaction, padding, statement};
use crate::error::{Error, Result};
use crate::model::Now;
use crate::rules::outcome::{ATTEMPTS_KEPT, HistoryEntry, Settled, Verdict};
use crate::store::{End, EndAnswer, EndStep, EndSteps, EnqueueTx, Fence, FinishTx, RetentionTx, Tx};

impl FinishTx for Transaction<'_> {
    fn end(&self, queue: &str, end: &End) -> Result<Settled> {
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
}

impl Transaction<'_> {
    /// Takes one step of an end.
    fn take(&self, queue: &str, step: EndStep, end: &End, entry: Option<&HistoryEntry>) -> Result<EndAnswer> {
        let fence = &end.claim.fence;
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
            _ => {}
        }
        let run = |sql: &'static str, values: &[&dyn ToSql]| self.run(sql, values);
        match with_statement(queue, step, end, entry, (self.now, self.now_text()), run) {
            Ok(changed) => Ok(EndAnswer::TookEffect(changed == 1)),
            // The end matters more, if the transaction survives the error: only the progress is lost, or an item that a
            // trigger of the application keeps stays as done.
            Err(error) if step.is_optional() && !matches!(error, Error::Io(_)) && self.is_open() => {
                Ok(EndAnswer::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the claim is still the one the fence names.
    pub(super) fn is_held(&self, queue: &str, fence: &Fence) -> Result<bool> {
        self.finds(statement!("holds"), params![fence.id, queue, fence.attempt, fence.token])
    }

    /// Whether a done item is not removed as it ends. A waiting caller must see the end; retention removes it later.
    fn is_needed(&self, queue: &str, id: i64) -> Result<bool> {
        Ok(self.database.are_ends_awaited() || (self.has_references()? && !self.kept(queue, &[id])?.is_empty()))
    }
}

/// The statement of a step and its values, for our connection and for the caller's. `now` as a number and as text.
pub(super) fn with_statement<T>(
    queue: &str,
    step: EndStep,
    end: &End,
    entry: Option<&HistoryEntry>,
    now: (Now, &str),
    run: impl FnOnce(&'static str, &[&dyn ToSql]) -> T,
) -> T {
    let End { claim, decision, progress, .. } = end;
    let Fence { id, attempt, token } = &claim.fence;
    match step {
        EndStep::SaveProgress => {
            let (fraction, note) = progress.as_ref().map_or((0.0, None), |(fraction, note)| (*fraction, note.as_ref()));
            run(statement!("progress_set"), params![id, queue, attempt, token, fraction, note])
        }
        EndStep::Finish => {
            let run = |values: &[&dyn ToSql]| run(statement!("finish"), values);
            with_verdict(queue, &claim.fence, &decision.verdict, claim.worker.as_deref(), now, run)
        }
        EndStep::FinishCancelled => run(statement!("finish_cancelled"), params![id, queue, attempt, token, now.1]),
        EndStep::CheckHeld | EndStep::Over(_) => run(statement!("holds"), params![id, queue, attempt, token]),
        EndStep::AddAttempt => {
            let (ending, error) = entry.map_or(("", None), |entry| (entry.ending, entry.error.as_ref()));
            let number = claim.fence.attempt_number();
            let values = params![id, number, ending, claim.worker, claim.started_at, now.1, error];
            run(statement!("history_add"), values)
        }
        EndStep::TrimHistory => {
            run(statement!("history_trim"), params![id, claim.fence.attempt_number(), ATTEMPTS_KEPT])
        }
        EndStep::FindRest => run(statement!("rest_of_batch"), params![queue, claim.batch, id]),
        EndStep::DropContent => run(statement!("drop_content"), params![id, queue]),
        EndStep::Remove => run(statement!("remove_done"), params![id, queue, now.0.ms()]),
    }
}

/// The values of `finish.sql`, in its order.
fn with_verdict<T>(
    queue: &str,
    fence: &Fence,
    verdict: &Verdict,
    worker: Option<&str>,
    (now, finished): (Now, &str),
    run: impl FnOnce(&[&dyn ToSql]) -> T,
) -> T {
    let (status, retries, error, result, run_at, finished, gave_up) = match verdict {
        Verdict::Done { result } => ("done", None, None, result.as_deref(), None, Some(finished), false),
        Verdict::Pending { delay_ms, retries, error } => {
            let run_at = delay_ms.map(|delay| now.plus(delay));
            ("pending", Some(*retries), error.as_deref(), None, run_at, None, false)
        }
        Verdict::Failed { retries, error, gave_up } => {
            ("failed", Some(*retries), Some(error.as_str()), None, None, Some(finished), *gave_up)
        }
    };
    let padding_bytes = if status == "pending" { padding::pending(run_at) } else { padding::finished(status, worker) };
    run(params![
        fence.id,
        queue,
        fence.attempt,
        fence.token,
        status,
        retries,
        error,
        result,
        run_at,
        finished,
        gave_up,
        padding_bytes.0,
        padding_bytes.1
    ])
}
