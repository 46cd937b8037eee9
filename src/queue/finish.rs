//! Ending a claim: done, failed, released, extended. Each verb presents its receipt and returns whether it took effect.

use super::Queue;
use super::advance::{Report, advance};
use super::claim::ClaimedItem;
use super::run::Verb;
use crate::error::{Error, Result};
use crate::rules::outcome::{Ending, Settled};
use crate::store::LockWait;

impl Queue {
    /// Returns `false`, and changes nothing, if the claim was lost.
    pub fn mark_done(&self, held: &ClaimedItem, result: Option<String>) -> Result<bool> {
        Ok(self.finish(held, Ending::Done { result })?.took_effect())
    }

    /// Marks many items done in one transaction; returns how many took effect.
    pub fn mark_done_many(&self, held: &[&ClaimedItem]) -> Result<usize> {
        self.finish_many(held.iter().map(|one| (*one, Ending::Done { result: None })))
    }

    /// Releases many items in one transaction, without counting a retry. Returns how many took effect.
    pub fn release_many(&self, held: &[&ClaimedItem]) -> Result<usize> {
        self.finish_batch(held, 0, Ending::released_now())
    }

    /// Ends the item at `index` of a batch and releases all others, in one transaction. Returns how many took effect. A
    /// batch is recorded last item first: the end of an item also releases the later ones, which would then not be
    /// counted.
    pub fn finish_batch(&self, held: &[&ClaimedItem], index: usize, ending: Ending) -> Result<usize> {
        self.finish_many(held.iter().copied().zip(ending.of_batch(index, held.len())).rev())
    }

    fn finish_many<'a>(&self, ends: impl Iterator<Item = (&'a ClaimedItem, Ending)>) -> Result<usize> {
        let reports = ends.map(|(held, ending)| Report { queue: 0, held, ending }).collect::<Vec<_>>();
        for report in &reports {
            self.check_is_ours(report.held)?;
        }
        let settled = self.record(Verb::Finish, self.wait(), &reports)?;
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
            held.mark_settled(Settled::Lost);
        }
        Ok(extended)
    }

    pub fn finish(&self, held: &ClaimedItem, ending: Ending) -> Result<Settled> {
        self.check_is_ours(held)?;
        self.check_ending(&ending)?;
        if let Some(text) = held.went_on().filter(|_| ending.is_completed()) {
            return Err(Error::Invalid(text));
        }
        let settled = self.record(Verb::Finish, self.wait(), &[Report { queue: 0, held, ending }])?;
        self.tend_if_due();
        Ok(settled[0])
    }

    /// Records how claims ended, in one transaction.
    pub(super) fn record(&self, verb: Verb, wait: LockWait, reports: &[Report]) -> Result<Vec<Settled>> {
        let settled = advance(&[self], verb, wait, reports, None)?.settled;
        for (report, settled) in reports.iter().zip(&settled) {
            report.held.mark_settled(*settled);
        }
        Ok(settled)
    }

    /// Refuses an invalid ending before the transaction begins.
    pub(super) fn check_ending(&self, ending: &Ending) -> Result<()> {
        match ending {
            Ending::Done { result: Some(result) } => self.check_size(result.len()),
            Ending::Next { next } => self.check_next(next),
            _ => Ok(()),
        }
    }
}
