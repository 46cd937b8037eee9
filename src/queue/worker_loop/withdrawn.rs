//! Claims that end while their handlers run: held items that were cancelled, or reclaimed by others.

use std::sync::Arc;

use super::{ClaimedItem, WorkerLoop};
use crate::error::Result;
use crate::store::{ChangeWatch, View};

/// What the last look saw. While nothing has changed since, there is nothing to look at.
#[derive(Default)]
pub(super) struct LastLook {
    changes: Option<Box<dyn ChangeWatch>>,
    held: Vec<(i64, i64)>,
}

impl WorkerLoop {
    /// Returns the slots whose handlers need not go on, because all items that they still hold were cancelled or lost:
    /// the id and attempt of the first item of each.
    pub fn withdrawn(&self) -> Result<Vec<(i64, i64)>> {
        if self.is_inherited() {
            return Ok(Vec::new());
        }
        let mut last = self.last_look.lock();
        let holding = self.holding();
        let held = holding.iter().flat_map(|(_, items)| items.iter().map(|held| name(held))).collect::<Vec<_>>();
        let changes = match &mut last.changes {
            Some(changes) => changes,
            None => last.changes.insert(self.first().session()?.store.clone().change_watch()?),
        };
        // Asked first, so that no change during the look is missed.
        let has_changed = changes.has_changed()?;
        // A deadline passes without a change.
        let has_expired = holding
            .iter()
            .any(|(queue, items)| items.iter().any(|held| !held.is_settled() && self.queues[*queue].has_expired(held)));
        // A claim is in its slot a little after its commit, which the look before may have seen.
        if held.is_empty() || (!has_changed && !has_expired && held == last.held) {
            return Ok(Vec::new());
        }
        last.held = held;
        self.first().view(|view| {
            let mut withdrawn = Vec::new();
            for (queue, items) in &holding {
                let mut is_any_ours = false;
                // A handler may go on after it has ended its item in its own transaction.
                let open = || items.iter().filter(|held| !held.is_settled() && held.promised().is_none());
                for held in open() {
                    is_any_ours |= !self.is_gone(view, *queue, held)?;
                }
                let first = items.first().filter(|_| !is_any_ours && open().next().is_some());
                withdrawn.extend(first.map(|held| name(held)));
            }
            Ok(withdrawn)
        })
    }

    fn holding(&self) -> Vec<(usize, Vec<Arc<ClaimedItem>>)> {
        let state = self.state.lock();
        let holding = state.slots.iter().filter(|entry| !entry.items.is_empty());
        holding.map(|entry| (entry.queue, entry.items.iter().map(|(held, _)| held.clone()).collect())).collect()
    }

    fn is_gone(&self, view: &dyn View, queue: usize, held: &ClaimedItem) -> Result<bool> {
        let is_cancelled = view.holds(self.queues[queue].name(), held.receipt())?;
        if is_cancelled.is_none() && !held.is_settled() {
            held.mark_lost();
        }
        Ok(is_cancelled != Some(false))
    }
}

impl Drop for WorkerLoop {
    fn drop(&mut self) {
        if self.is_inherited() {
            // A child never closes its parent's connection.
            std::mem::forget(std::mem::take(self.last_look.get_mut()));
        }
    }
}

fn name(held: &ClaimedItem) -> (i64, i64) {
    (held.item.id, held.item.attempt)
}
