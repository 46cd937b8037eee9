//! What an engine must do to keep a rate: claims are numbered per queue and per group.

use crate::error::Result;

pub trait RateTx {
    /// Records the claim `number` and forgets those more than `kept` before it. Locks the queue's rate.
    fn add_start(&self, queue: &str, group: &str, number: i64, kept: i64) -> Result<()>;

    /// Forgets up to `limit` claims made before a time. Returns how many.
    fn forget_starts(&self, queue: &str, before: i64, limit: i64) -> Result<usize>;

    /// Makes the group unclaimable before `until`.
    fn hold_group(&self, queue: &str, group: &str, until: i64) -> Result<()>;

    /// Makes groups claimable whose pause is over, or reaches beyond `furthest`. Returns up to `limit` of them.
    fn free_groups(&self, queue: &str, furthest: i64, limit: usize) -> Result<Vec<String>>;

    /// Orders all groups anew, by the group limit that is stored now.
    fn groups_moved(&self, queue: &str) -> Result<()>;
}
