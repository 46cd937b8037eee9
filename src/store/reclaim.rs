//! What an engine must do so that claims of dead processes are found.

use super::Claimed;
use crate::error::Result;

pub trait ReclaimTx {
    /// Every claim of the queue. Locks them.
    fn in_progress(&self, queue: &str) -> Result<Vec<Claimed>>;

    /// Records that this process may claim from the queue.
    fn add_holder(&self, queue: &str, holder: i64) -> Result<()>;
}
