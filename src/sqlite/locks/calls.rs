//! The replaced system calls of SQLite's unix VFS.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use once_cell::sync::OnceCell;
use rusqlite::ffi;

use super::super::file::wal;
use super::fork;
use super::identity::describe_path;
use super::protections::{FORK, LOCKS, USED};
use super::record_locks::{LIVENESS_BYTES, ofd};
use super::registry::{Role, as_path, prepare, registry, role};
use crate::error::{Error, Result};
use crate::process;

/// Tries to release a lock; the system refuses only when it is out of memory.
const UNLOCK_TRIES: u32 = 10;
/// Lower descriptors are the standard streams: a stray print must never reach a database.
const FIRST_USABLE: c_int = 3;

static INSTALLED: OnceCell<()> = OnceCell::new();

/// Replaces the system calls once, before the first open of this process. The Python module calls it when it is loaded,
/// so that no fork comes in between.
pub fn install() -> Result<()> {
    INSTALLED.get_or_try_init(|| {
        prepare();
        replace_system_calls()?;
        fork::install()
    })?;
    Ok(())
}

fn replace_system_calls() -> Result<()> {
    // SAFETY: SQLite's default VFS lives as long as the process. Each replacement has the signature SQLite calls that
    // entry with, and nothing is open yet.
    unsafe {
        let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
        let set = vfs.as_ref().and_then(|vfs| vfs.xSetSystemCall);
        let Some(set) = set else {
            return Err(Error::Storage("this SQLite does not let its system calls be replaced".into()));
        };
        let replacements: [(&CStr, *const c_void); 11] = [
            (c"fcntl", FCNTL as *const c_void),
            (c"open", open as *const c_void),
            (c"close", close as *const c_void),
            (c"fstat", fstat as *const c_void),
            (c"stat", stat as *const c_void),
            (c"mmap", mmap as *const c_void),
            // SQLite uses one name or the other, depending on how it was compiled.
            (c"pwrite", wal::write as *const c_void),
            (c"pwrite64", wal::write as *const c_void),
            (c"pread", wal::read as *const c_void),
            (c"pread64", wal::read as *const c_void),
            (c"ftruncate", wal::truncate as *const c_void),
        ];
        for (name, call) in replacements {
            let call = std::mem::transmute::<*const c_void, ffi::sqlite3_syscall_ptr>(call);
            let code = set(vfs, name.as_ptr(), call);
            if code != ffi::SQLITE_OK {
                return Err(Error::Storage(format!("SQLite refused to replace {name:?} (code {code})")));
            }
        }
    }
    Ok(())
}

/// SQLite calls it as a variadic function. On most platforms variadic arguments are passed like fixed ones, so that a
/// plain function is enough.
#[cfg(not(target_vendor = "apple"))]
const FCNTL: unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int = fcntl;

/// On Apple's processors they are not: `fcntl_apple.c` reads them and calls `membox_queue_fcntl`. Untested.
#[cfg(target_vendor = "apple")]
const FCNTL: unsafe extern "C" fn(c_int, c_int, ...) -> c_int = {
    unsafe extern "C" {
        fn membox_queue_fcntl_variadic(fd: c_int, command: c_int, ...) -> c_int;
    }
    membox_queue_fcntl_variadic
};

#[cfg(target_vendor = "apple")]
#[unsafe(no_mangle)]
unsafe extern "C" fn membox_queue_fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
    unsafe { fcntl(fd, command, argument) }
}

/// Record locks go to the inode's lock descriptor, as open-file-description locks; everything else passes.
unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
    let ofd_command = match command {
        libc::F_SETLK => ofd::SETLK,
        libc::F_SETLKW => ofd::SETLKW,
        libc::F_GETLK => ofd::GETLK,
        // SAFETY: passed on as it came.
        other => return unsafe { libc::fcntl(fd, other, argument) },
    };
    let (lock_fd, has_ofd) = {
        let mut registry = registry();
        // SAFETY: for these commands SQLite passes a `struct flock`.
        let lock = unsafe { &*argument.cast::<libc::flock>() };
        if lock.l_type == libc::F_UNLCK as libc::c_short {
            registry.discard_rolled_back(fd, lock);
        }
        registry.lock_target(fd)
    };
    // SAFETY: for these commands SQLite passes a `struct flock`; the kernel wants `l_pid` zero for OFD locks.
    unsafe {
        let lock = &mut *argument.cast::<libc::flock>();
        let unlocks = lock.l_type == libc::F_UNLCK as libc::c_short;
        let command = if !has_ofd || LOCKS.is_off() {
            command
        } else {
            lock.l_pid = 0;
            // SQLite unlocks a whole file by a range without an end. That must not release liveness locks.
            if unlocks && lock.l_start == 0 && lock.l_len == 0 {
                lock.l_len = LIVENESS_BYTES;
            }
            ofd_command
        };
        // SQLite does not check whether an unlock succeeded, and would never repeat it.
        let tries = if unlocks { UNLOCK_TRIES } else { 1 };
        (0..tries).map(|_| libc::fcntl(lock_fd, command, argument)).find(|code| *code == 0).unwrap_or(-1)
    }
}

