//! The lock that keeps this process from writing: its holder and its kind.

use std::path::Path;

use super::record_locks::{PENDING_BYTE, RESERVED_BYTE, SHARED_BYTES, WAL_WRITE_BYTE, conflicting_lock};
use super::registry::{File, registry, with_suffix};

/// A lock that keeps us from writing.
#[derive(Debug, PartialEq, Eq)]
pub struct BlockingLock {
    pub holder: LockHolder,
    pub kind: LockKind,
}

#[derive(Debug, PartialEq, Eq)]
pub enum LockHolder {
    /// A connection of this process that is not ours.
    ThisProcess,
    Process(i32),
    Unknown,
}

#[derive(Debug, PartialEq, Eq)]
pub enum LockKind {
    Writes,
    /// Blocks a writer only if the file is not in WAL mode.
    Reads,
    Excludes,
}

/// Returns the lock that blocks a writer at this moment; `None` if there is none, or the system does not tell.
pub fn blocking_lock(path: &Path) -> Option<BlockingLock> {
    let registry = registry();
    if let Some((_, file)) = registry.named(&with_suffix(path, "-shm")).next() {
        return Some(BlockingLock { holder: conflict(file, WAL_WRITE_BYTE, 1)?.0, kind: LockKind::Writes });
    }
    let (_, file) = registry.named(path).next()?;
    let (start, length) = SHARED_BYTES;
    let user = conflict(file, start, length);
    let writer = || conflict(file, RESERVED_BYTE, 1).or_else(|| conflict(file, PENDING_BYTE, 1));
    let (holder, kind) = match user {
        Some((holder, true)) => (holder, LockKind::Excludes),
        _ => match writer() {
            Some((holder, _)) => (holder, LockKind::Writes),
            None => (user?.0, LockKind::Reads),
        },
    };
    Some(BlockingLock { holder, kind })
}

/// Returns the holder of a lock on these bytes, and whether the lock is exclusive.
fn conflict(file: &File, start: i64, length: i64) -> Option<(LockHolder, bool)> {
    let lock = conflicting_lock(file.lock_fd(), start, length).unwrap_or(None)?;
    let holder = match lock.l_pid {
        pid if pid == std::process::id() as libc::pid_t => LockHolder::ThisProcess,
        pid if pid > 0 => LockHolder::Process(pid),
        _ => LockHolder::Unknown,
    };
    Some((holder, lock.l_type == libc::F_WRLCK as libc::c_short))
}
