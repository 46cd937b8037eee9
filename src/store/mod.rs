//! The boundary: what an engine must do. It names no engine and contains no SQL.
//!
//! The hot verbs are whole moves of the [`Store`]: `enqueue`, `advance`, `renew`. Each is one transaction, and one round
//! trip where the engine is a server. Every other verb reads through a [`View`], which shows one snapshot, and writes
//! through a [`Tx`], which is also a view. All are object-safe, so no layer above names an engine. The traits are split
//! by verb: each engine implements one in the file of that name. The comment of each function states its effect and,
//! where it matters, what it locks. What a verb reads and then relies upon it locks by name ([`Tx::lock`]). On SQLite a
//! write transaction holds the file's only write lock, so everything in it is already locked.

mod address;
mod advance;
mod claim;
mod end_steps;
mod engine;
mod enqueue;
mod finish;
mod flow;
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
mod step;

pub use address::{Address, Removal, has_queue, open, remove};
#[cfg(feature = "python")]
pub use address::{COMMIT_CHECK, FORK, LOCKS, install, wake_all};
pub use advance::{Advance, Child, Closing, Consequences, End, Granted, LeaseRef, Moved, Served, Want, WhenDone};
pub use claim::{ClaimTx, Scout};
pub use end_steps::{EndAnswer, EndStep, EndSteps};
pub use engine::{ChangeWatch, CommitSync, Liveness, LockWait, Store};
pub use enqueue::{Destination, Enqueue, EnqueueTx, Enqueued, Needed, NewRow, Put};
pub use finish::{Claimed, Fence, FinishTx};
pub use flow::{FlowTx, Updated, missing};
pub use foreign::{BlockStatement, ForeignStatements, Statement};
pub use health::Health;
pub use lease::LeaseTx;
pub use rate::{RateTx, WHOLE_QUEUE};
pub use read::{Forecast, Held, Page, View, WaitingItems};
pub use reclaim::ReclaimTx;
pub use renew::{Renewal, Renews};
pub use repair::{ItemChange, RepairTx};
pub use retention::{Ended, ReferencedItem, RetentionTx};
pub use schedule::ScheduleTx;
pub use settings::{SettingsTx, StoredSettings};
pub use step::StepTx;

use crate::error::Result;

/// What a transaction reads and then relies upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// A worker lease or a named lock, by its key.
    Lease(&'a str),
    /// The settings of a queue, including its announced worker and its pause.
    Settings(&'a str),
    /// The schedules of a queue.
    Schedules(&'a str),
    /// The claims of a queue.
    Claims(&'a str),
    /// The registrations of all worker loops.
    Workers,
}

/// A write transaction, with the one clock reading that everything in it shares.
pub trait Tx:
    View
    + EnqueueTx
    + ClaimTx
    + ReclaimTx
    + FinishTx
    + FlowTx
    + RepairTx
    + RetentionTx
    + RateTx
    + ScheduleTx
    + SettingsTx
    + LeaseTx
    + StepTx
{
    /// Keeps what is read about the scope true until the commit. Called before the read.
    fn lock(&self, scope: Scope) -> Result<()>;

    /// Returns whether it can still be committed: after some errors the engine rolls everything back by itself.
    fn is_open(&self) -> bool;
}
