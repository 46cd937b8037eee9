//! Ending a claim: done, failed, released, extended. Each verb presents its receipt and returns whether it took effect.

use super::Queue;
use super::claim::ClaimedItem;
use super::run::{Change, Verb};
use crate::error::Result;
use crate::model::Event;
use crate::random;
use crate::rules::outcome::{Ending, Settled, Verdict, decide, presentable};
use crate::store::{AttemptRecord, Claimed};

/// How many attempts of an item the history keeps.
pub(super) const ATTEMPTS_KEPT: i64 = 20;

impl Queue {
    /// Returns `false`, and changes nothing, if the claim was lost.
    pub fn mark_done(&self, held: &ClaimedItem, result: Option<String>) -> Result<bool> {
        Ok(self.finish(held, Ending::Done { result })?.took_effect())
    }

    /// Marks many items done in one transaction; returns how many took effect.
    pub fn mark_done_many(&self, held: &[&ClaimedItem]) -> Result<usize> {
        self.finish_many(held.iter().copied(), &Ending::Done { result: None })
    }

    /// Releases many items in one transaction, without counting a retry. Returns how many took effect. A batch is
    /// released last item first: releasing an item also releases the later ones, which would then not be counted.
    pub fn release_many(&self, held: &[&ClaimedItem]) -> Result<usize> {
        self.finish_many(held.iter().rev().copied(), &Ending::given_back())
    }

