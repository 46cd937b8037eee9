//! Waiting for work: a bell rung after each commit of this process that may have made an item claimable.

use std::sync::Condvar;
use std::time::Duration;

use crate::sync::{Mutex, wait};

/// Commits of other processes ring no bell, so nobody sleeps longer than this without looking.
pub const LONGEST_NAP: Duration = Duration::from_millis(50);

#[derive(Default)]
pub struct Bell {
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Default)]
struct State {
    count: u64,
    waiting: usize,
}

impl Bell {
    pub fn ring(&self) {
        let mut state = self.state.lock();
        state.count += 1;
        if state.waiting > 0 {
            self.rung.notify_all();
        }
    }

    /// What to compare with later: take it before looking for work.
    pub fn count(&self) -> u64 {
        self.state.lock().count
    }

    /// Sleeps until the bell has rung since `seen`, at most `limit`.
    pub fn wait(&self, seen: u64, limit: Duration) {
        let mut state = self.state.lock();
        if state.count == seen {
            state.waiting += 1;
            state = wait(&self.rung, state, Some(limit));
            state.waiting -= 1;
        }
    }
}
