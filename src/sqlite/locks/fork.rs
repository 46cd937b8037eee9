//! What happens around a fork.
//!
//! A child inherits open files and with them their locks, SQLite's bookkeeping about both, and mutexes whose holders do
//! not exist in it. `pthread_atfork` sees every fork, also those Python does not know of. Before it, everything that must
//! be whole in the child is held: the open databases, SQLite's static mutexes, the registry of descriptors. In the child
//! the inherited descriptors are closed and the generation rises: what belongs to an older generation is never used and
//! never freed, and SQLite, which finds its bookkeeping by a device number that now reads differently, starts afresh.

use std::cell::UnsafeCell;
use std::ffi::c_int;

use rusqlite::ffi;

use super::super::file::OpenDatabasesGuard;
use super::protections::FORK;
use super::registry::ForkHold;
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

/// What the forking thread holds from `before` to `in_parent` or `in_child`.
struct Holds {
    open: OpenDatabasesGuard,
    files: ForkHold,
}

struct Stash(UnsafeCell<Option<Holds>>);

// SAFETY: only the thread that holds the locks in it touches it, between the two handlers of one fork.
unsafe impl Sync for Stash {}

static STASH: Stash = Stash(UnsafeCell::new(None));

extern "C" fn before() {
    if FORK.is_off() {
        return;
    }
    let open = OpenDatabasesGuard::take();
    for mutex in MUTEXES {
        // SAFETY: static mutexes exist once SQLite is initialised, and it is.
        unsafe { ffi::sqlite3_mutex_enter(ffi::sqlite3_mutex_alloc(mutex)) };
    }
    let files = ForkHold::take();
    // SAFETY: see `Stash`.
    unsafe { *STASH.0.get() = Some(Holds { open, files }) };
}

extern "C" fn in_parent() {
    let Some(Holds { open, files }) = take() else { return };
    drop(files);
    leave_mutexes();
    drop(open);
}

extern "C" fn in_child() {
    let Some(Holds { mut open, mut files }) = take() else { return };
    files.leave_parents_files();
    process::begin_generation();
    drop(files);
    leave_mutexes();
    open.forget_parents_databases();
}

fn take() -> Option<Holds> {
    // SAFETY: see `Stash`.
    unsafe { (*STASH.0.get()).take() }
}

fn leave_mutexes() {
    for mutex in MUTEXES.into_iter().rev() {
        // SAFETY: entered by this thread in `before`.
        unsafe { ffi::sqlite3_mutex_leave(ffi::sqlite3_mutex_alloc(mutex)) };
    }
}
