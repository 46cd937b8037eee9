//! Items that a handler enqueues with the end of its own.

use super::Queue;
use super::claim::ClaimedItem;
use crate::error::Result;
use crate::model::{Deadline, NewItem};
use crate::rules::inherit::{Given, inherit};
use crate::store::Child;

impl Queue {
    /// Keeps an item for the transaction that ends the claim as done or moved. Refuses one that could not be written. It
    /// takes over what was not given from the claimed item.
    pub fn enqueue_with_end(&self, held: &ClaimedItem, mut item: NewItem, given: Given) -> Result<()> {
        self.check_is_ours(held)?;
        if held.is_settled() || held.is_known_lost() {
            return Err(self.why_stale(held)?);
        }
        inherit(&mut item, given, &held.item);
        if !given.expires {
            item.expires = held.item.expires_at.map(Deadline::At);
        }
        self.check_needs(&item)?;
        let (destinations, mut puts) = self.prepare_all(vec![item])?;
        let Some(mut put) = puts.pop() else { return Ok(()) };
        put.row.parent = Some(held.item.id);
        held.add_child(Child { queue: destinations[put.queue].stored(self).name.to_owned(), put });
        Ok(())
    }
}
