//! What an engine must do to keep a rate: claims are numbered in the queue and in each group.

use crate::error::Result;

pub trait RateTx {
    /// The claim `number` is counted, and those more than `kept` before it are forgotten. Locks the queue's rate.
    fn add_start(&self, queue: &str, group: &str, number: i64, kept: i64) -> Result<()>;

    /// Claims counted before a time are forgotten, up to `limit`; return how many.
    fn forget_starts(&self, queue: &str, before: i64, limit: i64) -> Result<usize>;

    /// Nothing of a group can be claimed before `until`.
    fn hold_group(&self, queue: &str, group: &str, until: i64) -> Result<()>;

    /// Groups whose hold is over, or reaches beyond `furthest`, can be claimed from; return up to `limit` of them.
    fn free_groups(&self, queue: &str, furthest: i64, limit: usize) -> Result<Vec<String>>;

    /// The order of all groups follows the group limit that is stored now.
    fn groups_moved(&self, queue: &str) -> Result<()>;
}
