//! Waiting for work: a bell rung after each commit of this process that may have made an item claimable.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Commits of other processes ring no bell, so nobody sleeps longer than this without looking.
pub const LONGEST_NAP: Duration = Duration::from_millis(50);

#[derive(Default)]
pub struct Bell {
    rung: Mutex<u64>,
    changed: Condvar,
}

impl Bell {
    pub fn ring(&self) {
        *self.rung.lock() += 1;
        self.changed.notify_all();
    }

    /// What to compare with later: take it before looking for work.
    pub fn count(&self) -> u64 {
        *self.rung.lock()
    }

    /// Sleeps until the bell has rung since `seen`, at most `limit`.
    pub fn wait(&self, seen: u64, limit: Duration) {
        let mut rung = self.rung.lock();
        if *rung == seen {
            self.changed.wait_for(&mut rung, limit);
        }
    }
}
