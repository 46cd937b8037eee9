//! What an engine must answer, from one snapshot.

use super::{Scout, StoredSettings};
use crate::error::Result;
use crate::model::{Attempt, Counts, GroupCounts, Item, Now, Receipt, RecordedStep, Schedule, Status};

/// Which items a page shows.
pub struct Page<'a> {
    pub status: Option<Status>,
    pub project: Option<&'a str>,
    pub group: Option<&'a str>,
    pub after: Option<i64>,
    pub limit: i64,
    pub newest_first: bool,
    /// Items that were enqueued into the queue, wherever they are now, rather than those that are in it.
    pub home: bool,
}

/// Whether a claim made now would find an item, and until when to sleep otherwise.
pub struct Forecast {
    pub scout: Scout,
    /// When the next event happens without any call: an item is due, a lease ends, a schedule ticks.
    pub next_event: Option<i64>,
    /// Whether a process that holds items is gone; checked only when no item is ready.
    pub has_anyone_died: bool,
}

/// The items that wait for a worker.
pub struct Waiting {
    /// When the first claimable item was enqueued.
    pub oldest: Option<String>,
    /// When the first delayed item is due.
    pub first_due: Option<i64>,
    /// The number of items that are not due yet.
    pub delayed: i64,
}

/// Who holds an item in progress.
pub struct Held {
    pub id: i64,
    /// The liveness number of the process; `None` for claims of other programs.
    pub holder: Option<i64>,
    pub worker: Option<String>,
    pub started_at: Option<String>,
}

/// A read-only snapshot. It locks nothing.
pub trait View {
    fn now(&self) -> Now;

    /// An item that is in the queue, or was enqueued into it.
    fn get(&self, queue: &str, id: i64) -> Result<Option<Item>>;

    /// An item of any queue.
    fn item(&self, id: i64) -> Result<Option<Item>>;

    /// The ids of the first `most` items that an item waits for or waited for, in their order, including those that are
    /// gone.
    fn after(&self, id: i64, most: i64) -> Result<Vec<i64>>;

    /// The ids of the items that an item has made, beginning after one of them; at most `most`.
    fn children(&self, id: i64, after: i64, most: i64) -> Result<Vec<i64>>;

    /// Items that wait for an item and are not done; at most `most`.
    fn needed_by(&self, id: i64, most: i64) -> Result<Vec<i64>>;

    /// How many unfinished items were enqueued into the queue and are in another one now.
    fn away(&self, queue: &str) -> Result<i64>;

    /// Returns whether an item of any queue had this id and was removed.
    fn is_gone(&self, id: i64) -> Result<bool>;

    /// The id of the newest item with a key.
    fn newest_with_key(&self, queue: &str, key: &str) -> Result<Option<i64>>;

    fn items(&self, queue: &str, page: &Page) -> Result<Vec<Item>>;

    /// The latest failures, newest first.
    fn failures(&self, queue: &str, limit: i64) -> Result<Vec<Item>>;

    /// The items in progress, the longest-running first.
    fn running(&self, queue: &str, limit: i64) -> Result<Vec<Item>>;

    /// Of the given items, those that have ended or are gone (`None`).
    fn ended_among(&self, queue: &str, ids: &[i64]) -> Result<Vec<(i64, Option<Item>)>>;

    /// A step of a stage of an item.
    fn step(&self, id: i64, stage: i64, name: &str) -> Result<Option<RecordedStep>>;

    /// How an item's attempts ended; the latest `most` of them.
    fn history(&self, queue: &str, id: i64, most: i64) -> Result<Vec<Attempt>>;

    fn counts(&self, queue: &str) -> Result<Counts>;

    /// The counts of every queue that has ever had an item, by name.
    fn queues(&self) -> Result<Vec<(String, Counts)>>;

    fn group_counts(&self, queue: &str) -> Result<Vec<GroupCounts>>;

    /// How many groups have unfinished items.
    fn groups(&self, queue: &str) -> Result<i64>;

    fn waiting(&self, queue: &str) -> Result<Waiting>;

    /// `None` if the receipt is stale, else whether its item was cancelled.
    fn holds(&self, queue: &str, receipt: Receipt) -> Result<Option<bool>>;

    /// The failed items below their retry limit, in the order of their ids.
    fn retriable(&self, queue: &str, for_all: Option<u32>, otherwise: u32) -> Result<Vec<i64>>;

    /// The items of a finished status, in the order of their ids.
    fn finished_ids(&self, queue: &str, status: Status) -> Result<Vec<i64>>;

    /// What a claim would find. A thorough one includes what only other programs write.
    fn scout(&self, queue: &str, lease_ms: i64, thorough: bool) -> Result<Scout>;

    /// What a claim made now would find, and when the next event happens without any call.
    fn forecast(&self, queue: &str, lease_ms: i64) -> Result<Forecast>;

    /// Returns whether such a claim would find a ready item.
    fn is_ready(&self, queue: &str, group: Option<&str>, whole: bool) -> Result<bool>;

    /// When the next delayed item, tick or paused group needs a worker.
    fn next_due(&self, queue: &str, with_ticks: bool) -> Result<Option<i64>>;

    /// Whether an item of the queue waits for one that is in progress in any queue.
    fn is_blocked_by_work(&self, queue: &str) -> Result<bool>;

    /// Processes that have claimed from the queue; a bounded number.
    fn holders(&self, queue: &str) -> Result<Vec<i64>>;

    /// Returns whether one of them is gone.
    fn has_anyone_died(&self, queue: &str) -> Result<bool>;

    /// Items whose claim is over without an end; a bounded number.
    fn stuck_items(&self, queue: &str, lease_ms: i64) -> Result<Vec<i64>>;

    /// Returns whether a claim would last longer than its lease.
    fn is_any_ahead(&self, queue: &str, lease_ms: i64) -> Result<bool>;

    /// Returns whether a group is paused beyond a time.
    fn is_any_hold_beyond(&self, queue: &str, furthest: i64) -> Result<bool>;

    /// The number of the latest claim that a rate counts; the empty group means the queue.
    fn last_start(&self, queue: &str, group: &str) -> Result<i64>;

    /// When the claim with that number was made.
    fn start_at(&self, queue: &str, group: &str, number: i64) -> Result<Option<i64>>;

    fn schedules(&self, queue: &str) -> Result<Vec<Schedule>>;

    fn setting(&self, key: &str) -> Result<Option<String>>;

    fn settings(&self, queue: &str) -> Result<StoredSettings>;

    /// The record of a worker lease or a named lock.
    fn worker_lease(&self, key: &str) -> Result<Option<String>>;

    /// Whether leases are stored where membox's own programs look for them.
    fn shares_leases_with_membox(&self) -> Result<bool> {
        Ok(false)
    }

    /// The records of worker loops of all queues, each with its key; a bounded number. They are written as settings.
    fn worker_records(&self, most: usize) -> Result<Vec<(String, String)>>;

    /// Who holds the items in progress; a bounded number.
    fn held(&self, queue: &str, most: usize) -> Result<Vec<Held>>;
}
