//! The worker lease: the right to be the one worker that drains a queue.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::Queue;
use super::run::{Change, Verb};
use crate::error::Result;
use crate::heartbeat::Heartbeat;
use crate::model::Now;
use crate::process;
use crate::random;
use crate::rules::lease::{self, DEFAULT_TTL_MS, LeaseRecord};
use crate::store::{Liveness, Renewal, Renews, Scope, View};

/// A lease that this object holds: the worker lease, or a named lock.
#[derive(Clone)]
pub(super) struct LeaseHold {
    owner: Arc<str>,
    pub(super) ttl_ms: i64,
    /// Whether the record contains the TTL. A record of membox does not: there, the process that reads it decides.
    says_ttl: bool,
    /// Each lease has its own liveness lock. If the release cannot be written, dropping the lock still ends the lease.
    liveness: Option<Arc<dyn Liveness>>,
}

/// Who wrote a record, for people to read.
pub(super) fn this_process() -> lease::LeaseWriter {
    lease::LeaseWriter { pid: std::process::id(), hostname: process::hostname() }
}

impl LeaseHold {
    pub(super) fn new(queue: &Queue, ttl_ms: i64) -> Result<Self> {
        let owner = format!("{:016x}{:016x}", random::number()?, random::number()?).into();
        Ok(Self { owner, ttl_ms, says_ttl: true, liveness: queue.session()?.store.new_liveness() })
    }

    pub(super) fn of_membox(queue: &Queue, ttl_ms: i64) -> Result<Self> {
        Ok(Self { says_ttl: false, ..Self::new(queue, ttl_ms)? })
    }

    /// The token by which its record is known.
    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    pub(super) fn record(&self, now: Now) -> LeaseRecord {
        let record = LeaseRecord::new(
            this_process(),
            &self.owner,
            self.ttl_ms,
            self.liveness.as_ref().map(|liveness| liveness.number()),
            now,
        );
        if self.says_ttl { record } else { LeaseRecord { ttl: None, ..record } }
    }
}

impl Queue {
    /// Acquires the lease if it is free, expired, unreadable or held by a dead process. A live lease is refused, even
    /// this object's own.
    pub fn acquire_worker_lease(&self, ttl_ms: i64) -> Result<bool> {
        let session = self.session()?;
        let hold = LeaseHold::new(self, ttl_ms)?;
        let acquired = self.run(Verb::Lease, |tx| {
            // The announced worker has started, or will find that another worker holds the lease.
            tx.lock(Scope::Settings(self.name()))?;
            tx.clear_setting(&self.announcement_key())?;
            self.take_lease(tx, &lease::key(self.name()), &hold)
        })?;
        if acquired {
            *session.worker_lease.lock() = Some(hold);
        }
        Ok(acquired)
    }

    /// Announces that a worker is starting and returns the announcement's name. Returns `None` while another worker is
    /// running or starting.
    pub fn announce_worker(&self, ttl_ms: i64) -> Result<Option<String>> {
        let name = format!("{:016x}{:016x}", random::number()?, random::number()?);
        let store = self.session()?.store.clone();
        self.run(Verb::Lease, |tx| {
            self.remove_dead_loops(tx)?;
            let key = self.announcement_key();
            tx.lock(Scope::Settings(self.name()))?;
            tx.lock(Scope::Lease(&lease::key(self.name())))?;
            let announced = tx.setting(&key)?;
            let is_announced =
                lease::live(announced.as_deref(), DEFAULT_TTL_MS, tx.now(), |holder| store.is_alive(holder));
            if is_announced.is_some() || self.is_worker_alive_in(tx.view())? {
                return Ok(None);
            }
            // The record names no liveness lock, because the announcing process may end before the worker starts.
            tx.set_setting(&key, &LeaseRecord::new(this_process(), &name, ttl_ms, None, tx.now()).render())?;
            Ok(Some(name))
        })
    }

    /// Confirms that the announced worker runs, though it has not begun to work. The announcement then lasts while that
    /// process lives, at most `ttl_ms`. Returns whether the announcement still stood.
    pub fn confirm_worker(&self, name: &str, ttl_ms: i64) -> Result<bool> {
        let liveness = self.session()?.store.liveness();
        self.run(Verb::Lease, |tx| {
            let key = self.announcement_key();
            tx.lock(Scope::Settings(self.name()))?;
            let stands = tx.setting(&key)?.is_some_and(|stored| stored.contains(name));
            if stands {
                let holder = liveness.as_ref().map(|liveness| liveness.number());
                tx.set_setting(&key, &LeaseRecord::new(this_process(), name, ttl_ms, holder, tx.now()).render())?;
            }
            Ok(stands)
        })
    }

