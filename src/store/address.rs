//! Addresses: where a database is, and which engine opens it. This file has the only list of engines.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::Store;
use crate::error::Result;
use crate::sqlite::{self, Database, Place};

/// Protections that tests switch off, to see what they protect from.
#[cfg(feature = "python")]
pub use crate::sqlite::{COMMIT_CHECK, FORK, LOCKS};

/// Where a database is. Two addresses of one database are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(Place);

impl Address {
    /// Reads an address as the user gave it.
    pub fn resolve(given: &Path) -> Result<Self> {
        Place::resolve(given).map(Self)
    }

    /// The file, if the database is one.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.0 {
            Place::Memory(_) => None,
            Place::File(path) => Some(path.clone()),
        }
    }

    /// Whether a forked child can open it anew: what is in memory alone it cannot.
    pub fn outlives_process(&self) -> bool {
        matches!(self.0, Place::File(_))
    }
}

/// Opens a database, or joins the one this process has open.
pub fn open(address: &Address, patience: Duration) -> Result<Arc<dyn Store>> {
    Ok(Database::open(address.0.clone(), patience)?)
}

/// Whether there is a queue at this path, without opening it as one.
pub fn has_queue(path: &Path) -> Result<bool> {
    sqlite::has_queue(path)
}

/// Wakes everything that waits in this process: the clock was changed, or the interpreter exits.
#[cfg(feature = "python")]
pub fn wake_all() {
    sqlite::ring_all();
}

/// What must be done once, before the first open.
#[cfg(feature = "python")]
pub fn install() -> Result<()> {
    sqlite::install()
}
