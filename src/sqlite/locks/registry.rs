//! The registry of every descriptor that our copy of SQLite has open or parked.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{CStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;
use std::time::Instant;

use once_cell::sync::Lazy;

use super::super::file::wal::WalBuffers;
use super::identity::{Inode, describe, describe_bytes, describe_path, inode_of, is_read_write};
use super::kept_liveness::KeptSign;
use super::protections::LOCKS;
use super::record_locks::{LIVENESS_BYTES, PENDING_BYTE, WAL_WRITE_BYTE, has_ofd_locks, set_lock};
use super::sweep;
use crate::sync::Mutex;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Database,
    SharedMemory,
    /// WAL, journals: SQLite does not lock them, so they are closed as usual.
    Other,
}

pub(super) struct Descriptor {
    pub(super) fd: c_int,
    /// Closed by SQLite, but kept open here.
    pub(super) parked: bool,
}

/// One inode that our copy of SQLite has opened.
pub(super) struct File {
    pub(super) role: Role,
    pub(super) path: PathBuf,
    /// The first one carries all locks.
    pub(super) descriptors: Vec<Descriptor>,
    /// Whether the file system has open-file-description locks.
    pub(super) has_ofd: bool,
    /// For a WAL: its database when it was opened.
    pub(super) database: Option<Inode>,
    /// For a database: the numbers of this process's liveness locks on it.
    pub(super) liveness_numbers: Vec<i64>,
    /// Those of them that wait to renew their claims.
    pub(super) waits_to_renew: Vec<i64>,
    /// A sweep is checking whether it can be closed. Ends when it is used again.
    pub(super) is_swept: bool,
}

impl File {
    pub(super) fn is_parked(&self) -> bool {
        self.descriptors.iter().all(|descriptor| descriptor.parked)
    }

    pub(super) fn lock_fd(&self) -> c_int {
        self.descriptors[0].fd
    }

    /// The file is used again: no sweep may close it, or keep other connections from locking it.
    pub(super) fn end_sweep(&mut self) {
        if std::mem::take(&mut self.is_swept) {
            set_lock(self, libc::F_UNLCK as c_int, PENDING_BYTE, 1);
        }
    }
}

/// All files and descriptors of our copy of SQLite.
#[derive(Default)]
pub struct Registry {
    pub(super) files: BTreeMap<Inode, File>,
    inodes: BTreeMap<c_int, Inode>,
    /// Usually one inode per name; more if a file was replaced while it was open here.
    pub(super) names: BTreeMap<PathBuf, Vec<Inode>>,
    pub(in crate::sqlite) wals: WalBuffers,
    /// Signs of claims whose items were dropped.
    pub(super) kept_liveness: Vec<KeptSign>,
    /// Parked since the last sweep.
    pub(super) just_parked: HashSet<Inode>,
    pub(super) next_sweep: Option<Instant>,
}

static REGISTRY: Lazy<Mutex<Registry>> = Lazy::new(Mutex::default);

/// Makes the registry, so that nothing has to be made while SQLite calls.
pub(super) fn prepare() {
    Lazy::force(&REGISTRY);
}

pub fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock()
}

impl Registry {
    pub(super) fn add(&mut self, fd: c_int, name: &CStr) {
        let Some(found) = describe(fd) else { return };
        if !found.is_regular {
            return;
        }
        self.forget_descriptor(fd);
        self.forget_closed_descriptors(found.inode);
        let path = as_path(name).to_owned();
        if !self.files.contains_key(&found.inode) {
            self.names.entry(path.clone()).or_default().push(found.inode);
        }
        let file = self.files.entry(found.inode).or_insert_with(|| File {
            role: role(&path),
            path,
            descriptors: Vec::new(),
            has_ofd: has_ofd_locks(fd),
            database: name.to_bytes().strip_suffix(b"-wal").and_then(describe_bytes).map(|found| found.inode),
            liveness_numbers: Vec::new(),
            waits_to_renew: Vec::new(),
            is_swept: false,
        });
        file.end_sweep();
        file.descriptors.push(Descriptor { fd, parked: false });
        self.inodes.insert(fd, found.inode);
        if name.to_bytes().ends_with(b"-wal") {
            self.wals.add(fd);
        }
    }

    /// The application closed a descriptor of ours. Its number may belong to another file by now.
    fn forget_descriptor(&mut self, fd: c_int) {
        let Some(inode) = self.inodes.remove(&fd) else { return };
        let Some(file) = self.files.get_mut(&inode) else { return };
        file.descriptors.retain(|descriptor| descriptor.fd != fd);
        if file.descriptors.is_empty() {
            self.remove(inode);
        }
    }

    fn forget_closed_descriptors(&mut self, inode: Inode) {
        let Some(file) = self.files.get(&inode) else { return };
        let fds = file.descriptors.iter().map(|descriptor| descriptor.fd);
        for fd in fds.filter(|fd| inode_of(*fd) != Some(inode)).collect::<Vec<_>>() {
            self.forget_descriptor(fd);
        }
    }

    /// The file that a descriptor was opened for.
    pub fn inode(&self, fd: c_int) -> Option<Inode> {
        self.inodes.get(&fd).copied()
    }

