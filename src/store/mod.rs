//! The boundary: what an engine must do. It names no engine and contains no SQL.
//!
//! A verb reads through a [`View`], which shows one snapshot, and writes through a [`Tx`], which is also a view. Both
//! are object-safe, so no layer above names an engine. The traits are split by verb: each engine implements one in the
//! file of that name. The comment of each function states its effect and, where it matters, what it locks. On SQLite a
//! write transaction holds the file's only write lock, so everything in it is already locked.

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
pub use read::{Forecast, Held, Page, View, Waiting};
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
    /// Returns whether it can still be committed: after some errors the engine rolls everything back by itself.
    fn is_open(&self) -> bool;
}
