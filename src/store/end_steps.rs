//! The end of a claim, step by step. An engine's own transaction and the caller's connection both follow these steps, so
//! that an end means the same on both.

use std::borrow::Borrow;

use super::{Claimed, Consequences, End, WhenDone};
use crate::rules::outcome::{ATTEMPTS_KEPT, Decision, HistoryEntry, Settled, Verdict};

/// What to do next with the item of [`EndSteps::end`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndStep {
    /// Store the progress that is not stored yet. Without effect if the receipt is stale.
    SaveProgress,
    /// Write the verdict if the receipt is valid and the item was not cancelled. Answered by whether it was written.
    Finish,
    /// End an item that was cancelled while in progress. Answered by whether it was such an item.
    FinishCancelled,
    /// Record the stage that ends, if the receipt is valid. Answered by whether it was recorded.
    RecordStage,
    /// Begin the next stage of the item.
    MoveOn,
    /// Forget the steps of the stage.
    ForgetSteps,
    /// The item no longer waits for what it waited for.
    ClearNeeds,
    /// Nothing was written: look whether the receipt is valid all the same, which is an error.
    CheckHeld,
    /// Add [`EndSteps::history`] to the item's history.
    AddAttempt,
    /// Remove its oldest attempts from the history.
    TrimHistory,
    /// Find the later claims of its batch. Answered by them.
    FindRest,
    DropContent,
    /// Drop the content of the stages before.
    DropStages,
    /// Remove the done item. If that is refused, it stays.
    Remove,
    /// Everything is recorded: what became of the item.
    Over(Settled),
}

impl EndStep {
    /// Whether the end is recorded even if this step fails.
    pub fn is_optional(self) -> bool {
        matches!(self, EndStep::SaveProgress | EndStep::Remove)
    }
}

/// What a step found.
pub enum EndAnswer {
    Nothing,
    TookEffect(bool),
    Rest(Vec<Claimed>),
}

pub struct EndSteps<E: Borrow<End>> {
    whole: E,
    /// The later item of the batch whose turn it is.
    later: Option<End>,
    rest: std::vec::IntoIter<Claimed>,
    /// The step that is being taken; `None` before the first.
    taken: Option<EndStep>,
    /// What became of the present item.
    settled: Settled,
    /// What became of the first one.
    outcome: Option<Settled>,
}

const CANCELLED: HistoryEntry = HistoryEntry { ending: Settled::Cancelled.as_str(), error: None };

impl<E: Borrow<End>> EndSteps<E> {
    pub fn new(end: E) -> Self {
        let rest = Vec::new().into_iter();
        Self { whole: end, later: None, rest, taken: None, settled: Settled::Lost, outcome: None }
    }

    /// The end that the step is about.
    pub fn end(&self) -> &End {
        self.later.as_ref().unwrap_or_else(|| self.whole.borrow())
    }

    /// The entry for the item's history.
    pub fn history(&self) -> Option<&HistoryEntry> {
        if self.settled == Settled::Cancelled { Some(&CANCELLED) } else { self.end().decision.history.as_ref() }
    }

    /// Returns the next step, given the answer to the last one.
    pub fn next(&mut self, answer: EndAnswer) -> EndStep {
        let took_effect = matches!(answer, EndAnswer::TookEffect(true));
        let step = match self.taken {
            None if self.has_progress() => EndStep::SaveProgress,
            None | Some(EndStep::SaveProgress) => self.first(),
            Some(EndStep::Finish) if took_effect => {
                self.settled = self.end().decision.settled;
                self.after_verdict()
            }
            Some(EndStep::RecordStage) if took_effect => EndStep::MoveOn,
            Some(EndStep::MoveOn) => {
                self.settled = Settled::Moved;
                EndStep::ForgetSteps
            }
            Some(EndStep::ForgetSteps) if self.settled == Settled::Moved => EndStep::ClearNeeds,
            Some(EndStep::ClearNeeds) if self.has_long_history() => EndStep::TrimHistory,
            Some(EndStep::DropContent) => EndStep::DropStages,
            Some(EndStep::DropStages) => EndStep::ForgetSteps,
            Some(EndStep::Finish | EndStep::RecordStage) => EndStep::FinishCancelled,
            Some(EndStep::FinishCancelled) if took_effect => {
                self.settled = Settled::Cancelled;
                self.after_verdict()
            }
            Some(EndStep::FinishCancelled) => EndStep::CheckHeld,
            Some(EndStep::AddAttempt) if self.has_long_history() => EndStep::TrimHistory,
            Some(EndStep::AddAttempt | EndStep::TrimHistory) => self.after_history(),
            Some(EndStep::FindRest) => {
                if let EndAnswer::Rest(rest) = answer {
                    self.rest = rest.into_iter();
                }
                self.next_item()
            }
            Some(EndStep::CheckHeld | EndStep::ForgetSteps | EndStep::ClearNeeds | EndStep::Remove) => self.next_item(),
            Some(EndStep::Over(settled)) => EndStep::Over(settled),
        };
        self.taken = Some(step);
        step
    }

    fn has_progress(&self) -> bool {
        let end = self.end();
        end.progress.is_some() && end.claim.fence.receipt().is_some()
    }

    fn has_long_history(&self) -> bool {
        self.end().claim.fence.attempt_number() > ATTEMPTS_KEPT
    }

    fn first(&self) -> EndStep {
        match &self.end().decision.verdict {
            _ if self.end().claim.cancelled => EndStep::FinishCancelled,
            Verdict::Moved { .. } => EndStep::RecordStage,
            _ => EndStep::Finish,
        }
    }

    fn after_verdict(&mut self) -> EndStep {
        match (self.settled, self.end().when_done) {
            (Settled::Done, WhenDone::Keep) => self.next_item(),
            (Settled::Done, WhenDone::DropContent) => EndStep::DropContent,
            (Settled::Done, WhenDone::Remove) => EndStep::Remove,
            _ if self.history().is_some() => EndStep::AddAttempt,
            _ => self.after_history(),
        }
    }

    /// An item of a batch was not done: the later ones are released, so that the order is kept. A worker that reports on
    /// a cancelled item goes on with them.
    fn after_history(&mut self) -> EndStep {
        let End { claim, decision, .. } = self.end();
        let frees_rest = match self.settled {
            Settled::Cancelled => decision.was_lost,
            settled => settled != Settled::Moved,
        };
        if claim.batch.is_some() && frees_rest { EndStep::FindRest } else { self.next_item() }
    }

    fn next_item(&mut self) -> EndStep {
        let outcome = *self.outcome.get_or_insert(self.settled);
        let Some(later) = self.rest.next() else { return EndStep::Over(outcome) };
        // Without its batch, so that ending the first one does not release the others again.
        let claim = Claimed { batch: None, ..later };
        let decision = Decision::release(claim.retries);
        let queue = self.whole.borrow().queue;
        self.later = Some(End {
            queue,
            claim,
            decision,
            when_done: WhenDone::Keep,
            consequences: Consequences::default(),
            progress: None,
        });
        self.settled = Settled::Lost;
        self.first()
    }
}