    /// When the write lock is released, frames that were buffered and not committed are discarded.
    pub(super) fn discard_rolled_back(&mut self, fd: c_int, lock: &libc::flock) {
        let covers = lock.l_start <= WAL_WRITE_BYTE && (lock.l_len == 0 || WAL_WRITE_BYTE < lock.l_start + lock.l_len);
        if !covers || !self.wals.hold_frames() {
            return;
        }
        let Some(file) = self.inodes.get(&fd).and_then(|inode| self.files.get(inode)) else { return };
        let Some(database) = file.path.as_os_str().as_bytes().strip_suffix(b"-shm") else { return };
        let wal = with_suffix(Path::new(std::ffi::OsStr::from_bytes(database)), "-wal");
        let fds = self.named(&wal).flat_map(|(_, file)| file.descriptors.iter().map(|descriptor| descriptor.fd));
        let fds = fds.collect::<Vec<_>>();
        self.wals.discard_uncommitted(fds.into_iter());
    }

    /// Hands out a parked descriptor. It is as good as a new one: SQLite reads and writes at given offsets only.
    pub(super) fn unpark(&mut self, name: &CStr, flags: c_int) -> Option<c_int> {
        if flags & libc::O_EXCL != 0 || flags & libc::O_ACCMODE != libc::O_RDWR {
            return None;
        }
        let inode = describe_path(name)?.inode;
        self.forget_closed_descriptors(inode);
        let file = self.files.get_mut(&inode)?;
        let descriptor =
            file.descriptors.iter_mut().find(|descriptor| descriptor.parked && is_read_write(descriptor.fd))?;
        descriptor.parked = false;
        let fd = descriptor.fd;
        file.end_sweep();
        Some(fd)
    }

    pub(super) fn lock_target(&self, fd: c_int) -> (c_int, bool) {
        match self.inodes.get(&fd).and_then(|inode| self.files.get(inode)) {
            Some(file) => (file.lock_fd(), file.has_ofd),
            None => (fd, true),
        }
    }

    pub(super) fn close(&mut self, fd: c_int) -> c_int {
        self.wals.remove(fd);
        let Some(inode) = self.inodes.get(&fd).copied() else {
            // SAFETY: a descriptor SQLite opened and we do not keep.
            return unsafe { libc::close(fd) };
        };
        if inode_of(fd) != Some(inode) {
            self.forget_descriptor(fd);
            return 0;
        }
        let file = self.files.get_mut(&inode).expect("entered together with its descriptor");
        if file.role == Role::Other || LOCKS.is_off() {
            file.descriptors.retain(|descriptor| descriptor.fd != fd);
            self.inodes.remove(&fd);
            if file.descriptors.is_empty() {
                self.remove(inode);
            }
            // SAFETY: as above.
            return unsafe { libc::close(fd) };
        }
        for descriptor in file.descriptors.iter_mut().filter(|descriptor| descriptor.fd == fd) {
            descriptor.parked = true;
        }
        if file.is_parked() {
            // SQLite has unlocked already; this ensures that no parked file is locked.
            set_lock(file, libc::F_UNLCK as c_int, 0, LIVENESS_BYTES);
            self.just_parked.insert(inode);
        }
        0
    }

    pub(super) fn named(&self, path: &Path) -> impl Iterator<Item = (Inode, &File)> {
        self.names.get(path).into_iter().flatten().map(|inode| (*inode, &self.files[inode]))
    }

    fn remove(&mut self, inode: Inode) -> Option<File> {
        let file = self.files.remove(&inode)?;
        if let Some(inodes) = self.names.get_mut(&file.path) {
            inodes.retain(|known| *known != inode);
            if inodes.is_empty() {
                self.names.remove(&file.path);
            }
        }
        Some(file)
    }

    pub(super) fn close_for_good(&mut self, inode: Inode) {
        let Some(file) = self.remove(inode) else { return };
        for descriptor in file.descriptors.iter().rev() {
            self.inodes.remove(&descriptor.fd);
            if inode_of(descriptor.fd) == Some(inode) {
                // SAFETY: ours, parked, and no longer registered.
                unsafe { libc::close(descriptor.fd) };
            }
        }
    }

    /// The descriptors of these files.
    pub(super) fn descriptors(&self, inodes: &HashSet<Inode>) -> HashSet<c_int> {
        self.inodes.iter().filter(|(_, inode)| inodes.contains(inode)).map(|(fd, _)| *fd).collect()
    }
}

pub(super) fn as_path(name: &CStr) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

pub(super) fn role(path: &Path) -> Role {
    let name = path.as_os_str().as_bytes();
    if name.ends_with(b"-shm") {
        Role::SharedMemory
    } else if name.ends_with(b"-wal") || name.ends_with(b"-journal") {
        Role::Other
    } else {
        Role::Database
    }
}

/// Returns whether SQLite gives such a name to a file beside a database; a database must not have one.
pub fn is_reserved(path: &Path) -> bool {
    role(path) != Role::Database
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The registry, locked during a fork so that the child's copy of it is consistent.
pub struct RegistryGuard(MutexGuard<'static, Registry>, #[allow(dead_code)] MutexGuard<'static, ()>);

impl RegistryGuard {
    pub fn take() -> Self {
        let sweeping = sweep::SWEEPING.lock();
        Self(registry(), sweeping)
    }

    /// In the child: closes the inherited descriptors, which carry the parent's locks.
    pub fn close_parents_files(&mut self) {
        let mut registry = std::mem::take(&mut *self.0);
        // Dropping them would release locks that are the parent's.
        std::mem::forget(std::mem::take(&mut registry.kept_liveness));
        for fd in registry.inodes.keys() {
            // SAFETY: inherited, and no code of the child uses it: inherited connections are never used again.
            unsafe { libc::close(*fd) };
        }
    }
}
