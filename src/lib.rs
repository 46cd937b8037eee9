//! The map of the crate: a durable work queue in one SQLite file.
//!
//! Python decides what to run, Rust decides what becomes of it, SQL guards and records. An item's way
//! goes down once and comes up once: [`Queue`] → [`outcome`] → [`sqlite`] → one `.sql` file.

mod clock;
#[cfg(any(feature = "python", test))]
mod ending;
mod error;
pub mod faults;
mod heartbeat;
mod item;
mod lease;
pub mod outcome;
mod process;
#[cfg(test)]
mod properties;
mod queue;
mod random;
mod rate;
mod schedule;
mod settings;
mod sqlite;
mod sync;
mod wake;

#[cfg(feature = "python")]
mod python;

pub use clock::{Clock, LATEST_MS, Now, millis};
pub use error::{Error, Result};
pub use item::{
    Attempt, Content, Counts, GroupCounts, Item, Key, KeyName, NewItem, OnDuplicate, Receipt, Schedule, Status, Stored,
    When,
};
pub use outcome::{Backoff, Ending, Retry, Settled};
pub use queue::{
    Claim, Crew, Current, Durability, Filter, From, Held, Lock, Next, Options, Plan, Queue, Statements, Stats, Step,
    Turn, Waiting, Want, Watcher,
};
pub use rate::Rate;
pub use rusqlite::version as sqlite_version;
pub use schedule::Timing;
pub use settings::{MOST_BYTES, Settings};
pub use sqlite::has_queue;
