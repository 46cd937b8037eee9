//! The sweep: closing parked files for good, once no other code of this process has them open.

use std::collections::HashSet;
use std::ffi::c_int;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use super::identity::{Inode, describe, is_unlinked};
use super::record_locks::{PENDING_BYTE, set_lock};
use super::registry::{File, Registry, Role, registry, with_suffix};
use crate::sync::Mutex;

/// A full sweep runs at most for one part in this many of the process's time.
const SWEEP_SHARE: u32 = 10;

/// Locked before the registry.
pub(super) static SWEEPING: Mutex<()> = Mutex::new(());

/// Closes parked files that no other code of this process has open. Called after connections were closed.
pub fn sweep() {
    // One sweep at a time: when a call returns, the files it parked were swept, by this sweep or by one of another
    // thread.
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
    let others = if sweep.sets.is_empty() { HashSet::new() } else { inodes_of_other_descriptors(&sweep.ours) };
    let mut registry = registry();
    registry.end_sweep(&sweep, &others);
    if all {
        registry.next_sweep = Some(Instant::now() + started.elapsed() * SWEEP_SHARE);
    }
}

/// The inodes of all descriptors of this process except these.
pub(super) fn inodes_of_other_descriptors(ours: &HashSet<c_int>) -> HashSet<Inode> {
    #[cfg(test)]
    super::tests::DURING_A_SCAN.with_borrow_mut(|act| act.iter_mut().for_each(|act| act()));
    open_descriptors().filter(|fd| !ours.contains(fd)).filter_map(describe).map(|found| found.inode).collect()
}

struct Sweep {
    sets: Vec<FileSet>,
    /// Our descriptors of these files when the sweep began. A descriptor that is opened later has no locks yet.
    ours: HashSet<c_int>,
}

/// Files that are closed together: a database and its `-shm`, or one file alone.
struct FileSet {
    main: Inode,
    shared_memory: Vec<Inode>,
    /// No process can open it any more, so locks on it do not matter.
    unlinked: bool,
}

impl FileSet {
    fn inodes(&self) -> impl Iterator<Item = Inode> {
        self.shared_memory.iter().copied().chain([self.main])
    }
}

impl Registry {
    /// Returns what can be closed if no other code of this process has it open: the files just parked, or with `all`
    /// every parked file.
    fn begin_sweep(&mut self, all: bool) -> Sweep {
        let just_parked = std::mem::take(&mut self.just_parked);
        let mut sets = Vec::new();
        for (inode, file) in &self.files {
            if file.is_parked() && (all || just_parked.contains(inode)) {
                sets.extend(self.set_to_close(*inode, file));
            }
        }
        let mut ours = HashSet::new();
        for inode in sets.iter().flat_map(FileSet::inodes) {
            let file = self.files.get_mut(&inode).expect("a set has only registered files");
            file.is_swept = true;
            ours.extend(file.descriptors.iter().map(|descriptor| descriptor.fd));
        }
        Sweep { sets, ours }
    }

    /// Closes the files that no other code has open, unless they were used again since the sweep began.
    fn end_sweep(&mut self, sweep: &Sweep, others: &HashSet<Inode>) {
        for set in &sweep.sets {
            // A `-shm` may have been closed already, as a set by itself.
            let is_unused = |inode| self.files.get(&inode).is_none_or(|file| file.is_swept && file.is_parked());
            let has_signs = self.files.get(&set.main).is_some_and(|file| !file.liveness_numbers.is_empty());
            let can_be_closed =
                set.inodes().all(|inode| is_unused(inode) && !others.contains(&inode)) && (set.unlinked || !has_signs);
            if can_be_closed {
                // `-shm` first, and last of all the descriptor that holds the PENDING byte.
                set.inodes().for_each(|inode| self.close_for_good(inode));
            } else if set.unlinked && is_unused(set.main) {
                self.close_for_good(set.main);
            }
        }
        self.files.values_mut().for_each(File::end_sweep);
    }

    /// Returns the files to close with a parked one. These are a database and its `-shm`, if that is parked too and we
    /// got the PENDING byte; a file that was unlinked, which no process can open any more; a `-shm` whose database is
    /// closed.
    fn set_to_close(&self, main: Inode, file: &File) -> Option<FileSet> {
        let unlinked = is_unlinked(file.lock_fd());
        if !file.liveness_numbers.is_empty() && !unlinked {
            return None;
        }
        if file.role == Role::SharedMemory {
            let database = file.path.as_os_str().as_bytes().strip_suffix(b"-shm").unwrap_or_default();
            let is_alone = self.named(Path::new(std::ffi::OsStr::from_bytes(database))).next().is_none();
            let set = FileSet { main, shared_memory: Vec::new(), unlinked };
            return (is_alone || unlinked).then_some(set);
        }
        let shared_memory = self.named(&with_suffix(&file.path, "-shm")).map(|(inode, _)| inode).collect::<Vec<_>>();
        if shared_memory.iter().any(|inode| !self.files[inode].is_parked()) {
            return unlinked.then_some(FileSet { main, shared_memory: Vec::new(), unlinked });
        }
        let fenced = !unlinked && set_lock(file, libc::F_WRLCK as c_int, PENDING_BYTE, 1);
        (fenced || unlinked).then_some(FileSet { main, shared_memory, unlinked })
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

/// Where the system does not list them: every number that the limit allows.
fn all_possible_descriptors() -> impl Iterator<Item = c_int> {
    // SAFETY: only queries a limit.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    0..c_int::try_from(limit).unwrap_or(c_int::MAX).clamp(0, 1 << 20)
}
