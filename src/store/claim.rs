//! What an engine must do for a claim.

use super::StoredSettings;
use crate::error::Result;
use crate::model::{Item, Receipt};

/// What a claim writes to a row.
pub struct Grant<'a> {
    pub token: i64,
    pub lease_ms: i64,
    pub worker: &'a str,
    /// The number that the claims of one `claim_group` share.
    pub batch: Option<i64>,
    /// The number by which other processes see that this one is alive.
    pub holder: Option<i64>,
}

/// What a claim made now would find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scout {
    /// The first claimable item.
    pub ready: Option<i64>,
    /// A delayed item is due.
    pub due: bool,
    /// A lease has run out.
    pub expired: bool,
    /// A schedule is due.
    pub ticking: bool,
    /// The rate of a group allows claims again.
    pub freed: bool,
    pub paused: bool,
    pub settings: StoredSettings,
}

pub trait ClaimTx {
    /// The first claimable item of the queue.
    fn next(&self, queue: &str) -> Result<Option<i64>>;

    /// The first claimable item of a group.
    fn next_in_group(&self, queue: &str, group: &str) -> Result<Option<i64>>;

    /// The first claimable item of a group that has nothing in progress.
    fn next_free_in_group(&self, queue: &str, group: &str) -> Result<Option<i64>>;

    /// The first item of the first group that has nothing in progress.
    fn next_group(&self, queue: &str) -> Result<Option<i64>>;

    /// The claimable item with the smallest id in the group of item `id`.
    fn next_beside(&self, queue: &str, id: i64) -> Result<Option<i64>>;

    /// The first item that can start a batch, and whether it has a group.
    fn next_batch(&self, queue: &str) -> Result<Option<(i64, bool)>>;

    /// The next pending item of the group of `head`.
    fn next_of_batch(&self, queue: &str, head: i64) -> Result<Option<i64>>;

    /// Claims the item. Returns `None` if it could not be claimed. Locks the item.
    fn claim(&self, id: i64, grant: &Grant) -> Result<Option<Item>>;

    /// Makes up to `limit` delayed items that are due claimable. Returns how many.
    fn bring_in_due(&self, queue: &str, limit: usize) -> Result<usize>;

    /// Sets the lease to end `lease_ms` from now if the receipt is valid. Returns whether it was. Locks the item.
    fn extend(&self, queue: &str, receipt: Receipt, lease_ms: i64) -> Result<bool>;

    /// Stores the progress if the receipt is valid. Returns whether it was. Locks the item.
    fn set_progress(&self, queue: &str, receipt: Receipt, fraction: f64, note: Option<&str>) -> Result<bool>;
}
