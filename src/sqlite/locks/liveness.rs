//! Liveness: a process locks one byte of the database while it lives, and a second one while it waits to renew its
//! claims.

use std::ffi::c_int;

use super::identity::Inode;
use super::protections::LOCKS;
use super::record_locks::{LIVENESS_BYTES, conflicting_lock, set_lock};
use super::registry::registry;
use super::sweep::sweep;
use crate::process;

/// A lock on a byte from here on shows that a process waits to renew its claims. They lie above every liveness lock.
const WAIT_TO_RENEW: i64 = LIVENESS_BYTES + (1 << 42);

/// A lock on one byte of a database: other processes see at once when this one has ended. It outlives the connections,
/// so that a claimed item is not reclaimed because its queue was closed.
pub struct LivenessLock {
    inode: Inode,
    pub number: i64,
    generation: u64,
}

impl LivenessLock {
    /// Returns `None` where the file system has no such locks, or if the file is not open here.
    pub fn give(device: u64, inode: u64, number: i64) -> Option<Self> {
        let inode = Inode { device, number: inode };
        let mut registry = registry();
        let file = registry.files.get_mut(&inode)?;
        if LOCKS.is_off() || !file.has_ofd || !set_lock(file, libc::F_WRLCK as c_int, LIVENESS_BYTES + number, 1) {
            return None;
        }
        file.liveness_numbers.push(number);
        Some(Self { inode, number, generation: process::generation() })
    }

    /// Shows that the process waits to renew its claims, or no longer does.
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

    /// Returns whether the process with this number waits to renew its claims.
    pub fn waits_to_renew(device: u64, inode: u64, number: i64) -> bool {
        let registry = registry();
        let Some(file) = registry.files.get(&Inode { device, number: inode }) else { return false };
        if file.waits_to_renew.contains(&number) {
            return true;
        }
        let Some(byte) = WAIT_TO_RENEW.checked_add(number).filter(|byte| *byte >= WAIT_TO_RENEW) else { return false };
        file.has_ofd && !LOCKS.is_off() && matches!(conflicting_lock(file.lock_fd(), byte, 1), Ok(Some(_)))
    }

    /// Returns whether the process with this number lives. If that is unknown, it counts as alive: its lease expires.
    pub fn is_seen(device: u64, inode: u64, number: i64) -> bool {
        let registry = registry();
        let Some(file) = registry.files.get(&Inode { device, number: inode }) else { return true };
        if !file.has_ofd || LOCKS.is_off() || file.liveness_numbers.contains(&number) {
            return true;
        }
        let Some(byte) = LIVENESS_BYTES.checked_add(number).filter(|byte| *byte >= LIVENESS_BYTES) else { return true };
        conflicting_lock(file.lock_fd(), byte, 1).map_or(true, |lock| lock.is_some())
    }
}

impl LivenessLock {
    /// Returns whether any process shows on this file that it lives.
    pub fn is_any_seen(device: u64, inode: u64) -> bool {
        let registry = registry();
        let Some(file) = registry.files.get(&Inode { device, number: inode }) else { return false };
        let is_seen_elsewhere =
            || matches!(conflicting_lock(file.lock_fd(), LIVENESS_BYTES, WAIT_TO_RENEW - LIVENESS_BYTES), Ok(Some(_)));
        !file.liveness_numbers.is_empty() || (file.has_ofd && !LOCKS.is_off() && is_seen_elsewhere())
    }
}

impl Drop for LivenessLock {
    fn drop(&mut self) {
        // A forked child has neither the lock nor the descriptor.
        if self.generation != process::generation() {
            return;
        }
        {
            let mut registry = registry();
            let Some(file) = registry.files.get_mut(&self.inode) else { return };
            file.liveness_numbers.retain(|number| *number != self.number);
            file.waits_to_renew.retain(|number| *number != self.number);
            set_lock(file, libc::F_UNLCK as c_int, LIVENESS_BYTES + self.number, 1);
            set_lock(file, libc::F_UNLCK as c_int, WAIT_TO_RENEW + self.number, 1);
            if !file.is_parked() || !file.liveness_numbers.is_empty() {
                return;
            }
            registry.just_parked.insert(self.inode);
        }
        sweep();
    }
}
