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
    /// When the first of all that is due at some time will be, if none of it is due yet.
    pub next_event: Option<i64>,
}

impl Scout {
    /// Nothing but an item to claim.
    pub fn only_ready(id: i64, settings: StoredSettings) -> Self {
        let (ready, next_event) = (Some(id), None);
        let [due, expired, ticking, freed, paused, flow] = [false; 6];
        Self { ready, due, expired, ticking, freed, paused, settings, flow, next_event }
    }

    /// Whether there is anything to do before a claim.
    pub fn needs_action(&self) -> bool {
        self.due || self.expired || self.ticking || self.freed || self.flow
    }
}

pub trait ClaimTx {
    /// Sets the lease to end `lease_ms` from now if the receipt is valid. Returns whether it was. Locks the item.
    fn extend(&self, queue: &str, receipt: Receipt, lease_ms: i64) -> Result<bool>;

    /// Stores the progress if the receipt is valid. Returns whether it was. Locks the item.
    fn set_progress(&self, queue: &str, receipt: Receipt, fraction: f64, note: Option<&str>) -> Result<bool>;
}