    fn finish_many<'a>(
        &self,
        held: impl Iterator<Item = &'a ClaimedItem> + Clone + Send + Sync,
        ending: &Ending,
    ) -> Result<usize> {
        for one in held.clone() {
            self.check_is_ours(one)?;
        }
        let settled = self.run(Verb::Finish, |tx| {
            self.refresh_settings_if_readable(tx)?;
            held.clone().map(|one| self.settle(tx, one, ending.clone())).collect::<Result<Vec<_>>>()
        })?;
        for (one, settled) in held.zip(&settled) {
            one.note_settled(*settled);
        }
        Ok(settled.iter().filter(|settled| settled.took_effect()).count())
    }

    /// Releases an item without counting a retry.
    pub fn release(&self, held: &ClaimedItem, delay: i64) -> Result<bool> {
        Ok(self.finish(held, Ending::Released { delay, reason: None })?.took_effect())
    }

    /// Sets the lease to expire `lease_ms` from now.
    pub fn extend(&self, held: &ClaimedItem, lease_ms: i64) -> Result<bool> {
        self.check_is_ours(held)?;
        if held.is_inherited() {
            return Ok(false);
        }
        let lease_ms = held.extension(lease_ms);
        let extended = self.run(Verb::Extend, |tx| tx.extend(self.name(), held.receipt(), lease_ms))?;
        if !extended {
            held.note_settled(Settled::Lost);
        }
        Ok(extended)
    }

    pub fn finish(&self, held: &ClaimedItem, ending: Ending) -> Result<Settled> {
        self.check_is_ours(held)?;
        self.check_ending(&ending)?;
        let settled = self.run(Verb::Finish, |tx| {
            self.refresh_settings_if_readable(tx)?;
            self.settle(tx, held, ending)
        })?;
        held.note_settled(settled);
        self.tend_beside();
        Ok(settled)
    }

    /// Refuses an invalid ending before the transaction begins.
    pub(super) fn check_ending(&self, ending: &Ending) -> Result<()> {
        match ending {
            Ending::Done { result: Some(result) } => self.check_size(result.len()),
            _ => Ok(()),
        }
    }

    pub(super) fn settle(&self, tx: &Change, held: &ClaimedItem, ending: Ending) -> Result<Settled> {
        if held.is_inherited() {
            return Ok(Settled::Lost);
        }
        held.unsaved_progress.write_along(tx, self.name(), held.receipt())?;
        let settled = self.end(tx, &held.claimed(), ending)?;
        self.tell_end(tx, held, settled);
        Ok(settled)
    }

    pub(super) fn end(&self, tx: &Change, claim: &Claimed, ending: Ending) -> Result<Settled> {
        Ok(self.try_to_end(tx, claim, ending)?.unwrap_or(Settled::Lost))
    }

    /// Reclaims claims that this transaction has found. One claim may have ended with another: as part of its batch, or
    /// because its holder is dead. If none can be ended, the same claims would be found again endlessly, so that is an
    /// error.
    pub(super) fn take_back(&self, tx: &Change, claims: &[Claimed]) -> Result<()> {
        let mut ended = claims.is_empty();
        for claim in claims {
            let ending = Ending::Lost { worker: claim.worker.clone() };
            ended |= self.try_to_end(tx, claim, ending)?.is_some();
        }
        if ended { Ok(()) } else { Err(tx.without_effect(&format!("item {}", claims[0].fence.id))) }
    }

    /// Decides how a claim ends and records it; returns `None` if its receipt is no longer valid. If an item of a batch
    /// is not done, the rest of the batch is released, so that order is kept.
    fn try_to_end(&self, tx: &Change, claim: &Claimed, ending: Ending) -> Result<Option<Settled>> {
        let was_lost = matches!(ending, Ending::Lost { .. });
        let reason = match &ending {
            Ending::Released { reason, .. } => reason.clone().map(presentable),
            _ => None,
        };
        let current = self.settings();
        let left = current.settings.retry_state(claim.retries, claim.max_retries);
        // Only a retry after a failure has a delay with jitter.
        let dice = if matches!(ending, Ending::Failed { .. }) { random::dice()? } else { 0.0 };
        let (verdict, settled) = decide(ending, &left, dice);
        let (word, error) = match &verdict {
            Verdict::Done { .. } => (settled.as_str(), None),
            Verdict::Pending { error, .. } if was_lost => (Settled::Lost.as_str(), error.as_deref()),
            Verdict::Failed { error, .. } if was_lost => (Settled::Lost.as_str(), Some(error.as_str())),
            Verdict::Pending { error, .. } => (settled.as_str(), error.as_deref().or(reason.as_deref())),
            Verdict::Failed { error, .. } => (settled.as_str(), Some(error.as_str())),
        };
        if !claim.cancelled && tx.finish(self.name(), &claim.fence, &verdict, claim.worker.as_deref())? {
            if settled == Settled::Done {
                if !current.settings.keeps_content() {
                    tx.drop_content(self.name(), claim.fence.id)?;
                }
            } else {
                self.add_attempt(tx, claim, word, error)?;
                self.give_back_rest(tx, claim)?;
            }
            return Ok(Some(settled));
        }
        if !tx.finish_cancelled(self.name(), &claim.fence)? {
            // If the receipt is still valid although nothing was written, the claim is not lost.
            let id = claim.fence.id;
            let is_good = match claim.fence.receipt() {
                Some(receipt) => tx.holds(self.name(), receipt)?.is_some(),
                None => false,
            };
            return if is_good { Err(tx.without_effect(&format!("the end of item {id}"))) } else { Ok(None) };
        }
        self.add_attempt(tx, claim, Settled::Cancelled.as_str(), None)?;
        if was_lost {
            self.give_back_rest(tx, claim)?;
        }
        Ok(Some(Settled::Cancelled))
    }

    fn add_attempt(&self, tx: &Change, claim: &Claimed, ending: &str, error: Option<&str>) -> Result<()> {
        let record = AttemptRecord {
            item: claim.fence.id,
            attempt: claim.fence.attempt_number(),
            ending,
            worker: claim.worker.as_deref(),
            started_at: claim.started_at.as_deref(),
            error,
        };
        tx.add_attempt(&record, ATTEMPTS_KEPT)
    }

    fn give_back_rest(&self, tx: &Change, claim: &Claimed) -> Result<()> {
        let Some(batch) = claim.batch else { return Ok(()) };
        for later in tx.rest_of_batch(self.name(), batch, claim.fence.id)? {
            // Without its batch, so that ending the first one does not release the others again.
            let alone = Claimed { batch: None, ..later };
            self.end(tx, &alone, Ending::given_back())?;
        }
        Ok(())
    }

    /// Tells waiting callers and workers what the end of a claim changed.
    fn tell_end(&self, tx: &Change, held: &ClaimedItem, settled: Settled) {
        match settled {
            Settled::Released | Settled::Postponed => tx.tell(Event::Returned),
            Settled::Done | Settled::Failed | Settled::Cancelled => {
                tx.tell(Event::Ended { id: held.receipt().id, frees_group: held.item.group.is_some() });
            }
            Settled::Lost => {}
        }
    }
}
