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
//! | `fstat`, `stat` | the device number is salted with a count of forks | a child must build its bookkeeping anew ([`super::fork`]) |
//! | `mmap` | the mapping is not inherited by children | it would keep a dead parent's locks alive |
//! | `pwrite`, `pread`, `ftruncate` | the frames of one commit are written to the log at once | see [`super::log`] |
//!
//! Looking whether anybody else has a file open and then closing it would be a race. So the look is taken while we hold
//! SQLite's PENDING byte: a newcomer may open the file meanwhile, but it gets no lock on it before we are done, and so it
//! has none to lose. In a process with many descriptors the look takes long. So it is taken after SQLite's close, which
//! would keep every other connection waiting, and the registry is not held meanwhile; a connection of ours that opens the
//! file before it is closed takes the PENDING byte away, and the file stays open.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use once_cell::sync::{Lazy, OnceCell};
use rusqlite::ffi;

use super::log::Logs;
use super::signs::Kept;
use super::{fork, log};
use crate::error::{Error, Result};
use crate::process;
use crate::sync::Mutex;

/// Where SQLite announces that it is waiting for a database; nobody gets a lock past it.
const PENDING_BYTE: i64 = 0x4000_0000;
/// Held by a writer of a file that is not in WAL mode.
const RESERVED_BYTE: i64 = PENDING_BYTE + 1;
/// Locked for reading by every connection that uses a database, and for writing by one that keeps it for itself.
const SHARED_BYTES: (i64, i64) = (PENDING_BYTE + 2, 510);
/// Bytes from here on say that a process lives; SQLite's own lie far below, and no file reaches so far.
const SIGN_OF_LIFE: i64 = 1 << 62;
/// Bytes from here on say that a process waits to renew what it holds; beyond every sign of life.
const WAIT_TO_RENEW: i64 = SIGN_OF_LIFE + (1 << 42);
/// The bytes by which writers take turns, below the first sign of life.
const MARKS: i64 = SIGN_OF_LIFE - 2;
/// The byte of `-shm` that a writer of the WAL holds.
const WAL_WRITE_BYTE: i64 = 120;
/// How often the system is asked to give up a lock; it refuses only when it is out of memory.
const UNLOCK_TRIES: u32 = 10;
/// A sweep may cost at most this part of a process's time.
const SWEEP_SHARE: u32 = 10;
/// Lower descriptors are the standard streams: a stray print must never reach a database.
const FIRST_USABLE: c_int = 3;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod ofd {
    pub use libc::{F_OFD_GETLK as GETLK, F_OFD_SETLK as SETLK, F_OFD_SETLKW as SETLKW};
}
/// The same commands on macOS, which its headers do not publish. Untested.
#[cfg(target_vendor = "apple")]
mod ofd {
    pub const SETLK: i32 = 90;
    pub const SETLKW: i32 = 91;
    pub const GETLK: i32 = 92;
}
/// Elsewhere there are none: the probe fails, and a file shared with another copy is refused. Untested.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
mod ofd {
    pub use libc::{F_GETLK as GETLK, F_SETLK as SETLK, F_SETLKW as SETLKW};
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Inode {
    device: u64,
    number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Database,
    SharedMemory,
    /// WAL, journals: nobody locks them, so they are closed as usual.
    Other,
}

struct Descriptor {
    fd: c_int,
    /// Closed by SQLite, kept by us.
    parked: bool,
}

/// One inode that our copy of SQLite has opened.
struct File {
    role: Role,
    path: PathBuf,
    /// The first one carries all locks.
    descriptors: Vec<Descriptor>,
    /// Whether the file system has open-file-description locks.
    has_ofd: bool,
    /// Of a WAL: the database that stood beside it when it was opened.
    database: Option<Inode>,
    /// Of a database: the signs of life that this process gives on it.
    signs: Vec<i64>,
    /// Of these, the ones that wait to renew what they hold.
    waits_to_renew: Vec<i64>,
    /// A sweep looks whether it can be closed. Ends when it is used again.
    is_swept: bool,
}

impl File {
    fn is_parked(&self) -> bool {
        self.descriptors.iter().all(|descriptor| descriptor.parked)
    }

    fn lock_fd(&self) -> c_int {
        self.descriptors[0].fd
    }

    /// It is used again: no sweep may close it, or keep others from locking it.
    fn end_sweep(&mut self) {
        if std::mem::take(&mut self.is_swept) {
            set_lock(self, libc::F_UNLCK as c_int, PENDING_BYTE, 1);
        }
    }
}

/// Every descriptor our copy of SQLite holds.
#[derive(Default)]
pub struct Registry {
    files: HashMap<Inode, File>,
    inodes: HashMap<c_int, Inode>,
    /// Usually one inode a name; more when a file was replaced while we had it open.
    names: HashMap<PathBuf, Vec<Inode>>,
    pub(super) logs: Logs,
    /// Signs of claims whose items were dropped.
    pub(super) kept_signs: Vec<Kept>,
    /// Parked since the last sweep.
    just_parked: HashSet<Inode>,
    next_sweep: Option<Instant>,
}

static REGISTRY: Lazy<Mutex<Registry>> = Lazy::new(Mutex::default);
/// Taken before the registry.
static SWEEPING: Mutex<()> = Mutex::new(());
static INSTALLED: OnceCell<()> = OnceCell::new();
/// Whether a file was opened in this process.
static USED: AtomicBool = AtomicBool::new(false);

/// A part of the cure that can be left out, so that tests can show what it is for.
pub struct Measure(AtomicBool);

/// Locks that survive a close, and closes that spare the locks of others.
pub static LOCKS: Measure = Measure(AtomicBool::new(false));
/// What is done around a fork.
pub static FORK: Measure = Measure(AtomicBool::new(false));
/// The second line: a commit to a log that is no longer the file's is not acknowledged.
pub static COMMIT_CHECK: Measure = Measure(AtomicBool::new(false));

impl Measure {
    /// Only before the first open.
    #[cfg_attr(not(feature = "python"), allow(dead_code))]
    pub fn switch_off(&self) -> Result<()> {
        if USED.load(Ordering::SeqCst) {
            return Err(Error::Invalid("a queue was opened in this process already".into()));
        }
        self.0.store(true, Ordering::SeqCst);
        Ok(())
    }

