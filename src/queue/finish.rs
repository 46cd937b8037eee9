//! Ending a claim: done, failed, released, extended. Each presents its receipt and says whether it took effect.

use super::claim::Held;
use super::{Queue, dice};
use crate::error::Result;
use crate::outcome::{Ending, Settled, decide};
use crate::sqlite::Tx;

impl Queue {
    /// `false` when the claim was lost; nothing is changed then.
    pub fn mark_done(&self, held: &Held, result: Option<String>) -> Result<bool> {
        Ok(self.finish(held, Ending::Done { result })? != Settled::Lost)
    }

    /// Finishes many in one transaction; returns how many took effect.
    pub fn mark_done_many(&self, held: &[&Held]) -> Result<usize> {
        for one in held {
            self.check_is_ours(one)?;
        }
        let settled = self.write(|tx| {
            held.iter().map(|one| self.settle(tx, one, Ending::Done { result: None })).collect::<Result<Vec<_>>>()
        })?;
        for (one, settled) in held.iter().zip(&settled) {
            self.after_settling(one, *settled);
        }
        Ok(settled.iter().filter(|settled| **settled != Settled::Lost).count())
    }

    pub fn mark_failed(&self, held: &Held, error: String, retry_in: Option<i64>, give_up: bool) -> Result<bool> {
        Ok(self.finish(held, Ending::Failed { error, retry_in, give_up })? != Settled::Lost)
    }

    /// Gives an item back; nothing is counted.
    pub fn release(&self, held: &Held, delay: i64) -> Result<bool> {
        Ok(self.finish(held, Ending::Released { delay })? != Settled::Lost)
    }

    /// Lets the lease end `lease_ms` from now.
    pub fn extend(&self, held: &Held, lease_ms: i64) -> Result<bool> {
        self.check_is_ours(held)?;
        if held.is_inherited() {
            return Ok(false);
        }
        let lease_ms = held.extension(lease_ms);
        let extended = self.write_lightly(|tx| tx.extend(self.name(), held.receipt(), lease_ms))?;
        if !extended {
            held.note_settled(Settled::Lost);
        }
        Ok(extended)
    }

    pub fn finish(&self, held: &Held, ending: Ending) -> Result<Settled> {
        self.check_is_ours(held)?;
        self.check_ending(&ending)?;
        let settled = self.write(|tx| self.settle(tx, held, ending))?;
        self.after_settling(held, settled);
        Ok(settled)
    }

    /// What can be refused is refused before the transaction.
    pub(super) fn check_ending(&self, ending: &Ending) -> Result<()> {
        match ending {
            Ending::Done { result: Some(result) } => self.check_size(result.len()),
            _ => Ok(()),
        }
    }

    pub(super) fn settle(&self, tx: &Tx, held: &Held, ending: Ending) -> Result<Settled> {
        if held.is_inherited() {
            return Ok(Settled::Lost);
        }
        let allowance = self.allowance(held.item.retries, held.item.max_retries);
        let (verdict, settled) = decide(ending, &allowance, tx.now(), dice()?);
        let took_effect = tx.settle(self.name(), &held.receipt().into(), &verdict)?;
        Ok(if took_effect { settled } else { Settled::Lost })
    }

    /// Only once the commit is through: an undone transaction has settled nothing.
    pub(super) fn after_settling(&self, held: &Held, settled: Settled) {
        held.note_settled(settled);
        if matches!(settled, Settled::Released | Settled::Postponed) {
            self.ring();
        }
    }
}