/// Hands out a parked descriptor of the same file, or opens one and registers it.
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: SQLite passes a NUL-terminated path.
    let name = unsafe { CStr::from_ptr(path) };
    USED.store(true, Ordering::Relaxed);
    // SQLite falls back to read-only when it may not write. Such files are refused later; refusing the open here avoids
    // a close, which could drop the locks of another copy.
    let reads_only = flags & libc::O_ACCMODE == libc::O_RDONLY;
    if reads_only && role(as_path(name)) == Role::Database && describe_path(name).is_some_and(|found| found.is_regular)
    {
        set_errno(libc::EACCES);
        return -1;
    }
    let mut registry = registry();
    if let Some(fd) = registry.unpark(name, flags) {
        return fd;
    }
    occupy_standard_streams();
    // SAFETY: as SQLite would have called it.
    let fd = unsafe { libc::open(path, flags, mode as libc::c_uint) };
    if fd >= 0 {
        registry.add(fd, name);
    }
    fd
}

pub fn set_errno(code: c_int) {
    // SAFETY: the error number of this thread.
    #[cfg(any(target_os = "linux", target_os = "emscripten"))]
    unsafe {
        *libc::__errno_location() = code;
    }
    // SAFETY: as above. Untested.
    #[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
    unsafe {
        *libc::__error() = code;
    }
}

/// Parks descriptors, so that our close never drops the locks of another copy.
unsafe extern "C" fn close(fd: c_int) -> c_int {
    registry().close(fd)
}

unsafe extern "C" fn fstat(fd: c_int, into: *mut libc::stat) -> c_int {
    // SAFETY: SQLite passes a `struct stat` to fill.
    unsafe {
        let code = libc::fstat(fd, into);
        salt(into);
        code
    }
}

unsafe extern "C" fn stat(path: *const c_char, into: *mut libc::stat) -> c_int {
    // SAFETY: as above.
    unsafe {
        let code = libc::stat(path, into);
        salt(into);
        code
    }
}

/// SQLite finds its bookkeeping by device and inode. In a forked child it must not find the parent's.
unsafe fn salt(into: *mut libc::stat) {
    let salt = process::generation().wrapping_mul(0x5bd1_e995);
    // SAFETY: the caller passes what libc just filled.
    unsafe { (*into).st_dev ^= salt as libc::dev_t };
}

/// Shared memory is mapped so that a forked child does not inherit it.
unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: as SQLite would have called it; the advice is about the mapping just made.
    unsafe {
        let mapping = libc::mmap(address, length, protection, flags, fd, offset);
        if mapping != libc::MAP_FAILED && !FORK.is_off() && exclude_from_fork(mapping, length) != 0 {
            libc::munmap(mapping, length);
            return libc::MAP_FAILED;
        }
        mapping
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
unsafe fn exclude_from_fork(mapping: *mut c_void, length: usize) -> c_int {
    unsafe { libc::madvise(mapping, length, libc::MADV_DONTFORK) }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
unsafe fn exclude_from_fork(mapping: *mut c_void, length: usize) -> c_int {
    unsafe extern "C" {
        fn minherit(address: *mut c_void, length: usize, inherit: c_int) -> c_int;
    }
    const INHERIT_NONE: c_int = 2;
    unsafe { minherit(mapping, length, INHERIT_NONE) }
}

/// SQLite closes a descriptor below 3 and opens again. That close could drop the locks of another copy, so it must not
/// happen.
fn occupy_standard_streams() {
    for fd in 0..FIRST_USABLE {
        // SAFETY: asks for flags, and opens what exists everywhere.
        unsafe {
            if libc::fcntl(fd, libc::F_GETFD) == -1 {
                libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            }
        }
    }
}
