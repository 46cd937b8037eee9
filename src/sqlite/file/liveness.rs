//! Liveness: how this process shows others that it lives, and finds out whether they do.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::locks::SignOfLife;
use super::{Database, Place};

impl Database {
    /// The lock by which other processes see that this one lives. `None` in memory, and where the system has no such
    /// locks.
    pub fn sign_of_life(&self) -> Option<Arc<SignOfLife>> {
        if let Place::Memory(_) = &self.place {
            return None;
        }
        let mut sign = self.sign.lock();
        if let Some(given) = &*sign {
            return given.clone();
        }
        let given = self.new_sign();
        *sign = Some(given.clone());
        given
    }

    /// A second one, which ends with its last owner, before the process does.
    pub fn new_sign(&self) -> Option<Arc<SignOfLife>> {
        if let Place::Memory(_) = &self.place {
            return None;
        }
        // Every number drawn takes six bytes in SQLite's record format.
        let number = (1 << 40) + (getrandom::u64().ok()? >> 24) as i64;
        SignOfLife::give(self.identity.0, self.identity.1, number).map(Arc::new)
    }

    /// Returns whether the process with this number lives. If that is unknown, it counts as alive.
    pub fn is_alive(&self, holder: i64) -> bool {
        match &self.place {
            Place::Memory(_) => true,
            Place::File(_) => SignOfLife::is_seen(self.identity.0, self.identity.1, holder),
        }
    }

    /// Shows other processes whether this one's heartbeat waits for the write lock.
    pub fn show_wait_to_renew(&self, waits: bool) {
        if self.waits_to_renew.swap(waits, Ordering::SeqCst) != waits
            && let Some(sign) = self.sign_of_life()
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
        match &self.place {
            Place::Memory(_) => false,
            Place::File(_) => SignOfLife::waits_to_renew(self.identity.0, self.identity.1, holder),
        }
    }
}