    pub fn is_off(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Replaces the system calls, once, before the first open of this process; when the Python module is loaded, so that no
/// fork can come in between.
pub fn install() -> Result<()> {
    INSTALLED.get_or_try_init(|| {
        Lazy::force(&REGISTRY);
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
            (c"pwrite", log::write as *const c_void),
            (c"pwrite64", log::write as *const c_void),
            (c"pread", log::read as *const c_void),
            (c"pread64", log::read as *const c_void),
            (c"ftruncate", log::truncate as *const c_void),
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

/// SQLite calls it with variable arguments. Where these travel like fixed ones a plain function will do.
#[cfg(not(target_vendor = "apple"))]
const FCNTL: unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int = fcntl;

/// On Apple's processors they do not: `fcntl_apple.c` takes them and calls `membox_queue_fcntl`. Untested.
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
    let command_of_ours = match command {
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
            registry.drop_rolled_back(fd, lock);
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
            // SQLite unlocks a whole file by an open end; a sign of life is not its to take away.
            if unlocks && lock.l_start == 0 && lock.l_len == 0 {
                lock.l_len = SIGN_OF_LIFE;
            }
            command_of_ours
        };
        // SQLite does not look whether a lock was really given up, and would never come back to it.
        let tries = if unlocks { UNLOCK_TRIES } else { 1 };
        (0..tries).map(|_| libc::fcntl(lock_fd, command, argument)).find(|code| *code == 0).unwrap_or(-1)
    }
}

/// Hands out a parked descriptor of the same file, or opens one and enters it.
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: SQLite passes a NUL-terminated path.
    let name = unsafe { CStr::from_ptr(path) };
    USED.store(true, Ordering::Relaxed);
    // SQLite falls back to reading alone when it may not write. We refuse such files; and what is not opened need not
    // be closed, which could cost somebody a lock.
    let reads_only = flags & libc::O_ACCMODE == libc::O_RDONLY;
    if reads_only && role(as_path(name)) == Role::Database && look_at(name).is_some_and(|found| found.is_regular) {
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
        registry.enter(fd, name);
    }
    fd
}

pub(super) fn set_errno(code: c_int) {
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

/// Never lets a close of ours drop the locks of another copy.
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

/// SQLite finds its bookkeeping by device and inode. In a forked child it must not find its parent's.
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
        if mapping != libc::MAP_FAILED && !FORK.is_off() && keep_from_children(mapping, length) != 0 {
            libc::munmap(mapping, length);
            return libc::MAP_FAILED;
        }
        mapping
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
unsafe fn keep_from_children(mapping: *mut c_void, length: usize) -> c_int {
    unsafe { libc::madvise(mapping, length, libc::MADV_DONTFORK) }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
unsafe fn keep_from_children(mapping: *mut c_void, length: usize) -> c_int {
    unsafe extern "C" {
        fn minherit(address: *mut c_void, length: usize, inherit: c_int) -> c_int;
    }
    const INHERIT_NONE: c_int = 2;
    unsafe { minherit(mapping, length, INHERIT_NONE) }
}

pub(super) fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock()
}

impl Registry {
    fn enter(&mut self, fd: c_int, name: &CStr) {
        let Some(found) = look(fd) else { return };
        if !found.is_regular {
            return;
        }
        self.lose(fd);
        self.lose_closed(found.inode);
        let path = as_path(name).to_owned();
        if !self.files.contains_key(&found.inode) {
            self.names.entry(path.clone()).or_default().push(found.inode);
        }
        let file = self.files.entry(found.inode).or_insert_with(|| File {
            role: role(&path),
            path,
            descriptors: Vec::new(),
            has_ofd: probe(fd),
            database: name.to_bytes().strip_suffix(b"-wal").and_then(look_at_bytes).map(|found| found.inode),
            signs: Vec::new(),
            waits_to_renew: Vec::new(),
            is_swept: false,
        });
        file.end_sweep();
        file.descriptors.push(Descriptor { fd, parked: false });
        self.inodes.insert(fd, found.inode);
        if name.to_bytes().ends_with(b"-wal") {
            self.logs.enter(fd);
        }
    }

    /// The application closed a descriptor of ours; its number may be that of a file of the application's by now.
    fn lose(&mut self, fd: c_int) {
        let Some(inode) = self.inodes.remove(&fd) else { return };
        let Some(file) = self.files.get_mut(&inode) else { return };
        file.descriptors.retain(|descriptor| descriptor.fd != fd);
        if file.descriptors.is_empty() {
            self.forget(inode);
        }
    }

    fn lose_closed(&mut self, inode: Inode) {
        let Some(file) = self.files.get(&inode) else { return };
        let fds = file.descriptors.iter().map(|descriptor| descriptor.fd);
        for fd in fds.filter(|fd| inode_of(*fd) != Some(inode)).collect::<Vec<_>>() {
            self.lose(fd);
        }
    }

    /// The file that a descriptor was opened for.
    pub(super) fn inode(&self, fd: c_int) -> Option<Inode> {
        self.inodes.get(&fd).copied()
    }

    /// When the write lock is given up, what its holder wrote to the log and did not commit is dropped.
    fn drop_rolled_back(&mut self, fd: c_int, lock: &libc::flock) {
        let covers = lock.l_start <= WAL_WRITE_BYTE && (lock.l_len == 0 || WAL_WRITE_BYTE < lock.l_start + lock.l_len);
        if !covers || !self.logs.hold_anything() {
            return;
        }
        let Some(file) = self.inodes.get(&fd).and_then(|inode| self.files.get(inode)) else { return };
        let Some(database) = file.path.as_os_str().as_bytes().strip_suffix(b"-shm") else { return };
        let log = with_suffix(Path::new(std::ffi::OsStr::from_bytes(database)), "-wal");
        let fds = self.named(&log).flat_map(|(_, file)| file.descriptors.iter().map(|descriptor| descriptor.fd));
        let fds = fds.collect::<Vec<_>>();
        self.logs.drop_unfinished(fds.into_iter());
    }

    /// A parked descriptor is as good as a new one: SQLite reads and writes at given offsets only.
    fn unpark(&mut self, name: &CStr, flags: c_int) -> Option<c_int> {
        if flags & libc::O_EXCL != 0 || flags & libc::O_ACCMODE != libc::O_RDWR {
            return None;
        }
        let inode = look_at(name)?.inode;
        self.lose_closed(inode);
        let file = self.files.get_mut(&inode)?;
        let descriptor =
            file.descriptors.iter_mut().find(|descriptor| descriptor.parked && is_read_write(descriptor.fd))?;
        descriptor.parked = false;
        let fd = descriptor.fd;
        file.end_sweep();
        Some(fd)
    }

    fn lock_target(&self, fd: c_int) -> (c_int, bool) {
        match self.inodes.get(&fd).and_then(|inode| self.files.get(inode)) {
            Some(file) => (file.lock_fd(), file.has_ofd),
            None => (fd, true),
        }
    }

    fn close(&mut self, fd: c_int) -> c_int {
        self.logs.leave(fd);
        let Some(inode) = self.inodes.get(&fd).copied() else {
            // SAFETY: a descriptor SQLite opened and we do not keep.
            return unsafe { libc::close(fd) };
        };
        if inode_of(fd) != Some(inode) {
            self.lose(fd);
            return 0;
        }
        let file = self.files.get_mut(&inode).expect("entered together with its descriptor");
        if file.role == Role::Other || LOCKS.is_off() {
            file.descriptors.retain(|descriptor| descriptor.fd != fd);
            self.inodes.remove(&fd);
            if file.descriptors.is_empty() {
                self.forget(inode);
            }
            // SAFETY: as above.
            return unsafe { libc::close(fd) };
        }
        for descriptor in file.descriptors.iter_mut().filter(|descriptor| descriptor.fd == fd) {
            descriptor.parked = true;
        }
        if file.is_parked() {
            // SQLite has unlocked already; this makes sure that nothing parked ever holds a lock.
            set_lock(file, libc::F_UNLCK as c_int, 0, SIGN_OF_LIFE);
            self.just_parked.insert(inode);
        }
        0
    }

    /// What can be closed if nobody else in this process has it open: the files just parked, and the others as often as
    /// the share of time allows.
    fn begin_sweep(&mut self, all: bool) -> Sweep {
        let just_parked = std::mem::take(&mut self.just_parked);
        let mut families = Vec::new();
        for (inode, file) in &self.files {
            if file.is_parked() && (all || just_parked.contains(inode)) {
                families.extend(self.family(*inode, file));
            }
        }
        let mut ours = HashSet::new();
        for inode in families.iter().flat_map(Family::inodes) {
            let file = self.files.get_mut(&inode).expect("a family has only what was entered");
            file.is_swept = true;
            ours.extend(file.descriptors.iter().map(|descriptor| descriptor.fd));
        }
        Sweep { families, ours }
    }

    /// Closes what nobody else has open, unless it was used again since the sweep began.
    fn end_sweep(&mut self, sweep: &Sweep, others: &HashSet<Inode>) {
        for family in &sweep.families {
            // A `-shm` may have been closed as a family of its own.
            let is_unused = |inode| self.files.get(&inode).is_none_or(|file| file.is_swept && file.is_parked());
            let has_signs = self.files.get(&family.head).is_some_and(|file| !file.signs.is_empty());
            let can_be_closed = family.inodes().all(|inode| is_unused(inode) && !others.contains(&inode))
                && (family.unlinked || !has_signs);
            if can_be_closed {
                // `-shm` first, and last of all the descriptor that holds the PENDING byte.
                family.inodes().for_each(|inode| self.close_for_good(inode));
            } else if family.unlinked && is_unused(family.head) {
                self.close_for_good(family.head);
            }
        }
        self.files.values_mut().for_each(File::end_sweep);
    }

    /// What goes together with a parked file: a database and its `-shm`, if that is parked too and the PENDING byte is
    /// ours; a file that was unlinked, which nobody can open any more; a `-shm` whose database we have closed.
    fn family(&self, head: Inode, file: &File) -> Option<Family> {
        let unlinked = is_unlinked(file.lock_fd());
        if !file.signs.is_empty() && !unlinked {
            return None;
        }
        if file.role == Role::SharedMemory {
            let database = file.path.as_os_str().as_bytes().strip_suffix(b"-shm").unwrap_or_default();
            let is_alone = self.named(Path::new(std::ffi::OsStr::from_bytes(database))).next().is_none();
            let family = Family { head, shared_memory: Vec::new(), unlinked };
            return (is_alone || unlinked).then_some(family);
        }
        let shared_memory = self.named(&with_suffix(&file.path, "-shm")).map(|(inode, _)| inode).collect::<Vec<_>>();
        if shared_memory.iter().any(|inode| !self.files[inode].is_parked()) {
            return unlinked.then_some(Family { head, shared_memory: Vec::new(), unlinked });
        }
        let fenced = !unlinked && set_lock(file, libc::F_WRLCK as c_int, PENDING_BYTE, 1);
        (fenced || unlinked).then_some(Family { head, shared_memory, unlinked })
    }

    fn named(&self, path: &Path) -> impl Iterator<Item = (Inode, &File)> {
        self.names.get(path).into_iter().flatten().map(|inode| (*inode, &self.files[inode]))
    }

    fn forget(&mut self, inode: Inode) -> Option<File> {
        let file = self.files.remove(&inode)?;
        if let Some(inodes) = self.names.get_mut(&file.path) {
            inodes.retain(|known| *known != inode);
            if inodes.is_empty() {
                self.names.remove(&file.path);
            }
        }
        Some(file)
    }

    fn close_for_good(&mut self, inode: Inode) {
        let Some(file) = self.forget(inode) else { return };
        for descriptor in file.descriptors.iter().rev() {
            self.inodes.remove(&descriptor.fd);
            if inode_of(descriptor.fd) == Some(inode) {
                // SAFETY: ours, parked, and no longer known to anybody.
                unsafe { libc::close(descriptor.fd) };
            }
        }
    }

    /// The descriptors of these files.
    fn descriptors(&self, inodes: &HashSet<Inode>) -> HashSet<c_int> {
        self.inodes.iter().filter(|(_, inode)| inodes.contains(inode)).map(|(fd, _)| *fd).collect()
    }
}

/// Really closes parked files that nobody else in this process has open. Called after connections were closed.
pub fn sweep() {
    // One after the other, so that what a caller has closed is closed when it goes on, whoever sweeps it.
    let _alone = SWEEPING.lock();
    let started = Instant::now();
    let (sweep, all) = {
        let mut registry = registry();
        if registry.just_parked.is_empty() {
            return;
        }
        let all = registry.next_sweep.is_none_or(|next| next <= started);
        (registry.begin_sweep(all), all)
    };
    let others = if sweep.families.is_empty() { HashSet::new() } else { inodes_beside(&sweep.ours) };
    let mut registry = registry();
    registry.end_sweep(&sweep, &others);
    if all {
        registry.next_sweep = Some(Instant::now() + started.elapsed() * SWEEP_SHARE);
    }
}

/// The inodes of all descriptors of this process but these.
fn inodes_beside(ours: &HashSet<c_int>) -> HashSet<Inode> {
    #[cfg(test)]
    tests::DURING_A_LOOK.with_borrow_mut(|act| act.iter_mut().for_each(|act| act()));
    open_descriptors().filter(|fd| !ours.contains(fd)).filter_map(look).map(|found| found.inode).collect()
}

struct Sweep {
    families: Vec<Family>,
    /// The descriptors of these families when the sweep began. What is opened later has no locks yet.
    ours: HashSet<c_int>,
}

struct Family {
    head: Inode,
    shared_memory: Vec<Inode>,
    /// Nobody can open it any more, so nobody's locks on it matter.
    unlinked: bool,
}

impl Family {
    fn inodes(&self) -> impl Iterator<Item = Inode> {
        self.shared_memory.iter().copied().chain([self.head])
    }
}

fn as_path(name: &CStr) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

fn role(path: &Path) -> Role {
    let name = path.as_os_str().as_bytes();
    if name.ends_with(b"-shm") {
        Role::SharedMemory
    } else if name.ends_with(b"-wal") || name.ends_with(b"-journal") {
        Role::Other
    } else {
        Role::Database
    }
}

/// The names SQLite gives to the files beside a database; a database must not have one.
pub fn is_reserved(path: &Path) -> bool {
    role(path) != Role::Database
}

/// Whether this process may write there.
pub fn is_writable(path: &Path) -> bool {
    let name = std::ffi::CString::new(path.as_os_str().as_bytes());
    // SAFETY: a NUL-terminated path.
    name.is_ok_and(|name| unsafe { libc::access(name.as_ptr(), libc::W_OK) == 0 })
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

struct Found {
    inode: Inode,
    is_regular: bool,
    links: u64,
}

/// What a descriptor is, without the salt SQLite sees.
fn look(fd: c_int) -> Option<Found> {
    // SAFETY: a zeroed `struct stat` is a valid one to fill.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &mut stat) == 0).then(|| found(&stat))
    }
}

fn look_at(path: &CStr) -> Option<Found> {
    // SAFETY: as above.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::stat(path.as_ptr(), &mut stat) == 0).then(|| found(&stat))
    }
}

#[allow(clippy::unnecessary_cast)] // the field types differ between platforms
fn found(stat: &libc::stat) -> Found {
    Found {
        inode: Inode { device: stat.st_dev as u64, number: stat.st_ino as u64 },
        is_regular: stat.st_mode & libc::S_IFMT == libc::S_IFREG,
        links: stat.st_nlink as u64,
    }
}

fn look_at_bytes(path: &[u8]) -> Option<Found> {
    look_at(&std::ffi::CString::new(path).ok()?)
}

/// The inode alone, without asking for times: a file whose times were asked for gets new ones at its next write, and
/// then a sync has to write them too (70 µs a commit).
#[cfg(target_os = "linux")]
fn inode_at(path: &Path) -> Option<Inode> {
    let path = &std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    match statx(libc::AT_FDCWD, path, 0) {
        Ok(inode) => Some(inode),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => None,
        Err(_) => look_at(path).map(|found| found.inode),
    }
}

/// The same of a descriptor.
#[cfg(target_os = "linux")]
pub(super) fn inode_of(fd: c_int) -> Option<Inode> {
    match statx(fd, c"", libc::AT_EMPTY_PATH) {
        Ok(inode) => Some(inode),
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => None,
        Err(_) => look(fd).map(|found| found.inode),
    }
}

#[cfg(target_os = "linux")]
fn statx(fd: c_int, path: &CStr, flags: c_int) -> std::io::Result<Inode> {
    // SAFETY: a zeroed `struct statx` is a valid one to fill.
    unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        if libc::statx(fd, path.as_ptr(), flags, libc::STATX_INO, &mut found) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Inode { device: libc::makedev(found.stx_dev_major, found.stx_dev_minor), number: found.stx_ino })
    }
}

#[cfg(not(target_os = "linux"))]
fn inode_at(path: &Path) -> Option<Inode> {
    look_at_bytes(path.as_os_str().as_bytes()).map(|found| found.inode)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn inode_of(fd: c_int) -> Option<Inode> {
    look(fd).map(|found| found.inode)
}

fn is_read_write(fd: c_int) -> bool {
    // SAFETY: a plain question about a descriptor of ours.
    unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_ACCMODE == libc::O_RDWR }
}

fn is_unlinked(fd: c_int) -> bool {
    look(fd).is_none_or(|found| found.links == 0)
}

/// Whether the file system of this descriptor has open-file-description locks.
fn probe(fd: c_int) -> bool {
    cfg!(any(target_os = "linux", target_os = "android", target_vendor = "apple"))
        && conflicting_lock(fd, PENDING_BYTE, 1).is_ok()
}

/// Sets or removes a lock of ours on a file, without waiting. Says whether it worked.
fn set_lock(file: &File, kind: c_int, start: i64, length: i64) -> bool {
    let mut lock = record(kind, start, length);
    let command = if file.has_ofd { ofd::SETLK } else { libc::F_SETLK };
    // SAFETY: a valid `struct flock` on a descriptor of ours.
    unsafe { libc::fcntl(file.lock_fd(), command, &mut lock) == 0 }
}

/// A lock on these bytes that would stop us from writing. Its process is -1 if it belongs to an open file.
fn conflicting_lock(fd: c_int, start: i64, length: i64) -> std::io::Result<Option<libc::flock>> {
    let mut lock = record(libc::F_WRLCK as c_int, start, length);
    // SAFETY: as above.
    if unsafe { libc::fcntl(fd, ofd::GETLK, &mut lock) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok((lock.l_type != libc::F_UNLCK as libc::c_short).then_some(lock))
}

fn record(kind: c_int, start: i64, length: i64) -> libc::flock {
    // SAFETY: a zeroed `struct flock` is a valid one.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = start;
    lock.l_len = length;
    lock
}

/// SQLite closes a descriptor below 3 and tries again; such a close could drop somebody's locks, so it must not come to it.
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

#[cfg(any(target_os = "linux", target_os = "android"))]
fn open_descriptors() -> Box<dyn Iterator<Item = c_int>> {
    match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => Box::new(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())),
        Err(_) => Box::new(all_possible_descriptors()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn open_descriptors() -> Box<dyn Iterator<Item = c_int>> {
    Box::new(all_possible_descriptors())
}

/// Where the system does not list them: every number the limit allows.
fn all_possible_descriptors() -> impl Iterator<Item = c_int> {
    // SAFETY: a plain question.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    0..c_int::try_from(limit).unwrap_or(c_int::MAX).clamp(0, 1 << 20)
}

/// Refuses a file that cannot be shared safely: its file system lacks the locks, and somebody else here has it open.
pub fn check_shareable(path: &Path) -> Result<()> {
    if LOCKS.is_off() {
        return Ok(());
    }
    let (lacking, ours) = {
        let registry = registry();
        let lacking = registry.named(path).filter(|(_, file)| !file.has_ofd).map(|(inode, _)| inode).collect();
        let ours = registry.descriptors(&lacking);
        (lacking, ours)
    };
    if lacking.is_empty() || inodes_beside(&ours).is_disjoint(&lacking) {
        return Ok(());
    }
    Err(Error::Storage(
        "another copy of SQLite in this process has the file open, and its file system has no open-file-description \
         locks: sharing it would destroy it. Close the other connection first, or move the file to a local disk"
            .into(),
    ))
}

/// The second line: whether the path still leads to the file we opened, and the WAL our connections write to is still
/// its WAL.
pub fn check_files(path: &Path, device: u64, number: u64) -> Result<()> {
    if COMMIT_CHECK.is_off() {
        return Ok(());
    }
    let database = Inode { device, number };
    let wal = with_suffix(path, "-wal");
    let current = inode_at(path);
    let current_wal = inode_at(&wal);
    let registry = registry();
    let mut ours = registry.named(&wal).filter(|(_, file)| file.database == Some(database));
    if current == Some(database) && ours.all(|(inode, _)| current_wal == Some(inode)) {
        return Ok(());
    }
    Err(replaced())
}

/// The same before anything is written, without the log.
pub fn check_file(path: &Path, device: u64, number: u64) -> Result<()> {
    if COMMIT_CHECK.is_off() || inode_at(path) == Some(Inode { device, number }) { Ok(()) } else { Err(replaced()) }
}

fn replaced() -> Error {
    Error::Io(
        "the file or its write-ahead log was removed or replaced by somebody else while the queue was open; this change \
         is not acknowledged. Close the queue, and look at the file before you go on"
            .into(),
    )
}

/// Makes sure that what a log seems to hold is on the disk.
pub fn write_log_again(log: &Path) -> Result<()> {
    log::write_again(log).map_err(|error| Error::Io(format!("the log cannot be written again: {error}")))
}

/// Whether a file has more names than one.
pub fn is_hard_linked(path: &Path) -> bool {
    look_at_bytes(path.as_os_str().as_bytes()).is_some_and(|found| found.links > 1)
}

/// Whether a file is mounted by itself over this name, and so has another one elsewhere. That other name looks plain.
#[cfg(target_os = "linux")]
pub fn is_mounted(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a zeroed `struct statx` is a valid one to fill.
    let found = unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        (libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, libc::STATX_INO, &mut found) == 0).then_some(found)
    };
    let root = libc::STATX_ATTR_MOUNT_ROOT as u64;
    // A kernel that does not know the attribute leaves it out of the mask and never sets it.
    found.is_some_and(|found| found.stx_attributes_mask & found.stx_attributes & root != 0)
}

#[cfg(not(target_os = "linux"))]
pub fn is_mounted(_path: &Path) -> bool {
    false
}

/// A lock on a byte of a database that only this process has: others see at once when the process is gone. It outlives the
/// connections, so that an item in hand is not given away because its queue was closed.
pub struct SignOfLife {
    inode: Inode,
    pub number: i64,
    generation: u64,
}

impl SignOfLife {
    /// `None` where the file system has no such locks, or the file is not open here.
    pub fn give(device: u64, inode: u64, number: i64) -> Option<Self> {
        let inode = Inode { device, number: inode };
        let mut registry = registry();
        let file = registry.files.get_mut(&inode)?;
        if LOCKS.is_off() || !file.has_ofd || !set_lock(file, libc::F_WRLCK as c_int, SIGN_OF_LIFE + number, 1) {
            return None;
        }
        file.signs.push(number);
        Some(Self { inode, number, generation: process::generation() })
    }

