//! The counterpart for Windows, where locks belong to handles and there is no fork: nothing is replaced. Untested.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::kept_liveness::KeptSign;
use crate::error::Result;

pub struct Protection;

pub static LOCKS: Protection = Protection;
pub static FORK: Protection = Protection;
pub static COMMIT_CHECK: Protection = Protection;

impl Protection {
    pub fn switch_off(&self) -> Result<()> {
        Ok(())
    }
}

pub fn install() -> Result<()> {
    Ok(())
}

pub fn is_reserved(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    [&b"-shm"[..], b"-wal", b"-journal"].iter().any(|suffix| name.ends_with(suffix))
}

pub fn is_writable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.permissions().readonly())
}

pub fn sweep() {}

pub fn check_shareable(_path: &Path) -> Result<()> {
    Ok(())
}

pub fn is_hard_linked(_path: &Path) -> bool {
    false
}

pub fn is_mounted(_path: &Path) -> bool {
    false
}

pub fn check_file(_path: &Path, _device: u64, _number: u64) -> Result<()> {
    Ok(())
}

pub fn check_files(_path: &Path, _device: u64, _number: u64) -> Result<()> {
    Ok(())
}

pub fn has_own_locks(_path: &Path) -> bool {
    true
}

#[derive(PartialEq, Eq)]
pub struct BlockingLock {
    pub holder: LockHolder,
    pub kind: LockKind,
}

#[derive(PartialEq, Eq)]
pub enum LockHolder {
    ThisProcess,
    Process(i32),
    Unknown,
}

#[derive(PartialEq, Eq)]
pub enum LockKind {
    Writes,
    Reads,
    Excludes,
}

pub fn blocking_lock(_path: &Path) -> Option<BlockingLock> {
    None
}

/// What our copy of SQLite keeps for the whole process.
pub struct Registry {
    pub(super) kept_liveness: Vec<KeptSign>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { kept_liveness: Vec::new() });

pub fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The system does not tell whether a process lives, so leases alone decide.
pub struct LivenessLock {
    pub number: i64,
}

impl LivenessLock {
    pub fn give(_device: u64, _inode: u64, _number: i64) -> Option<Self> {
        None
    }

    pub fn is_seen(_device: u64, _inode: u64, _number: i64) -> bool {
        true
    }

    pub fn is_any_seen(_device: u64, _inode: u64) -> bool {
        false
    }

    pub fn show_wait_to_renew(&self, _waits: bool) {}

    pub fn waits_to_renew(_device: u64, _inode: u64, _number: i64) -> bool {
        false
    }
}

pub fn rewrite_wal(_wal: &Path) -> Result<()> {
    Ok(())
}

/// There are no such locks, so chance decides which writer gets the lock.
pub struct MarkGuard;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    OccasionalWaits,
    SteadyWaits,
    Yields,
    AwaitsEnds,
}

impl MarkGuard {
    pub fn take(_device: u64, _inode: u64, _mark: Mark) -> Option<Self> {
        None
    }

    pub fn share(_device: u64, _inode: u64, _mark: Mark) -> Option<Self> {
        None
    }

    pub fn is_taken(_device: u64, _inode: u64, _mark: Mark) -> bool {
        false
    }
}
