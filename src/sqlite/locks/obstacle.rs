//! Which process keeps this one from writing, and by what kind of lock.

use std::path::Path;

use super::record_locks::{PENDING_BYTE, RESERVED_BYTE, SHARED_BYTES, WAL_WRITE_BYTE, conflicting_lock};
use super::registry::{File, registry, with_suffix};

/// What keeps us from writing.
#[derive(Debug, PartialEq, Eq)]
pub struct Obstacle {
    pub holder: Holder,
    pub kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Holder {
    /// A connection of this very process that is not ours.
    ThisProcess,
    Process(i32),
    Unknown,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    Writes,
    /// Stands in the way only of a file that is not in WAL mode.
    Reads,
    Excludes,
}

/// Who holds a lock that a writer needs, at this moment; `None` if nobody does, or it cannot be found out.
pub fn obstacle(path: &Path) -> Option<Obstacle> {
    let registry = registry();
    if let Some((_, file)) = registry.named(&with_suffix(path, "-shm")).next() {
        return Some(Obstacle { holder: conflict(file, WAL_WRITE_BYTE, 1)?.0, kind: Kind::Writes });
    }
    let (_, file) = registry.named(path).next()?;
    let (start, length) = SHARED_BYTES;
    let user = conflict(file, start, length);
    let writer = || conflict(file, RESERVED_BYTE, 1).or_else(|| conflict(file, PENDING_BYTE, 1));
    let (holder, kind) = match user {
        Some((holder, true)) => (holder, Kind::Excludes),
        _ => match writer() {
            Some((holder, _)) => (holder, Kind::Writes),
            None => (user?.0, Kind::Reads),
        },
    };
    Some(Obstacle { holder, kind })
}

/// Who holds a lock on these bytes, and whether alone.
fn conflict(file: &File, start: i64, length: i64) -> Option<(Holder, bool)> {
    let lock = conflicting_lock(file.lock_fd(), start, length).unwrap_or(None)?;
    let holder = match lock.l_pid {
        pid if pid == std::process::id() as libc::pid_t => Holder::ThisProcess,
        pid if pid > 0 => Holder::Process(pid),
        _ => Holder::Unknown,
    };
    Some((holder, lock.l_type == libc::F_WRLCK as libc::c_short))
}
