//! Renewals: what a heartbeat keeps alive, as data.

use crate::model::Receipt;
use crate::rules::lease::Record;

/// One thing to renew.
pub struct Renewal {
    pub what: Renews,
    /// How long it is granted from now on.
    pub lease_ms: i64,
}

pub enum Renews {
    /// A claim, and the progress its worker has reported since the last one.
    Claim { queue: String, receipt: Receipt, progress: Option<(f64, Option<String>)> },
    /// A worker lease or a named lock.
    Lease { key: String, record: Record },
}
