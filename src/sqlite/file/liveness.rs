//! Liveness: how this process shows others that it lives, and finds out whether they do.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::super::locks::{LivenessLock, Mark, MarkGuard};
use super::{Database, Location};
use crate::process;
use crate::store::Liveness;
use crate::sync::Mutex;

/// The numbers that are alive in a database in memory, which only this process can see.
pub type LiveInMemory = Arc<Mutex<HashSet<i64>>>;

/// Liveness in a database in memory.
pub struct SignInMemory {
    number: i64,
    live: LiveInMemory,
    generation: u64,
}

impl Liveness for SignInMemory {
    fn number(&self) -> i64 {
        self.number
    }

    fn keep_for(self: Arc<Self>, _time: Duration) {}
}

impl Drop for SignInMemory {
    fn drop(&mut self) {
        // In a forked child, a thread that does not exist there may have held the lock.
        if self.generation == process::generation() {
            self.live.lock().remove(&self.number);
        }
    }
}

impl Database {
    /// The lock by which other processes see that this one lives. `None` in memory, and where the system has no such
    /// locks.
    pub fn liveness_lock(&self) -> Option<Arc<LivenessLock>> {
        if let Location::Memory(_) = &self.location {
            return None;
        }
        let mut sign = self.sign.lock();
        if let Some(given) = &*sign {
            return given.clone();
        }
        let given = self.new_liveness_lock();
        *sign = Some(given.clone());
        given
    }

    /// A second one, which ends with its last owner, before the process does.
    pub fn new_liveness_lock(&self) -> Option<Arc<LivenessLock>> {
        if let Location::Memory(_) = &self.location {
            return None;
        }
        LivenessLock::give(self.identity.0, self.identity.1, new_number()?).map(Arc::new)
    }

    /// The same for all places: in memory, where no lock is needed, too.
    pub fn new_liveness(&self) -> Option<Arc<dyn Liveness>> {
        let Location::Memory(_) = &self.location else { return Some(self.new_liveness_lock()?) };
        let number = new_number()?;
        self.live_in_memory.lock().insert(number);
        let live = self.live_in_memory.clone();
        Some(Arc::new(SignInMemory { number, live, generation: process::generation() }))
    }

    /// Returns whether the process with this number lives. If that is unknown, it counts as alive.
    pub fn is_alive(&self, holder: i64) -> bool {
        match &self.location {
            Location::Memory(_) => self.live_in_memory.lock().contains(&holder),
            Location::File(_) => LivenessLock::is_seen(self.identity.0, self.identity.1, holder),
        }
    }

    /// One more or one fewer caller of this process waits for the end of an item.
    pub fn count_awaited_end(&self, is_more: bool) {
        let mut awaited = self.awaited_ends.lock();
        awaited.0 = if is_more { awaited.0 + 1 } else { awaited.0.saturating_sub(1) };
        if awaited.0 == 0 {
            awaited.1 = None;
        } else if awaited.1.is_none() && matches!(self.location, Location::File(_)) {
            awaited.1 = MarkGuard::share(self.identity.0, self.identity.1, Mark::AwaitsEnds);
        }
    }

    /// Returns whether a caller of any process waits for the end of an item.
    pub fn are_ends_awaited(&self) -> bool {
        self.awaited_ends.lock().0 > 0
            || (matches!(self.location, Location::File(_))
                && MarkGuard::is_taken(self.identity.0, self.identity.1, Mark::AwaitsEnds))
    }

    /// Shows other processes whether this one's heartbeat waits for the write lock.
    pub fn show_wait_to_renew(&self, waits: bool) {
        if self.waits_to_renew.swap(waits, Ordering::SeqCst) != waits
            && let Some(sign) = self.liveness_lock()
        {
            sign.show_wait_to_renew(waits);
        }
    }

    /// Returns whether this process's heartbeat waits for the write lock.
    pub fn waits_to_renew_here(&self) -> bool {
        self.waits_to_renew.load(Ordering::SeqCst)
    }

    /// Returns whether the process with this number waits to renew its claims.
    pub fn waits_to_renew(&self, holder: i64) -> bool {
        match &self.location {
            Location::Memory(_) => false,
            Location::File(_) => LivenessLock::waits_to_renew(self.identity.0, self.identity.1, holder),
        }
    }
}

/// Every number drawn takes six bytes in SQLite's record format.
fn new_number() -> Option<i64> {
    Some((1 << 40) + (getrandom::u64().ok()? >> 24) as i64)
}
