//! A recurring schedule.

use super::NewItem;
use crate::rules::tick::Timing;

/// Something that is enqueued again and again.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub name: String,
    pub timing: Timing,
    /// Milliseconds since 1970.
    pub next_at: i64,
    pub last_at: Option<i64>,
    pub last_id: Option<i64>,
    pub item: NewItem,
    /// Of the item's content as it was stored.
    pub checksum: Option<i64>,
}