    /// Shows that the process waits to renew what it holds, or that it has done so.
    pub fn show_wait_to_renew(&self, waits: bool) {
        let mut registry = registry();
        let Some(file) = registry.files.get_mut(&self.inode).filter(|_| self.generation == process::generation())
        else {
            return;
        };
        file.waits_to_renew.retain(|number| *number != self.number);
        if waits {
            file.waits_to_renew.push(self.number);
        }
        let kind = if waits { libc::F_WRLCK } else { libc::F_UNLCK };
        set_lock(file, kind as c_int, WAIT_TO_RENEW + self.number, 1);
    }

    /// Whether the process that gave this sign waits to renew what it holds.
    pub fn waits_to_renew(device: u64, inode: u64, number: i64) -> bool {
        let registry = registry();
        let Some(file) = registry.files.get(&Inode { device, number: inode }) else { return false };
        if file.waits_to_renew.contains(&number) {
            return true;
        }
        let Some(byte) = WAIT_TO_RENEW.checked_add(number).filter(|byte| *byte >= WAIT_TO_RENEW) else { return false };
        file.has_ofd && !LOCKS.is_off() && matches!(conflicting_lock(file.lock_fd(), byte, 1), Ok(Some(_)))
    }

    /// Whether the process that gave this sign lives. What cannot be found out counts as alive: its lease ends by itself.
    pub fn is_seen(device: u64, inode: u64, number: i64) -> bool {
        let registry = registry();
        let Some(file) = registry.files.get(&Inode { device, number: inode }) else { return true };
        if !file.has_ofd || LOCKS.is_off() || file.signs.contains(&number) {
            return true;
        }
        let Some(byte) = SIGN_OF_LIFE.checked_add(number).filter(|byte| *byte >= SIGN_OF_LIFE) else { return true };
        conflicting_lock(file.lock_fd(), byte, 1).map_or(true, |lock| lock.is_some())
    }
}

impl Drop for SignOfLife {
    fn drop(&mut self) {
        // A child has neither the lock nor the descriptor.
        if self.generation != process::generation() {
            return;
        }
        {
            let mut registry = registry();
            let Some(file) = registry.files.get_mut(&self.inode) else { return };
            file.signs.retain(|number| *number != self.number);
            file.waits_to_renew.retain(|number| *number != self.number);
            set_lock(file, libc::F_UNLCK as c_int, SIGN_OF_LIFE + self.number, 1);
            set_lock(file, libc::F_UNLCK as c_int, WAIT_TO_RENEW + self.number, 1);
            if !file.is_parked() || !file.signs.is_empty() {
                return;
            }
            registry.just_parked.insert(self.inode);
        }
        sweep();
    }
}

/// A byte that one process holds to tell the other writers something; see [`super::turns`]. A process has one writer for a
/// file, so it does not meet itself there.
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
}

