//! What an engine must do to find claims that are over without an end.

use super::Claimed;
use crate::error::Result;

pub trait ReclaimTx {
    /// Claims whose lease has expired; a bounded number. Locks them.
    fn expired(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<Vec<Claimed>>;

    /// Claims that would last longer than their lease, because the clock was set back. Locks them.
    fn ahead(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<Vec<Claimed>>;

    /// Claims of one process; a bounded number. Locks them.
    fn claims_of(&self, queue: &str, holder: i64, limit: usize) -> Result<Vec<Claimed>>;

    /// Every claim of the queue. Locks them.
    fn in_progress(&self, queue: &str) -> Result<Vec<Claimed>>;

    /// The claims of a batch with larger ids than `after`. Locks them.
    fn rest_of_batch(&self, queue: &str, batch: i64, after: i64) -> Result<Vec<Claimed>>;

    /// Gives claims of other programs that have neither a lease nor a start time one lease from now.
    fn grant_lease(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<()>;

    /// Records that this process may claim from the queue.
    fn add_holder(&self, queue: &str, holder: i64) -> Result<()>;

    /// Removes that record.
    fn remove_holder(&self, queue: &str, holder: i64) -> Result<()>;
}
