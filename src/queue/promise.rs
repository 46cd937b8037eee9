//! Promised ends: those said in the caller's own transaction. Only the file shows whether that was committed.

use super::Queue;
use super::claim::ClaimedItem;
use crate::error::{Error, Result};
use crate::rules::outcome::{ATTEMPTS_KEPT, Ending, Settled, not_committed};
use crate::store::View;

/// What became of a promised end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// It was committed; the claim ended like this.
    Kept(Settled),
    /// It was not committed, and the claim is still valid.
    Open,
    /// It was not committed, and the claim is lost.
    Lost,
}

impl Queue {
    /// Learns whether a promised end was committed. `None` if none is promised, or the claim's end is known.
    pub(super) fn look_at_promise(&self, held: &ClaimedItem) -> Result<Option<Promise>> {
        let Some(said) = held.promised().filter(|_| !held.is_settled() && !held.is_inherited()) else {
            return Ok(None);
        };
        let promise = self.view(|view| self.promise_kept(view, held, said))?;
        if let Promise::Kept(settled) = promise {
            held.mark_settled(settled);
        }
        Ok(Some(promise))
    }

    fn promise_kept(&self, view: &dyn View, held: &ClaimedItem, said: Settled) -> Result<Promise> {
        let (id, attempt) = (held.item.id, held.item.attempt);
        if view.holds(self.name(), held.receipt())?.is_some() {
            return Ok(Promise::Open);
        }
        let history = view.history(self.name(), id, ATTEMPTS_KEPT)?;
        if let Some(entry) = history.iter().find(|entry| entry.attempt == attempt) {
            let settled = Settled::parse(&entry.ending).filter(|settled| settled.took_effect());
            return Ok(settled.map_or(Promise::Lost, Promise::Kept));
        }
        // An item that is removed as soon as it is done leaves nothing.
        Ok(if view.get(self.name(), id)?.is_none() { Promise::Kept(said) } else { Promise::Lost })
    }

    /// Ends a claim by its promised end, when its block or its turn in an iteration is over: one that was not committed
    /// has failed. `None` if no end was promised. Raises at once if the transaction is still open.
    pub fn conclude_promise(&self, held: &ClaimedItem) -> Result<Option<Settled>> {
        match self.look_at_promise(held)? {
            None => Ok(None),
            Some(Promise::Kept(settled)) => Ok(Some(settled)),
            Some(Promise::Lost) => Ok(Some(Settled::Lost)),
            Some(Promise::Open) if self.session()?.store.is_blocked_by_this_process() => Err(Error::Busy(format!(
                "item {}: {}, and is still open; commit it before the item's block ends",
                held.item.id,
                not_committed(held.promised().unwrap_or(Settled::Done))
            ))),
            Some(Promise::Open) => {
                let error = not_committed(held.promised().unwrap_or(Settled::Done));
                held.mark_broken();
                self.finish(held, Ending::Failed { error, retry_in: None, give_up: false }).map(Some)
            }
        }
    }

    /// Releases an item that an iteration leaves behind, unless its end was promised.
    pub fn release_abandoned(&self, held: &ClaimedItem) -> Result<()> {
        match self.conclude_promise(held)? {
            None => self.release(held, 0).map(drop),
            Some(_) => Ok(()),
        }
    }
}
