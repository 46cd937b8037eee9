//! Marks: bytes of a database by which processes tell each other something: who waits for the write lock, and whether a
//! caller waits for the end of an item.

use std::ffi::c_int;

use super::identity::Inode;
use super::protections::LOCKS;
use super::record_locks::{LIVENESS_BYTES, conflicting_lock, set_lock};
#[cfg(test)]
use super::record_locks::{ofd, record};
use super::registry::registry;
use crate::process;

/// The bytes by which writers take turns, below the first liveness lock.
const MARKS: i64 = LIVENESS_BYTES - 2;

/// A byte that one process locks to tell the other writers something; see `file/turns.rs`. A process has one writer per
/// file, so its own marks never conflict.
pub struct MarkGuard {
    inode: Inode,
    mark: Mark,
    generation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    OccasionalWaits = 0,
    SteadyWaits = 1,
    Yields = 2,
    /// Shared by all processes in which a caller waits for the end of an item.
    AwaitsEnds = 3,
}

impl Mark {
    fn byte(self) -> i64 {
        MARKS + self as i64
    }
}

impl MarkGuard {
    /// Returns `None` if another process has it, or the file system has no such locks.
    pub fn take(device: u64, inode: u64, mark: Mark) -> Option<Self> {
        let inode = Inode { device, number: inode };
        let registry = registry();
        let file = registry.files.get(&inode)?;
        let is_taken = !LOCKS.is_off() && file.has_ofd && set_lock(file, libc::F_WRLCK as c_int, mark.byte(), 1);
        is_taken.then(|| Self { inode, mark, generation: process::generation() })
    }

    /// Takes a mark that several processes may have. Returns `None` if the file system has no such locks.
    pub fn share(device: u64, inode: u64, mark: Mark) -> Option<Self> {
        let inode = Inode { device, number: inode };
        let registry = registry();
        let file = registry.files.get(&inode)?;
        let is_taken = !LOCKS.is_off() && file.has_ofd && set_lock(file, libc::F_RDLCK as c_int, mark.byte(), 1);
        is_taken.then(|| Self { inode, mark, generation: process::generation() })
    }

    /// Returns whether another process has it.
    pub fn is_taken(device: u64, inode: u64, mark: Mark) -> bool {
        let registry = registry();
        let Some(file) = registry.files.get(&Inode { device, number: inode }) else { return false };
        file.has_ofd && !LOCKS.is_off() && matches!(conflicting_lock(file.lock_fd(), mark.byte(), 1), Ok(Some(_)))
    }
}

impl Drop for MarkGuard {
    fn drop(&mut self) {
        if self.generation == process::generation()
            && let Some(file) = registry().files.get(&self.inode)
        {
            set_lock(file, libc::F_UNLCK as c_int, self.mark.byte(), 1);
        }
    }
}

/// Takes or releases a mark, as another process would.
#[cfg(test)]
pub fn set_mark(fd: c_int, mark: Mark, is_taken: bool) -> bool {
    let mut lock = record(if is_taken { libc::F_WRLCK } else { libc::F_UNLCK } as c_int, mark.byte(), 1);
    // SAFETY: a valid `struct flock` on a descriptor of the test's.
    unsafe { libc::fcntl(fd, ofd::SETLK, &mut lock) == 0 }
}
