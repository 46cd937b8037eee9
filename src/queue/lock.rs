//! Named locks: the right to do something alone, on the rules of the worker lease.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::Queue;
use super::lease::{LeaseHold, drop_lease};
use super::run::Verb;
use crate::error::Result;
use crate::heartbeat::Heartbeat;
use crate::process;
use crate::rules::lease::Record;
use crate::rules::name;
use crate::sync::Mutex;

/// A lock in somebody's slots, renewed by a native thread until it is given back or dropped.
pub struct Lock {
    key: String,
    hold: LeaseHold,
    lost: Arc<AtomicBool>,
    /// `None` once it was given back.
    beat: Mutex<Option<Heartbeat>>,
    generation: u64,
}

impl Lock {
    /// Whether somebody else has taken it over.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// Whether it was taken and not given back. A forked child has nothing of its parent's.
    pub fn is_held(&self) -> bool {
        self.is_of_this_process() && self.beat.lock().is_some()
    }

    pub fn is_of_this_process(&self) -> bool {
        self.generation == process::generation()
    }
}

impl Queue {
    /// Takes a lock of the file by its name; `None` while somebody holds it live.
    pub fn try_lock(&self, name: &str, ttl_ms: i64) -> Result<Option<Arc<Lock>>> {
        let key = lock_key(name)?;
        // Those who wait ask often, and need not keep others from writing while it is held.
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

    /// Gives a lock back if it is still ours.
    pub fn unlock(&self, lock: &Lock) -> Result<bool> {
        if !lock.is_held() {
            return Ok(false);
        }
        let released = self.run(Verb::Lease, |tx| drop_lease(tx, &lock.key, &lock.hold))?;
        lock.beat.lock().take();
        Ok(released)
    }

    /// Gives back what this object holds; it is about to be closed. What cannot be given back now is not renewed.
    pub(super) fn unlock_all(&self) -> Result<()> {
        let held: Vec<_> = self.session()?.locks.lock().iter().filter_map(Weak::upgrade).collect();
        let released = held.iter().try_for_each(|lock| self.unlock(lock).map(drop));
        held.iter().for_each(|lock| drop(lock.beat.lock().take()));
        released
    }

    /// Who holds a lock live.
    pub fn lock_holder(&self, name: &str) -> Result<Option<Record>> {
        self.lease_holder(&lock_key(name)?)
    }
}

fn lock_key(name: &str) -> Result<String> {
    name::check("a lock's name", name)?;
    Ok(format!("lock:{name}"))
}
