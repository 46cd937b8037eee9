//! Renewals: what a heartbeat renews, as data.

use crate::model::Receipt;
use crate::rules::lease::LeaseRecord;

/// One thing to renew.
pub struct Renewal {
    pub what: Renews,
    /// The duration of the lease from now on.
    pub lease_ms: i64,
}

pub enum Renews {
    /// A claim, and the progress its worker has reported since the last renewal.
    Claim { queue: String, receipt: Receipt, progress: Option<(f64, Option<String>)> },
    /// A worker lease or a named lock.
    Lease { key: String, record: LeaseRecord },
}
