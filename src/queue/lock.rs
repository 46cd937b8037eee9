//! Named locks: exclusive rights under the rules of the worker lease.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::Queue;
use super::lease::{LeaseHold, drop_lease};
use super::run::Verb;
use crate::error::Result;
use crate::heartbeat::Heartbeat;
use crate::process;
use crate::rules::lease::LeaseRecord;
use crate::rules::name;
use crate::sync::Mutex;

/// A held lock, renewed by a native thread until it is released or dropped.
pub struct Lock {
    key: String,
    hold: LeaseHold,
    lost: Arc<AtomicBool>,
    /// `None` once the lock was released.
    beat: Mutex<Option<Heartbeat>>,
    generation: u64,
}

impl Lock {
    /// Whether another holder has acquired the lock since.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// Whether the lock was acquired and not released. A forked child holds none of its parent's locks.
    pub fn is_held(&self) -> bool {
        self.is_of_this_process() && self.beat.lock().is_some()
    }

    pub fn is_of_this_process(&self) -> bool {
        self.generation == process::generation()
    }
}

impl Queue {
    /// Acquires a lock of the file by name; `None` while it has a live holder.
    pub fn try_lock(&self, name: &str, ttl_ms: i64) -> Result<Option<Arc<Lock>>> {
        let key = lock_key(name)?;
        // Waiting callers try often. Reading first keeps them from taking the write lock while the named lock is held.
        if self.lease_holder(&key)?.is_some() {
            return Ok(None);
        }
        let session = self.session()?;
        let hold = LeaseHold::new(self, ttl_ms)?;
        if !self.run(Verb::Lease, |tx| self.take_lease(tx, &key, &hold))? {
            return Ok(None);
        }
        let lost = Arc::default();
        let beat = Mutex::new(Some(self.keep_lease(key.clone(), &hold, Arc::clone(&lost))?));
        let lock = Arc::new(Lock { key, hold, lost, beat, generation: process::generation() });
        let mut locks = session.locks.lock();
        locks.retain(|lock| lock.strong_count() > 0);
        locks.push(Arc::downgrade(&lock));
        Ok(Some(lock))
    }

    /// Releases a lock if it is still ours.
    pub fn unlock(&self, lock: &Lock) -> Result<bool> {
        if !lock.is_held() {
            return Ok(false);
        }
        let released = self.run(Verb::Lease, |tx| drop_lease(tx, &lock.key, &lock.hold))?;
        lock.beat.lock().take();
        Ok(released)
    }

    /// Releases all locks of this object before it is closed. A lock that cannot be released now is no longer renewed.
    pub(super) fn unlock_all(&self) -> Result<()> {
        let held: Vec<_> = self.session()?.locks.lock().iter().filter_map(Weak::upgrade).collect();
        let released = held.iter().try_for_each(|lock| self.unlock(lock).map(drop));
        held.iter().for_each(|lock| drop(lock.beat.lock().take()));
        released
    }

    /// Returns the live holder of a lock.
    pub fn lock_holder(&self, name: &str) -> Result<Option<LeaseRecord>> {
        self.lease_holder(&lock_key(name)?)
    }
}

fn lock_key(name: &str) -> Result<String> {
    name::check("a lock's name", name)?;
    Ok(format!("lock:{name}"))
}
