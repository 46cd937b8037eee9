//! One SQLite file as this process has it open: its writer, its readers, its WAL, and how all calls share them.

mod busy;
mod checkpointer;
mod compact;
mod failure;
mod group_commit;
mod identity;
mod liveness;
mod open;
mod place;
mod readers;
mod registry;
mod turns;
#[cfg(unix)]
pub mod wal;
mod writer;

#[cfg(unix)]
pub use registry::OpenHold;
#[cfg(feature = "python")]
pub use registry::ring_all;
pub use {
    open::has_queue,
    place::Place,
    readers::Lent,
    writer::{Flush, Wait},
};

use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use self::checkpointer::Folding;
use self::group_commit::Joint;
use self::identity::Identity;
use self::readers::Readers;
use self::writer::Writer;
use super::locks::SignOfLife;
use super::references::References;
use super::{locks, migrate};
use crate::error::Error;
use crate::process;
use crate::sync::{Mutex, Seat};
use crate::wake::Bell;

/// One file as this process has it open. All queues of the file share it.
pub struct Database {
    place: Place,
    writer: ManuallyDrop<Seat<Writer>>,
    readers: ManuallyDrop<Mutex<Readers>>,
    bell: Bell,
    folding: Arc<Folding>,
    joint: Joint,
    /// The heartbeat could not renew what this process holds, and tries again.
    waits_to_renew: AtomicBool,
    /// `Some(None)` where a dead process cannot be told from a silent one.
    sign: Mutex<Option<Option<Arc<SignOfLife>>>>,
    shape: migrate::Shape,
    mended: Vec<String>,
    references: References,
    identity: Identity,
    generation: u64,
}

impl Drop for Database {
    fn drop(&mut self) {
        // A child must not close what its parent has open: closing would write, and act on the parent's locks.
        if self.generation != process::generation() {
            return;
        }
        self.folding.end();
        // First, so that the file is really closed after its last connection.
        self.sign.lock().take();
        // SAFETY: dropped once, here. The writer goes last, so that it folds the WAL back.
        unsafe {
            ManuallyDrop::drop(&mut self.readers);
            ManuallyDrop::drop(&mut self.writer);
        }
        locks::sweep();
    }
}

impl Database {
    #[cfg(test)]
    pub(super) fn joint(&self) -> &Joint {
        &self.joint
    }

    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// The file that commits are written to; `None` in memory.
    pub fn log_path(&self) -> Option<PathBuf> {
        match &self.place {
            Place::Memory(_) => None,
            Place::File(path) => {
                let mut log = path.clone().into_os_string();
                log.push("-wal");
                Some(log.into())
            }
        }
    }

    pub fn is_of_this_process(&self) -> bool {
        self.generation == process::generation()
    }

    pub(super) fn shape(&self) -> migrate::Shape {
        self.shape
    }

    pub(super) fn references(&self) -> &References {
        &self.references
    }

    /// What was missing or altered in the file when it was opened, and was made anew.
    pub(super) fn mended(&self) -> &[String] {
        &self.mended
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn about(&self, error: Error) -> Error {
        match &self.place {
            Place::Memory(_) => error,
            Place::File(path) => error.about(path),
        }
    }
}
