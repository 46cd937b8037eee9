//! Whether a queue with `max_pending` has room.

use crate::error::{Error, Result};

/// Refuses an enqueue that made a full queue longer; one that only found its key there did not.
pub fn check(limit: i64, before: i64, pending: i64) -> Result<()> {
    if pending - before > limit {
        return Err(Error::NeverRoom { added: pending - before, limit });
    }
    if pending > limit && pending > before { Err(Error::Full { pending, limit }) } else { Ok(()) }
}
