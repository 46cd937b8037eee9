//! Fork handlers: what is locked before a fork, and what a child forgets.
//!
//! A child inherits open files and with them their locks, SQLite's bookkeeping about both, and mutexes whose holders do
//! not exist in it. `pthread_atfork` handlers run at every fork, including those that Python does not know of. Before
//! the fork, everything that must be consistent in the child is locked: the open databases, SQLite's static mutexes,
//! the registry of descriptors. In the child the inherited descriptors are closed and the generation rises. Objects of
//! an older generation are never used and never freed. SQLite finds its bookkeeping by a device number that the calls
//! now salt differently, and starts afresh.

use std::cell::UnsafeCell;
use std::ffi::c_int;

use rusqlite::ffi;

use super::super::file::OpenDatabasesGuard;
use super::protections::FORK;
use super::registry::RegistryGuard;
use crate::error::{Error, Result};
use crate::process;

/// SQLite's static mutexes, from the outermost to the innermost as SQLite itself takes them.
const MUTEXES: [c_int; 9] = [
    ffi::SQLITE_MUTEX_STATIC_OPEN,
    ffi::SQLITE_MUTEX_STATIC_VFS1,
    ffi::SQLITE_MUTEX_STATIC_VFS2,
    ffi::SQLITE_MUTEX_STATIC_VFS3,
    ffi::SQLITE_MUTEX_STATIC_PRNG,
    ffi::SQLITE_MUTEX_STATIC_MAIN,
    ffi::SQLITE_MUTEX_STATIC_LRU,
    ffi::SQLITE_MUTEX_STATIC_PMEM,
    ffi::SQLITE_MUTEX_STATIC_MEM,
];

pub fn install() -> Result<()> {
    // SAFETY: the handlers live as long as the module, which Python never unloads.
    let code = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    if code != 0 {
        return Err(Error::Storage(format!("the system refused the fork handlers (error {code})")));
    }
    Ok(())
}

/// The locks of the forking thread from `before` to `in_parent` or `in_child`.
struct Guards {
    open: OpenDatabasesGuard,
    files: RegistryGuard,
}

struct GuardCell(UnsafeCell<Option<Guards>>);

// SAFETY: only the thread that holds the locks in it touches it, between the two handlers of one fork.
unsafe impl Sync for GuardCell {}

static GUARDS: GuardCell = GuardCell(UnsafeCell::new(None));

extern "C" fn before() {
    if FORK.is_off() {
        return;
    }
    let open = OpenDatabasesGuard::take();
    for mutex in MUTEXES {
        // SAFETY: static mutexes exist once SQLite is initialised, and it is.
        unsafe { ffi::sqlite3_mutex_enter(ffi::sqlite3_mutex_alloc(mutex)) };
    }
    let files = RegistryGuard::take();
    // SAFETY: see `GuardCell`.
    unsafe { *GUARDS.0.get() = Some(Guards { open, files }) };
}

extern "C" fn in_parent() {
    let Some(Guards { open, files }) = take() else { return };
    drop(files);
    release_mutexes();
    drop(open);
}

extern "C" fn in_child() {
    let Some(Guards { mut open, mut files }) = take() else { return };
    files.close_parents_files();
    process::begin_generation();
    drop(files);
    release_mutexes();
    open.forget_parents_databases();
}

fn take() -> Option<Guards> {
    // SAFETY: see `GuardCell`.
    unsafe { (*GUARDS.0.get()).take() }
}

fn release_mutexes() {
    for mutex in MUTEXES.into_iter().rev() {
        // SAFETY: entered by this thread in `before`.
        unsafe { ffi::sqlite3_mutex_leave(ffi::sqlite3_mutex_alloc(mutex)) };
    }
}