impl Mark {
    fn byte(self) -> i64 {
        MARKS + self as i64
    }
}

impl MarkGuard {
    /// `None` if another process has it, or the file system has no such locks.
    pub fn take(device: u64, inode: u64, mark: Mark) -> Option<Self> {
        let inode = Inode { device, number: inode };
        let registry = registry();
        let file = registry.files.get(&inode)?;
        let is_taken = !LOCKS.is_off() && file.has_ofd && set_lock(file, libc::F_WRLCK as c_int, mark.byte(), 1);
        is_taken.then(|| Self { inode, mark, generation: process::generation() })
    }

    /// Whether another process has it.
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

/// Takes a mark, or lets go of it, as another process would.
#[cfg(test)]
pub fn set_mark(fd: c_int, mark: Mark, is_taken: bool) -> bool {
    let mut lock = record(if is_taken { libc::F_WRLCK } else { libc::F_UNLCK } as c_int, mark.byte(), 1);
    // SAFETY: a valid `struct flock` on a descriptor of the test's.
    unsafe { libc::fcntl(fd, ofd::SETLK, &mut lock) == 0 }
}

/// Whether our locks on a file belong to the open file, so that another copy of SQLite in the process cannot drop them.
pub fn has_own_locks(path: &Path) -> bool {
    !LOCKS.is_off() && registry().named(path).all(|(_, file)| file.has_ofd)
}

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

/// The registry, held over a fork so that the child's copy of it is whole.
pub struct ForkHold(MutexGuard<'static, Registry>, #[allow(dead_code)] MutexGuard<'static, ()>);

impl ForkHold {
    pub fn take() -> Self {
        let sweeping = SWEEPING.lock();
        Self(registry(), sweeping)
    }

