//! Names of queues, locks and schedules.

use crate::error::{Error, Result};

/// The queue of a plain INSERT, and of membox.
pub const DEFAULT_QUEUE: &str = "ingest";

const LONGEST: usize = 255;

/// Refuses a text that cannot be the name of `what`.
pub fn check(what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > LONGEST || name.contains('\0') {
        return Err(Error::Invalid(format!("{what} has 1 to {LONGEST} bytes and no NUL, not {name:?}")));
    }
    Ok(())
}
