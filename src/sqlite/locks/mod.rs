//! Sharing a file with another copy of SQLite in this process.
//!
//! POSIX record locks belong to the process. Python's `sqlite3` carries its own copy of SQLite, and with POSIX locks the
//! two copies would not exclude each other; worse, whenever either closes any descriptor of a file, all locks of both are
//! gone. SQLite's unix VFS lets its host replace system calls, so ours are replaced:
//!
//! | call | what it does instead | because |
//! |---|---|---|
//! | `fcntl` | record locks become open-file-description locks, all of one inode on one descriptor | such locks survive anybody's close and conflict with POSIX locks; SQLite believes that all its connections share the process's locks |
//! | `close` | a database or `-shm` is parked, unlocked, and really closed only when nobody else here has it open | a real close would drop the other copy's locks |
//! | `open` | parked descriptors are handed out again | otherwise they would pile up |
//! | `fstat`, `stat` | the device number is salted with a count of forks | a child must build its bookkeeping anew ([`fork`]) |
//! | `mmap` | the mapping is not inherited by children | it would keep a dead parent's locks alive |
//! | `pwrite`, `pread`, `ftruncate` | the frames of one commit are written to the log at once | see [`super::file::wal`] |
//!
//! Looking whether anybody else has a file open and then closing it would be a race. So the look is taken while we hold
//! SQLite's PENDING byte: a newcomer may open the file meanwhile, but it gets no lock on it before we are done, and so it
//! has none to lose. In a process with many descriptors the look takes long. So it is taken after SQLite's close, which
//! would keep every other connection waiting, and the registry is not held meanwhile; a connection of ours that opens the
//! file before it is closed takes the PENDING byte away, and the file stays open.

#[cfg(unix)]
mod calls;
#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod fork;
#[cfg(unix)]
mod identity;
mod kept_signs;
#[cfg(unix)]
mod liveness;
#[cfg(unix)]
mod marks;
#[cfg(unix)]
mod obstacle;
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
pub use kept_signs::{keep as keep_sign, tidy as tidy_signs};
#[cfg(all(test, unix))]
pub use marks::set_mark;
#[cfg(all(unix, feature = "python"))]
pub use protections::{COMMIT_CHECK, FORK, LOCKS};
#[cfg(unix)]
pub use {
    calls::install,
    identity::{is_hard_linked, is_mounted, is_writable},
    liveness::SignOfLife,
    marks::{Mark, MarkGuard},
    obstacle::{Holder, Kind, Obstacle, obstacle},
    registry::is_reserved,
    sharing::{check_file, check_files, check_shareable, has_own_locks, rewrite_wal},
    sweep::sweep,
};
#[cfg(unix)]
pub(super) use {calls::set_errno, identity::inode_of, registry::registry};
