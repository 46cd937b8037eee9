//! The limit `max_pending`: whether a queue has room for more items.

use crate::error::{Error, Result};

/// Refuses an enqueue that made a full queue longer. One that only found its key in use added nothing.
pub fn check(queue: &str, limit: i64, before: i64, pending: i64) -> Result<()> {
    let queue = || queue.to_owned();
    if pending - before > limit {
        return Err(Error::NeverRoom { queue: queue(), added: pending - before, limit });
    }
    if pending > limit && pending > before { Err(Error::Full { queue: queue(), pending, limit }) } else { Ok(()) }
}
