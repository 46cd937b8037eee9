//! A recurring schedule.

use super::NewItem;
use crate::rules::tick::Timing;

/// A schedule, which enqueues the same item at every tick.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub name: String,
    pub timing: Timing,
    /// Milliseconds since 1970.
    pub next_at: i64,
    pub last_at: Option<i64>,
    pub last_id: Option<i64>,
    pub item: NewItem,
    /// The checksum of the item's content as it was stored.
    pub checksum: Option<i64>,
}
