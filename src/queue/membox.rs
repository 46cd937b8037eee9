//! The worker lease as membox's own module keeps it: all of a process is one worker, whoever asks says how long a heartbeat
//! lives, and taking a lease over gives back everything that is in process.

use super::Queue;
use super::lease::{LeaseHold, this_process};
use super::run::{Change, Verb};
use crate::error::Result;
use crate::model::Event;
use crate::rules::lease::{self, Record};
use crate::rules::outcome::Ending;

impl Queue {
    /// Takes the lease unless another process holds it live.
    pub fn take_over_worker_lease(&self, ttl_ms: i64) -> Result<bool> {
        let session = self.session()?;
        let hold = LeaseHold::of_membox(self, ttl_ms)?;
        let taken = self.run(Verb::Lease, |tx| {
            let key = lease::key(self.name());
            if let Some(stored) = tx.worker_lease(&key)? {
                if self.live_lease(&stored, ttl_ms, tx)?.is_some_and(|record| !record.is_of(this_process())) {
                    return Ok(false);
                }
                self.give_back_everything(tx)?;
            }
            tx.clear_setting(&self.announcement_key())?;
            tx.set_worker_lease(&key, &hold.record(tx.now()).render())?;
            tx.tell(Event::Changed);
            Ok(true)
        })?;
        if taken {
            *session.worker_lease.lock() = Some(hold);
        }
        Ok(taken)
    }

    /// Renews the heartbeat, unless the lease is another process's. Says whether it did.
    pub fn refresh_process_lease(&self, ttl_ms: i64) -> Result<bool> {
        let session = self.session()?;
        let held = self.worker_hold()?;
        let hold = if let Some(hold) = held { hold } else { LeaseHold::of_membox(self, ttl_ms)? };
        let refreshed = self.run(Verb::Lease, |tx| {
            let key = lease::key(self.name());
            let is_free = tx.worker_lease(&key)?.is_none_or(|stored| is_ours_or_unreadable(&stored));
            if is_free {
                tx.set_worker_lease(&key, &hold.record(tx.now()).render())?;
            }
            Ok(is_free)
        })?;
        if refreshed {
            *session.worker_lease.lock() = Some(hold);
        }
        Ok(refreshed)
    }

    /// Gives the lease back, unless it is another process's. Says whether there was one to give back.
    pub fn release_process_lease(&self) -> Result<bool> {
        let session = self.session()?;
        let released = self.run(Verb::Lease, |tx| {
            let key = lease::key(self.name());
            let is_ours = tx.worker_lease(&key)?.is_some_and(|stored| is_ours_or_unreadable(&stored));
            if is_ours {
                tx.clear_worker_lease(&key)?;
            }
            Ok(is_ours)
        })?;
        session.worker_lease.lock().take();
        Ok(released)
    }

    /// Whether anybody's heartbeat is younger than that, and its process not known to be dead.
    pub fn is_worker_younger_than(&self, ttl_ms: i64) -> Result<bool> {
        let store = &self.session()?.store;
        let stored = self.read(|view| view.worker_lease(&lease::key(self.name())))?;
        let now = self.options.clock.now();
        Ok(lease::live(stored.as_deref(), ttl_ms, now, |holder| store.is_alive(holder)).is_some())
    }

    fn live_lease(&self, stored: &str, ttl_ms: i64, tx: &Change) -> Result<Option<Record>> {
        let store = &self.session()?.store;
        Ok(lease::live(Some(stored), ttl_ms, tx.now(), |holder| store.is_alive(holder)))
    }

    /// What a dead process held counts as lost, so that an item that kills its workers comes to an end. Everything else
    /// goes back uncounted, however fresh its claim is.
    fn give_back_everything(&self, tx: &Change) -> Result<()> {
        self.refresh_settings_if_readable(tx)?;
        while self.reclaim_from_dead(tx)? {}
        for claim in tx.in_progress(self.name())? {
            self.end(tx, &claim, Ending::given_back())?;
        }
        Ok(())
    }
}

fn is_ours_or_unreadable(stored: &str) -> bool {
    Record::parse(stored).is_none_or(|record| record.is_of(this_process()))
}
