//! One SQLite file as this process has it open: one writer, some readers and one checkpointer, shared by all queues of
//! the file. `Database` is defined here; each file of this folder adds the functions of its duty.

mod busy;
mod checkpointer;
mod compact;
mod failure;
mod group_commit;
mod identity;
mod liveness;
mod location;
mod open;
mod readers;
mod recovery;
mod registry;
mod turns;
#[cfg(unix)]
pub mod wal;
mod writer;

#[cfg(unix)]
pub use registry::OpenDatabasesGuard;
#[cfg(feature = "python")]
pub use registry::wake_all;
pub use {
    identity::Identity,
    location::Location,
    open::{PATIENCE, connect_existing, has_queue},
    readers::BorrowedReader,
    registry::is_open,
    writer::WriterState,
};

use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use self::checkpointer::Checkpointer;
use self::group_commit::GroupCommit;
use self::liveness::LiveInMemory;
use self::readers::Readers;
use self::writer::Writer;
use super::locks::{LivenessLock, MarkGuard};
use super::references::References;
use super::{locks, migrate};
use crate::error::Error;
use crate::process;
use crate::sync::{Exclusive, Mutex};
use crate::wake::WakeSignal;

/// One file as this process has it open. All queues of the file share it.
pub struct Database {
    location: Location,
    writer: ManuallyDrop<Exclusive<Writer>>,
    readers: ManuallyDrop<Mutex<Readers>>,
    wake_signal: WakeSignal,
    checkpointer: Arc<Checkpointer>,
    group_commit: GroupCommit,
    /// The heartbeat could not renew the claims of this process, and tries again.
    waits_to_renew: AtomicBool,
    /// `Some(None)` where the system cannot tell whether a process lives.
    sign: Mutex<Option<Option<Arc<LivenessLock>>>>,
    live_in_memory: LiveInMemory,
    /// How many callers of this process wait for the end of an item, and the mark that shows it.
    awaited_ends: Mutex<(usize, Option<MarkGuard>)>,
    shape: migrate::Shape,
    recreated: Vec<String>,
    references: References,
    identity: Identity,
    generation: u64,
}

impl Drop for Database {
    fn drop(&mut self) {
        // A forked child must not close its parent's connections: closing writes, and acts on the parent's locks.
        if self.generation != process::generation() {
            return;
        }
        self.checkpointer.close();
        // Before the sweep below, which closes no file that still carries a liveness lock.
        self.sign.lock().take();
        // SAFETY: dropped once, here. The writer goes last, so that its close checkpoints the WAL.
        unsafe {
            ManuallyDrop::drop(&mut self.readers);
            ManuallyDrop::drop(&mut self.writer);
        }
        locks::sweep();
    }
}

impl Database {
    #[cfg(test)]
    pub(super) fn group_commit(&self) -> &GroupCommit {
        &self.group_commit
    }

    pub fn wake_signal(&self) -> &WakeSignal {
        &self.wake_signal
    }

    /// The WAL; `None` in memory.
    pub fn wal_path(&self) -> Option<PathBuf> {
        match &self.location {
            Location::Memory(_) => None,
            Location::File(path) => {
                let mut wal = path.clone().into_os_string();
                wal.push("-wal");
                Some(wal.into())
            }
        }
    }

    /// Returns whether it was opened by this process, not by the parent of a fork.
    pub fn is_of_this_process(&self) -> bool {
        self.generation == process::generation()
    }

    pub(super) fn shape(&self) -> migrate::Shape {
        self.shape
    }

    pub(super) fn references(&self) -> &References {
        &self.references
    }

    /// Schema objects that were missing or altered when the file was opened, and were recreated.
    pub(super) fn recreated(&self) -> &[String] {
        &self.recreated
    }

    pub(super) fn location(&self) -> &Location {
        &self.location
    }

    /// Adds the path of the file to an error's text.
    pub(super) fn about(&self, error: Error) -> Error {
        match &self.location {
            Location::Memory(_) => error,
            Location::File(path) => error.about(path),
        }
    }
}
