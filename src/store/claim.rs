//! What an engine must do for a claim that was made, and what it finds before one.

use super::StoredSettings;
use crate::error::Result;
use crate::model::Receipt;

/// What a claim made now would find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scout {
    /// The first claimable item.
    pub ready: Option<i64>,
    /// A delayed item is due.
    pub due: bool,
    /// A lease has run out.
    pub expired: bool,
    /// A schedule is due.
    pub ticking: bool,
    /// The rate of a group allows claims again.
    pub freed: bool,
    pub paused: bool,
    pub settings: StoredSettings,
    /// In any queue, dependents are to be updated or an item has expired.
    pub flow: bool,
}

pub trait ClaimTx {
    /// Sets the lease to end `lease_ms` from now if the receipt is valid. Returns whether it was. Locks the item.
    fn extend(&self, queue: &str, receipt: Receipt, lease_ms: i64) -> Result<bool>;

    /// Stores the progress if the receipt is valid. Returns whether it was. Locks the item.
    fn set_progress(&self, queue: &str, receipt: Receipt, fraction: f64, note: Option<&str>) -> Result<bool>;
}
