//! What an engine must do when people change items: bring back, copy, cancel, reschedule, delete. Each locks the item.

use crate::error::Result;

pub trait RepairTx {
    /// A failed item below its retry limit is pending; return whether it is. `for_all` replaces every item's own limit,
    /// `otherwise` is that of items without one.
    fn retry_failed(
        &self,
        queue: &str,
        id: i64,
        for_all: Option<u32>,
        otherwise: u32,
        run_at: Option<i64>,
    ) -> Result<bool>;

    /// A failed or cancelled item is pending with its retry count reset; return whether it is.
    fn retry(&self, queue: &str, id: i64, run_at: Option<i64>) -> Result<bool>;

    /// An item that is not in progress is cancelled; return whether it is.
    fn cancel(&self, queue: &str, id: i64) -> Result<bool>;

    /// An item in progress will be cancelled when its worker reports; return whether there is one.
    fn cancel_running(&self, queue: &str, id: i64) -> Result<bool>;

    /// A pending item is due now; return whether there is one that was delayed.
    fn run_now(&self, queue: &str, id: i64) -> Result<bool>;

    /// A pending item is due at `run_at`; return whether there is one.
    fn run_later(&self, queue: &str, id: i64, run_at: Option<i64>) -> Result<bool>;

    /// A copy of the item is pending; return its id.
    fn replay(&self, queue: &str, id: i64) -> Result<Option<i64>>;

    /// The item is gone; return whether there was one.
    fn delete(&self, queue: &str, id: i64) -> Result<bool>;
}
