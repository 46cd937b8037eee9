//! Closing parked files for good, once no other code of this process has them open.

use std::collections::HashSet;
use std::ffi::c_int;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use super::identity::{Inode, is_unlinked, look};
use super::record_locks::{PENDING_BYTE, set_lock};
use super::registry::{File, Registry, Role, registry, with_suffix};
use crate::sync::Mutex;

/// A sweep may cost at most this part of a process's time.
const SWEEP_SHARE: u32 = 10;

/// Taken before the registry.
pub(super) static SWEEPING: Mutex<()> = Mutex::new(());

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
pub(super) fn inodes_beside(ours: &HashSet<c_int>) -> HashSet<Inode> {
    #[cfg(test)]
    super::tests::DURING_A_LOOK.with_borrow_mut(|act| act.iter_mut().for_each(|act| act()));
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

impl Registry {
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
