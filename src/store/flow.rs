//! What an engine must do for items that wait for others, for deadlines and for answers.

use super::WhenDone;
use crate::error::{Error, Result};
use crate::model::{Answer, IfFailed};

/// What an update of dependents did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Updated {
    /// Whether an item was freed, cancelled or brought back.
    pub any: bool,
    /// Whether there is more to update.
    pub is_more: bool,
}

pub trait FlowTx {
    /// Updates items by what has become of those they wait for: frees, cancels or brings back a bounded number, first those
    /// that wait for one of `ended`. Repeatable: the rest is left to the next call. Locks the items it changes.
    fn update_dependents(&self, ended: &[i64]) -> Result<Updated>;

    /// Cancels up to `limit` items of all queues whose deadline has passed. Those in progress become `cancelled` when their
    /// worker reports. Returns how many. Locks them.
    fn expire(&self, limit: usize) -> Result<usize>;

    /// Makes an existing item wait for others, behind those it waits for already. Fails if it would wait for itself, or if
    /// one of them does not exist. Returns whether it has to wait. Locks the item and reads the others under a lock.
    #[allow(dead_code)]
    fn wait_for(&self, id: i64, needs: &[i64], if_failed: IfFailed) -> Result<bool>;

    /// Ends an item without a claim, unless it is done or cancelled. Returns whether it did. Locks the item.
    fn answer(&self, queue: &str, id: i64, answer: &Answer) -> Result<bool>;

    /// Whether an item is done and its key still reserved, so that it answers who asks by that key.
    fn has_answer(&self, id: i64) -> Result<bool>;

    /// Drops the content of a done item, or removes it, as its queue's settings say.
    fn clean_up_done(&self, queue: &str, id: i64, when_done: WhenDone) -> Result<()>;

    /// Stores an item that has ended already, under a key that stays reserved until `key_until`. Returns its id.
    fn put_answer(&self, queue: &str, key: &str, key_until: i64, answer: &Answer) -> Result<i64>;

    /// Keeps an item cancelled that was cancelled because of another. Returns whether there was one. Locks the item.
    fn cancel_for_good(&self, queue: &str, id: i64) -> Result<bool>;

    /// Of the given items, those that items wait for which are not done.
    fn needed(&self, ids: &[i64]) -> Result<Vec<i64>>;

    /// Whether any item of the database waits or waited for another.
    fn has_dependencies(&self) -> Result<bool>;
}

/// An item cannot wait for one that does not exist.
pub fn missing(id: i64) -> Error {
    Error::Invalid(format!("there is no item {id} to wait for, or no longer; `after` takes items that are in the file"))
}
