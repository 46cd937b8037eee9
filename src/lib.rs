//! The map of the crate: a durable work queue in the database the application already has.
//!
//! Python decides what to run, Rust decides what becomes of it, SQL guards and records. Calls go down:
//!
//! | module | what it is | calls |
//! |---|---|---|
//! | [`python`] | the only module that names pyo3: arguments → release the GIL → verb → result | `queue` |
//! | [`queue`] | the verbs: rules meet the store; it knows no engine and no file | `rules`, `model`, `store`, `wake` |
//! | [`heartbeat`], [`wake`] | renewing leases; waiting | `store` |
//! | [`store`] | the boundary: what an engine must do; `store/address.rs` has the list of engines | `model`, `rules` |
//! | [`sqlite`] | the SQLite engine: statements by verb, `file/`, `locks/` | implements `store` |
//! | [`rules`] | pure functions of facts, the time and dice | `model` |
//! | [`model`] | the nouns, plain data | nothing |
//! | [`process`], [`clock`], [`random`], [`sync`], [`error`], [`faults`] | what all of them use | each other |

mod clock;
mod error;
pub mod faults;
mod heartbeat;
mod model;
mod process;
mod queue;
mod random;
pub mod rules;
mod sqlite;
mod store;
mod sync;
mod wake;

#[cfg(feature = "python")]
mod python;

pub use clock::Clock;
pub use error::{Error, Result};
pub use model::{
    Answer, Attempt, Content, Counts, Deadline, GroupCounts, IfFailed, Item, Key, KeyName, LATEST_MS, Need, NewItem,
    NextStage, Now, OnDuplicate, Pick, Receipt, Schedule, Status, Stored, When, millis,
};
pub use queue::{
    Awaited, AwaitedEnd, Claim, ClaimedItem, Current, Durability, Durable, Enlistment, EnlistmentOutcome,
    EnlistmentStep, Filter, Lock, Next, Node, Options, Plan, Queue, Stats, Step, Target, Targets, Turn, Waiting, Want,
    Watcher, Worker, WorkerLoop,
};
pub use rules::outcome::{Ending, Settled};
pub use rules::rate::Rate;
pub use rules::retry::{Backoff, Retry};
pub use rules::settings::{MOST_BYTES, Settings};
pub use rules::tick::Timing;
pub use rusqlite::version as sqlite_version;
pub use store::{Removal, has_queue, remove};
