//! What an engine must do for a claim.

use super::StoredSettings;
use crate::error::Result;
use crate::model::{Item, Receipt};

/// What a claim writes on a row.
pub struct Grant<'a> {
    pub token: i64,
    pub lease_ms: i64,
    pub worker: &'a str,
    /// What the claims of one `claim_group` have in common.
    pub batch: Option<i64>,
    /// The number by which others see that the process lives.
    pub holder: Option<i64>,
}

/// What a claim made now would meet.
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
    /// A group's rate allows it to go on.
    pub freed: bool,
    pub paused: bool,
    pub settings: StoredSettings,
}

pub trait ClaimTx {
    /// The first claimable item of the queue.
    fn next(&self, queue: &str) -> Result<Option<i64>>;

    /// The first claimable item of a group.
    fn next_in_group(&self, queue: &str, group: &str) -> Result<Option<i64>>;

    /// The first claimable item of a group of which nothing is in progress.
    fn next_free_in_group(&self, queue: &str, group: &str) -> Result<Option<i64>>;

    /// The first item of the first group of which nothing is in progress.
    fn next_group(&self, queue: &str) -> Result<Option<i64>>;

    /// Of the group of item `id`, the claimable item with the smallest id.
    fn next_beside(&self, queue: &str, id: i64) -> Result<Option<i64>>;

    /// The item that comes first, and whether it has a group that can be claimed as a whole.
    fn next_batch(&self, queue: &str) -> Result<Option<(i64, bool)>>;

    /// The next pending item of the group of `head`.
    fn next_of_batch(&self, queue: &str, head: i64) -> Result<Option<i64>>;

    /// The item is claimed; `None` if it could not be. Locks the item.
    fn claim(&self, id: i64, grant: &Grant) -> Result<Option<Item>>;

    /// Up to `limit` delayed items that are due can be claimed; return how many.
    fn bring_in_due(&self, queue: &str, limit: usize) -> Result<usize>;

    /// The lease ends `lease_ms` from now, if the receipt is good; return whether it was. Locks the item.
    fn extend(&self, queue: &str, receipt: Receipt, lease_ms: i64) -> Result<bool>;

    /// The progress is stored, if the receipt is good; return whether it was. Locks the item.
    fn set_progress(&self, queue: &str, receipt: Receipt, fraction: f64, note: Option<&str>) -> Result<bool>;
}
