//! Sharing a file with another copy of SQLite in this process.
//!
//! POSIX record locks belong to the process. Python's `sqlite3` carries its own copy of SQLite, and with POSIX locks
//! the two copies would not exclude each other; worse, whenever either closes any descriptor of a file, all locks of
//! both are gone. SQLite's unix VFS lets its host replace system calls, so those of our copy are replaced:
//!
//! | call | what it does instead | because |
//! |---|---|---|
//! | `fcntl` | record locks become open-file-description locks, all of one inode on one descriptor | such locks survive every close and conflict with POSIX locks; SQLite assumes that all its connections share the process's locks |
//! | `close` | a database or `-shm` is parked, unlocked, and closed for good only when no other code of this process has it open | a real close would drop the other copy's locks |
//! | `open` | parked descriptors are handed out again | otherwise they would accumulate |
//! | `fstat`, `stat` | the device number is salted with a count of forks | a child must start its bookkeeping afresh ([`fork`]) |
//! | `mmap` | the mapping is not inherited by children | it would keep a dead parent's locks alive |
//! | `pwrite`, `pread`, `ftruncate` | the frames of one commit are written to the WAL in one call | see [`super::file::wal`] |
//!
//! Checking whether other code has a file open and then closing it would be a race. So the sweep scans the descriptors
//! while it holds SQLite's PENDING byte: other code may open the file meanwhile, but gets no lock on it before the
//! sweep ends, and so has none to lose. In a process with many descriptors the scan takes long. So it runs after
//! SQLite's close, which would keep every other connection waiting, and the registry is not locked meanwhile. If a
//! connection of ours opens the file before it is closed, that open releases the PENDING byte, and the file stays open.

#[cfg(unix)]
mod blocking_lock;
#[cfg(unix)]
mod calls;
#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod fork;
#[cfg(unix)]
mod identity;
mod kept_liveness;
#[cfg(unix)]
mod liveness;
#[cfg(unix)]
mod marks;
#[cfg(unix)]
mod protections;
#[cfg(unix)]
mod record_locks;
#[cfg(unix)]
mod registry;
#[cfg(unix)]
mod sharing;
#[cfg(unix)]
mod sweep;
#[cfg(all(test, unix))]
mod tests;

#[cfg(not(unix))]
pub use elsewhere::*;
pub use kept_liveness::{keep as keep_liveness_lock, tidy as tidy_liveness_locks};
#[cfg(all(test, unix))]
pub use marks::set_mark;
#[cfg(all(unix, feature = "python"))]
pub use protections::{COMMIT_CHECK, FORK, LOCKS};
#[cfg(unix)]
pub use {
    blocking_lock::{BlockingLock, LockHolder, LockKind, blocking_lock},
    calls::install,
    identity::{is_hard_linked, is_mounted, is_writable},
    liveness::LivenessLock,
    marks::{Mark, MarkGuard},
    registry::is_reserved,
    sharing::{check_file, check_files, check_shareable, has_own_locks, rewrite_wal},
    sweep::sweep,
};
#[cfg(unix)]
pub(super) use {calls::set_errno, identity::inode_of, registry::registry};
