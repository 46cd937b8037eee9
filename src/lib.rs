//! The map of the crate: a durable work queue in one SQLite file.
//!
//! Python decides what to run, Rust decides what becomes of it, SQL guards and records. An item's way
//! goes down once and comes up once: [`Queue`] → [`rules::outcome`] → [`sqlite`] → one `.sql` file.

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
    Attempt, Content, Counts, GroupCounts, Item, Key, KeyName, LATEST_MS, NewItem, Now, OnDuplicate, Receipt, Schedule,
    Status, Stored, When, millis,
};
pub use queue::{
    Claim, Crew, Current, Durability, Enlistment, EnlistmentStep, Filter, From, Held, Lock, Next, Options, Plan, Queue,
    Stats, Step, Turn, Waiting, Want, Watcher,
};
pub use rules::outcome::{Ending, Settled};
pub use rules::rate::Rate;
pub use rules::retry::{Backoff, Retry};
pub use rules::settings::{MOST_BYTES, Settings};
pub use rules::tick::Timing;
pub use rusqlite::version as sqlite_version;
pub use store::has_queue;