    /// In the child: the descriptors are the parent's and carry the parent's locks, so they go.
    pub fn leave_parents_files(&mut self) {
        let mut registry = std::mem::take(&mut *self.0);
        // They give nothing up here: the locks are the parent's.
        std::mem::forget(std::mem::take(&mut registry.kept_signs));
        for fd in registry.inodes.keys() {
            // SAFETY: inherited, and nobody in the child will use it: inherited connections are never touched again.
            unsafe { libc::close(*fd) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewItem, Options, Queue};
    use std::fs::OpenOptions;
    use std::os::fd::AsRawFd;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    struct Place {
        path: PathBuf,
        _folder: tempfile::TempDir,
    }

    fn place() -> Place {
        let folder = tempfile::tempdir().unwrap();
        Place { path: folder.path().canonicalize().unwrap().join("app.db"), _folder: folder }
    }

    fn queue(place: &Place) -> Arc<Queue> {
        let queue = Queue::open(&place.path, Options::default()).unwrap();
        queue.enqueue(NewItem::text("x")).unwrap();
        queue
    }

    fn open_plainly(path: &Path) -> std::fs::File {
        OpenOptions::new().read(true).write(true).open(path).unwrap()
    }

    /// A lock as another copy of SQLite in this process would take it.
    fn lock_as_process(file: &std::fs::File, start: i64) -> bool {
        let mut lock = record(libc::F_WRLCK as c_int, start, 1);
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &mut lock) == 0 }
    }