    /// Withdraws an announcement. Returns whether it still stood.
    pub fn withdraw_worker(&self, name: &str) -> Result<bool> {
        self.run(Verb::Lease, |tx| {
            let key = self.announcement_key();
            tx.lock(Scope::Settings(self.name()))?;
            let stands = tx.setting(&key)?.is_some_and(|stored| stored.contains(name));
            if stands { tx.clear_setting(&key) } else { Ok(false) }
        })
    }

    pub(super) fn announcement_key(&self) -> String {
        format!("worker_announced:{}", self.name())
    }

    /// Renews the lease if this object still holds it.
    pub fn refresh_worker_lease(&self) -> Result<bool> {
        let Some(hold) = self.worker_hold()? else { return Ok(false) };
        self.run(Verb::Lease, |tx| renew(tx, &lease::key(self.name()), &hold))
    }

    /// Releases the lease if this object still holds it.
    pub fn release_worker_lease(&self) -> Result<bool> {
        let session = self.session()?;
        let Some(hold) = self.worker_hold()? else { return Ok(false) };
        let released = self.run(Verb::Lease, |tx| self.drop_worker_lease(tx, &hold))?;
        // Cleared only after the write, so that a release that failed can be tried again.
        session.worker_lease.lock().take();
        Ok(released)
    }

    /// Returns the live holder of a lease.
    pub(super) fn lease_holder(&self, key: &str) -> Result<Option<LeaseRecord>> {
        self.read(|view| self.lease_holder_in(view, key))
    }

    pub(super) fn lease_holder_in(&self, view: &dyn View, key: &str) -> Result<Option<LeaseRecord>> {
        let store = &self.session()?.store;
        let stored = view.worker_lease(key)?;
        Ok(lease::live(stored.as_deref(), DEFAULT_TTL_MS, view.now(), |holder| store.is_alive(holder)))
    }

    /// Acquires a lease if it is free, expired, unreadable or held by a dead process.
    pub(super) fn take_lease(&self, tx: &Change, key: &str, hold: &LeaseHold) -> Result<bool> {
        let store = &self.session()?.store;
        tx.lock(Scope::Lease(key))?;
        let stored = tx.worker_lease(key)?;
        let holder = lease::live(stored.as_deref(), hold.ttl_ms, tx.now(), |holder| store.is_alive(holder));
        if holder.is_none() {
            tx.set_worker_lease(key, &hold.record(tx.now()).render())?;
        }
        Ok(holder.is_none())
    }

    /// Called after the transaction that found nothing left has removed the record.
    pub(super) fn forget_worker_lease(&self) {
        if let Some(session) = &*self.session.load() {
            session.worker_lease.lock().take();
        }
    }

    pub(super) fn worker_hold(&self) -> Result<Option<LeaseHold>> {
        Ok(self.session()?.worker_lease.lock().clone())
    }

    pub(super) fn drop_worker_lease(&self, tx: &Change, hold: &LeaseHold) -> Result<bool> {
        drop_lease(tx, &lease::key(self.name()), hold)
    }

    /// Renews the worker lease from a native thread until the `Heartbeat` is dropped.
    pub(super) fn keep_worker_lease(&self, hold: &LeaseHold) -> Result<Heartbeat> {
        self.keep_lease(lease::key(self.name()), hold, Arc::default())
    }

    pub(super) fn keep_lease(&self, key: String, hold: &LeaseHold, lost: Arc<AtomicBool>) -> Result<Heartbeat> {
        let (kept, ttl_ms) = (hold.clone(), hold.ttl_ms);
        let renewal = Box::new(move |now| Renewal {
            what: Renews::Lease { key: key.clone(), record: kept.record(now) },
            lease_ms: ttl_ms,
        });
        let store = self.session()?.store.clone();
        Heartbeat::start(store, self.options.clock.clone(), ttl_ms, Duration::ZERO, None, lost, renewal)
    }
}

/// Whether the record carries our token. An expired lease that no other process has acquired is still ours.
pub(super) fn is_ours(tx: &Change, key: &str, hold: &LeaseHold) -> Result<bool> {
    tx.lock(Scope::Lease(key))?;
    // The token is random and occurs nowhere else, so the record need not be parsed.
    Ok(tx.worker_lease(key)?.is_some_and(|stored| stored.contains(&*hold.owner)))
}

pub(super) fn renew(tx: &Change, key: &str, hold: &LeaseHold) -> Result<bool> {
    let ours = is_ours(tx, key, hold)?;
    if ours {
        tx.set_worker_lease(key, &hold.record(tx.now()).render())?;
    }
    Ok(ours)
}

pub(super) fn drop_lease(tx: &Change, key: &str, hold: &LeaseHold) -> Result<bool> {
    let ours = is_ours(tx, key, hold)?;
    if ours {
        tx.clear_worker_lease(key)?;
    }
    Ok(ours)
}
