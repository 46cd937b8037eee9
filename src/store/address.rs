//! Addresses: where a database is, and which engine opens it. This file has the only list of engines.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::Store;
use crate::error::Result;
use crate::model::Now;
use crate::sqlite::{self, Database, Location};

/// Protections that tests can switch off to show what they prevent.
#[cfg(feature = "python")]
pub use crate::sqlite::{COMMIT_CHECK, FORK, LOCKS};

/// The location of a database. Two addresses of one database are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(Location);

impl Address {
    /// Resolves an address as the user gave it.
    pub fn resolve(given: &Path) -> Result<Self> {
        Location::resolve(given).map(Self)
    }

    /// The file, if the database is a file.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.0 {
            Location::Memory(_) => None,
            Location::File(path) => Some(path.clone()),
        }
    }

    /// Returns whether a forked child can open it again; it cannot open a database in memory.
    pub fn outlives_process(&self) -> bool {
        matches!(self.0, Location::File(_))
    }
}

/// Opens a database, or shares the one that this process already has open.
pub fn open(address: &Address, patience: Duration) -> Result<Arc<dyn Store>> {
    Ok(Database::open(address.0.clone(), patience)?)
}

/// Returns whether there is a queue at this path, without opening it as a queue.
pub fn has_queue(path: &Path) -> Result<bool> {
    sqlite::has_queue(path)
}

/// What `remove` took out of a file, or would take out.
#[derive(Debug)]
pub struct Removal {
    pub items: i64,
    pub unfinished: i64,
    /// The schema objects, in words: `table ingest_queue`.
    pub objects: Vec<String>,
}

/// Removes the queue from an existing file. Fails while a worker lives, or if something of the application uses it.
pub fn remove(path: &Path, discard: bool, dry_run: bool, now: Now) -> Result<Removal> {
    sqlite::remove(path, discard, dry_run, now)
}

/// Wakes every waiting thread of this process: the clock was changed, or the interpreter is exiting.
#[cfg(feature = "python")]
pub fn wake_all() {
    sqlite::wake_all();
}

/// Work that must be done once, before the first open.
#[cfg(feature = "python")]
pub fn install() -> Result<()> {
    sqlite::install()
}
