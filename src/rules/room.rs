//! The limit `max_pending`: whether a queue has room for more items.

use crate::error::{Error, Result};

/// Refuses an enqueue that made a full queue longer. One that only found its key in use added nothing.
pub fn check(limit: i64, before: i64, pending: i64) -> Result<()> {
    if pending - before > limit {
        return Err(Error::NeverRoom { added: pending - before, limit });
    }
    if pending > limit && pending > before { Err(Error::Full { pending, limit }) } else { Ok(()) }
}