    /// What a test does while a sweep of its thread looks for others.
    type Act = Option<Box<dyn FnMut()>>;
    thread_local! {
        pub static DURING_A_LOOK: std::cell::RefCell<Act> = const { std::cell::RefCell::new(None) };
    }

    fn during_a_look(act: impl FnMut() + 'static) {
        DURING_A_LOOK.set(Some(Box::new(act)));
    }

    fn holder(fd: c_int, start: i64, length: i64) -> Option<libc::pid_t> {
        conflicting_lock(fd, start, length).unwrap().map(|lock| lock.l_pid)
    }

    fn entries(place: &Place) -> usize {
        let shm = with_suffix(&place.path, "-shm");
        let registry = registry();
        registry.named(&place.path).count() + registry.named(&shm).count()
    }

    /// The first byte SQLite's readers share.
    const SHARED_BYTE: i64 = PENDING_BYTE + 2;

    #[test]
    fn our_locks_survive_a_foreign_close() {
        let place = place();
        let _queue = queue(&place);
        drop(open_plainly(&place.path));
        drop(open_plainly(&with_suffix(&place.path, "-shm")));
        let stranger = open_plainly(&place.path);
        assert_eq!(holder(stranger.as_raw_fd(), SHARED_BYTE, 1), Some(-1));
    }

