//! What an engine must do for operators: retry, copy, cancel, reschedule and delete items. Each call locks the item.

use crate::error::Result;

/// What one statement changes about one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemChange {
    /// Makes a failed or cancelled item pending, due at this time, with its retry count reset.
    Retry(Option<i64>),
    /// Cancels an item that is not in progress.
    Cancel,
    /// Marks an item in progress, which becomes `cancelled` when its worker reports.
    CancelRunning,
    /// Keeps an item cancelled that the end of another has cancelled.
    CancelForGood,
    /// Makes a delayed item due now.
    RunNow,
    /// Makes a pending item due at this time.
    RunLater(Option<i64>),
    Delete,
}

pub trait RepairTx {
    /// Makes a failed item below its retry limit pending. Returns whether it did. `for_all` replaces every item's own
    /// limit; `otherwise` applies to items without one.
    fn retry_failed(
        &self,
        queue: &str,
        id: i64,
        for_all: Option<u32>,
        otherwise: u32,
        run_at: Option<i64>,
    ) -> Result<bool>;

    /// Makes a failed or cancelled item pending, or blocked if it still waits for others, with its retry count reset.
    /// Returns whether it did; not if one of those has failed, was cancelled or is gone.
    fn retry(&self, queue: &str, id: i64, run_at: Option<i64>) -> Result<bool>;

    /// Cancels an item that is not in progress. Returns whether it did.
    fn cancel(&self, queue: &str, id: i64) -> Result<bool>;

    /// Marks an item in progress, which becomes `cancelled` when its worker reports. Returns whether there was one.
    fn cancel_running(&self, queue: &str, id: i64) -> Result<bool>;

    /// Makes a delayed item due now. Returns whether there was one.
    fn run_now(&self, queue: &str, id: i64) -> Result<bool>;

    /// Makes a pending item due at `run_at`. Returns whether there was one.
    fn run_later(&self, queue: &str, id: i64, run_at: Option<i64>) -> Result<bool>;

    /// Enqueues a copy of the item, due at `run_at`. Returns the copy's id.
    fn replay(&self, queue: &str, id: i64, run_at: Option<i64>) -> Result<Option<i64>>;

    /// Deletes the item. Returns whether there was one.
    fn delete(&self, queue: &str, id: i64) -> Result<bool>;
}
