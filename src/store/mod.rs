//! The boundary: what an engine must do. It knows no engine and no SQL.
//!
//! A verb reads through a [`View`], which shows one moment, and writes through a [`Tx`], which is a view too. Both are
//! object-safe, so nothing above names an engine. The traits are split by verb: each engine implements one in the file of
//! that name. Each function says what is true afterwards and, where it matters, what it locks. On SQLite a write
//! transaction holds the one write lock of the file, so everything in it is locked already.

mod address;
mod claim;
mod engine;
mod enqueue;
mod finish;
mod foreign;
mod health;
mod lease;
mod rate;
mod read;
mod reclaim;
mod renew;
mod repair;
mod retention;
mod schedule;
mod settings;

pub use address::{Address, has_queue, open};
#[cfg(feature = "python")]
pub use address::{COMMIT_CHECK, FORK, LOCKS, install, wake_all};
pub use claim::{ClaimTx, Grant, Scout};
pub use engine::{ChangeWatch, Flush, Liveness, Store, Wait};
pub use enqueue::{EnqueueTx, NewRow};
pub use finish::{AttemptRecord, Claimed, Fence, FinishTx};
pub use foreign::{ForeignStatements, Statement};
pub use health::Health;
pub use lease::LeaseTx;
pub use rate::RateTx;
pub use read::{Forecast, Page, View, Waiting};
pub use reclaim::ReclaimTx;
pub use renew::{Renewal, Renews};
pub use repair::RepairTx;
pub use retention::{Ended, Kept, RetentionTx};
pub use schedule::ScheduleTx;
pub use settings::{SettingsTx, StoredSettings};

/// A write transaction, with the one clock reading that everything in it shares.
pub trait Tx:
    View + EnqueueTx + ClaimTx + ReclaimTx + FinishTx + RepairTx + RetentionTx + RateTx + ScheduleTx + SettingsTx + LeaseTx
{
    /// Return whether it can still be committed: after some errors the engine has undone everything by itself.
    fn is_open(&self) -> bool;
}