    #[test]
    fn another_copy_cannot_take_what_we_hold() {
        let place = place();
        let _queue = queue(&place);
        let other = open_plainly(&place.path);
        assert!(!lock_as_process(&other, SHARED_BYTE));
    }

    #[test]
    fn closing_spares_the_locks_of_another_copy_and_parks_the_files() {
        let place = place();
        drop(queue(&place));
        let other = open_plainly(&place.path);
        assert!(lock_as_process(&other, 0));
        drop(queue(&place));
        let stranger = open_plainly(&place.path);
        assert_eq!(holder(stranger.as_raw_fd(), 0, 1), Some(std::process::id() as libc::pid_t));
        assert!(entries(&place) > 0);
        assert!(registry().named(&place.path).all(|(_, file)| file.is_parked()));
        // A close of any descriptor would drop the other copy's lock, so these are leaked to the end of the test.
        std::mem::forget((other, stranger));
    }

    #[test]
    fn parked_files_are_handed_out_again() {
        let place = place();
        drop(queue(&place));
        let other = open_plainly(&place.path);
        let descriptors = || registry().named(&place.path).map(|(_, file)| file.descriptors.len()).sum::<usize>();
        drop(queue(&place));
        let parked = descriptors();
        for _ in 0..5 {
            drop(queue(&place));
        }
        assert_eq!(descriptors(), parked);
        drop(other);
        drop(queue(&place));
        assert_eq!(entries(&place), 0);
    }

