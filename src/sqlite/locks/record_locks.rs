//! Record locks: what the bytes of a file stand for, and how they are locked, unlocked and queried.

use std::ffi::c_int;

use super::registry::File;

/// SQLite locks it while it waits for a database; no connection gets a new lock meanwhile.
pub(super) const PENDING_BYTE: i64 = 0x4000_0000;
/// Held by a writer of a file that is not in WAL mode.
pub(super) const RESERVED_BYTE: i64 = PENDING_BYTE + 1;
/// Read-locked by every connection that uses a database, write-locked by one in exclusive mode.
pub(super) const SHARED_BYTES: (i64, i64) = (PENDING_BYTE + 2, 510);
/// A lock on a byte from here on shows that a process lives. SQLite's own bytes lie far below, and no file is this
/// long.
pub(super) const LIVENESS_BYTES: i64 = 1 << 62;
/// The byte of `-shm` that a writer of the WAL holds.
pub(super) const WAL_WRITE_BYTE: i64 = 120;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) mod ofd {
    pub use libc::{F_OFD_GETLK as GETLK, F_OFD_SETLK as SETLK, F_OFD_SETLKW as SETLKW};
}
/// The same commands on macOS, whose headers do not publish them. Untested.
#[cfg(target_vendor = "apple")]
pub(super) mod ofd {
    pub const SETLK: i32 = 90;
    pub const SETLKW: i32 = 91;
    pub const GETLK: i32 = 92;
}
/// Other systems have none: `has_ofd_locks` returns false, and a file shared with another copy is refused. Untested.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(super) mod ofd {
    pub use libc::{F_GETLK as GETLK, F_SETLK as SETLK, F_SETLKW as SETLKW};
}

/// Returns whether the file system of this descriptor has open-file-description locks.
pub(super) fn has_ofd_locks(fd: c_int) -> bool {
    cfg!(any(target_os = "linux", target_os = "android", target_vendor = "apple"))
        && conflicting_lock(fd, PENDING_BYTE, 1).is_ok()
}

/// Sets or removes a lock of ours on a file, without waiting. Returns whether that succeeded.
pub(super) fn set_lock(file: &File, kind: c_int, start: i64, length: i64) -> bool {
    let mut lock = record(kind, start, length);
    let command = if file.has_ofd { ofd::SETLK } else { libc::F_SETLK };
    // SAFETY: a valid `struct flock` on a descriptor of ours.
    unsafe { libc::fcntl(file.lock_fd(), command, &mut lock) == 0 }
}

/// Returns a lock that conflicts with a write lock on these bytes. Its `l_pid` is -1 for an open-file-description lock.
pub(super) fn conflicting_lock(fd: c_int, start: i64, length: i64) -> std::io::Result<Option<libc::flock>> {
    let mut lock = record(libc::F_WRLCK as c_int, start, length);
    // SAFETY: as above.
    if unsafe { libc::fcntl(fd, ofd::GETLK, &mut lock) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok((lock.l_type != libc::F_UNLCK as libc::c_short).then_some(lock))
}

pub(super) fn record(kind: c_int, start: i64, length: i64) -> libc::flock {
    // SAFETY: a zeroed `struct flock` is a valid one.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = start;
    lock.l_len = length;
    lock
}