    #[test]
    fn nothing_stays_open_after_the_last_close_and_the_log_is_folded_back() {
        let place = place();
        drop(queue(&place));
        assert_eq!(entries(&place), 0);
        assert!(!with_suffix(&place.path, "-wal").exists());
    }

    #[test]
    fn a_close_that_looks_for_others_holds_nobody_up() {
        let (place, looks) = (place(), Arc::new(AtomicUsize::new(0)));
        let opened = queue(&place);
        let elsewhere = self::place();
        let other = queue(&elsewhere);
        let (beside, seen) = (other.clone(), looks.clone());
        during_a_look(move || {
            beside.enqueue(NewItem::text("y")).unwrap();
            seen.fetch_add(1, Ordering::Relaxed);
        });
        drop(opened);
        DURING_A_LOOK.set(None);
        assert!(looks.load(Ordering::Relaxed) > 0);
        assert_eq!(entries(&place), 0);
    }

    #[test]
    fn a_file_that_is_opened_while_a_sweep_looks_for_others_stays_open() {
        let place = place();
        drop(queue(&place));
        let other = open_plainly(&place.path);
        drop(queue(&place));
        drop(other);
        let inode = look_at_bytes(place.path.as_os_str().as_bytes()).unwrap().inode;
        assert!(registry().files[&inode].is_parked());
        let (path, opened) = (place.path.clone(), Arc::new(Mutex::new(None)));
        let kept = opened.clone();
        during_a_look(move || {
            let connection = rusqlite::Connection::open(&path).unwrap();
            connection.execute_batch("UPDATE ingest_queue SET project = 'p'").unwrap();
            *kept.lock() = Some(connection);
        });
        registry().just_parked.insert(inode);
        sweep();
        DURING_A_LOOK.set(None);
        let opened = opened.lock().take().unwrap();
        opened.execute_batch("UPDATE ingest_queue SET project = 'q'").unwrap();
        let stranger = open_plainly(&place.path);
        assert_eq!(holder(stranger.as_raw_fd(), SHARED_BYTE, 1), Some(-1), "its locks are there");
        assert_eq!(holder(stranger.as_raw_fd(), PENDING_BYTE, 1), None, "others can lock the file");
        drop(opened);
        drop(stranger);
        drop(queue(&place));
        assert_eq!(entries(&place), 0);
    }

    #[test]
    fn files_that_were_unlinked_are_closed_at_once() {
        let place = place();
        let queue = queue(&place);
        let other = open_plainly(&place.path);
        for suffix in ["", "-wal", "-shm"] {
            std::fs::remove_file(with_suffix(&place.path, suffix)).unwrap();
        }
        drop(queue);
        assert_eq!(entries(&place), 0);
        drop(other);
    }

    #[test]
    fn a_log_that_was_removed_or_replaced_is_noticed() {
        let place = place();
        let _queue = queue(&place);
        let database = look_at_bytes(place.path.as_os_str().as_bytes()).unwrap().inode;
        let check = || check_files(&place.path, database.device, database.number);
        check().unwrap();
        let wal = with_suffix(&place.path, "-wal");
        std::fs::rename(&wal, with_suffix(&place.path, "-gone")).unwrap();
        assert!(check().is_err());
        std::fs::write(&wal, b"").unwrap();
        assert!(check().is_err());
    }

    #[test]
    fn a_sign_of_life_outlives_the_connections_and_ends_with_its_owner() {
        let place = place();
        let queue = queue(&place);
        let Inode { device, number } = look_at_bytes(place.path.as_os_str().as_bytes()).unwrap().inode;
        let sign = SignOfLife::give(device, number, 1 << 40).unwrap();
        let stranger = open_plainly(&place.path);
        let is_held = || holder(stranger.as_raw_fd(), SIGN_OF_LIFE + (1 << 40), 1).is_some();
        assert!(is_held() && SignOfLife::is_seen(device, number, 1 << 40));
        assert!(!SignOfLife::is_seen(device, number, 5));
        drop(queue);
        assert!(is_held());
        drop(sign);
        assert!(!is_held());
        drop(stranger);
        drop(self::queue(&place));
        assert_eq!(entries(&place), 0);
    }

    #[test]
    fn the_writer_is_named() {
        let place = place();
        let _queue = queue(&place);
        let shm = open_plainly(&with_suffix(&place.path, "-shm"));
        assert_eq!(obstacle(&place.path), None);
        assert!(lock_as_process(&shm, WAL_WRITE_BYTE));
        let own = Obstacle { holder: Holder::ThisProcess, kind: Kind::Writes };
        assert_eq!(obstacle(&place.path), Some(own));
    }

    #[test]
    fn names_of_files_beside_a_database_are_reserved() {
        assert!(["a-wal", "a-shm", "a-journal"].iter().all(|name| is_reserved(Path::new(name))));
        assert!(!is_reserved(Path::new("wal.db")));
    }
}
