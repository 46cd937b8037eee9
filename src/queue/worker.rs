//! The worker lease: the right to be the one worker that drains a queue.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{Queue, random};
use crate::error::Result;
use crate::heartbeat::Beat;
use crate::lease::{self, DEFAULT_TTL_MS, Record};
use crate::sqlite::Tx;

/// A lease in this object's hands: the worker lease, or a named lock.
#[derive(Clone)]
pub(super) struct Hold {
    owner: Arc<str>,
    pub(super) ttl_ms: i64,
}

impl Hold {
    pub(super) fn new(ttl_ms: i64) -> Result<Self> {
        Ok(Self { owner: format!("{:016x}{:016x}", random()?, random()?).into(), ttl_ms })
    }
}

impl Queue {
    /// Takes the lease if it is free, expired or unreadable. A live one is refused, also this object's own.
    pub fn acquire_worker_lease(&self, ttl_ms: i64) -> Result<bool> {
        let session = self.session()?;
        let hold = Hold::new(ttl_ms)?;
        let acquired = self.write_lightly(|tx| take(tx, &lease::key(self.name()), &hold))?;
        if acquired {
            *session.worker_lease.lock() = Some(hold);
        }
        Ok(acquired)
    }

    /// Renews the lease if it is still this object's.
    pub fn refresh_worker_lease(&self) -> Result<bool> {
        let Some(hold) = self.worker_hold()? else { return Ok(false) };
        self.write_lightly(|tx| renew(tx, &lease::key(self.name()), &hold))
    }

    /// Gives the lease back if it is still this object's.
    pub fn release_worker_lease(&self) -> Result<bool> {
        let session = self.session()?;
        let Some(hold) = self.worker_hold()? else { return Ok(false) };
        let released = self.write_lightly(|tx| self.drop_worker_lease(tx, &hold))?;
        // Only now: a release that failed can be tried again.
        session.worker_lease.lock().take();
        Ok(released)
    }

    pub fn worker_is_alive(&self) -> Result<bool> {
        let stored = self.session()?.database.worker_lease(&lease::key(self.name()))?;
        Ok(lease::live(stored.as_deref(), DEFAULT_TTL_MS, self.options.clock.now()).is_some())
    }

    /// After the record was removed by the transaction that found nothing left.
    pub(super) fn forget_worker_lease(&self) {
        if let Some(session) = &*self.session.load() {
            session.worker_lease.lock().take();
        }
    }

    pub(super) fn worker_hold(&self) -> Result<Option<Hold>> {
        Ok(self.session()?.worker_lease.lock().clone())
    }

    pub(super) fn drop_worker_lease(&self, tx: &Tx, hold: &Hold) -> Result<bool> {
        drop_lease(tx, &lease::key(self.name()), hold)
    }

    /// Renews the worker lease from a native thread until the beat is dropped.
    pub(super) fn keep_worker_lease(&self, hold: &Hold) -> Result<Beat> {
        self.keep_lease(lease::key(self.name()), hold, Arc::default())
    }

    pub(super) fn keep_lease(&self, key: String, hold: &Hold, lost: Arc<AtomicBool>) -> Result<Beat> {
        let kept = hold.clone();
        let renew = Box::new(move |tx: &Tx| renew(tx, &key, &kept));
        let database = self.session()?.database.clone();
        Beat::start(database, self.options.clock.clone(), hold.ttl_ms, Duration::ZERO, lost, renew)
    }
}

/// Takes a lease if it is free, expired or unreadable.
pub(super) fn take(tx: &Tx, key: &str, hold: &Hold) -> Result<bool> {
    let is_free = lease::live(tx.worker_lease(key)?.as_deref(), hold.ttl_ms, tx.now()).is_none();
    if is_free {
        tx.set_worker_lease(key, &Record::new(&hold.owner, hold.ttl_ms, tx.now()).render())?;
    }
    Ok(is_free)
}

/// Whether the record carries our token. A lease that ran out but that nobody took is still ours.
pub(super) fn is_ours(tx: &Tx, key: &str, hold: &Hold) -> Result<bool> {
    let stored = tx.worker_lease(key)?;
    let record = stored.and_then(|text| serde_json::from_str::<Record>(&text).ok());
    Ok(record.is_some_and(|record| record.is_owned_by(&hold.owner)))
}

pub(super) fn renew(tx: &Tx, key: &str, hold: &Hold) -> Result<bool> {
    let ours = is_ours(tx, key, hold)?;
    if ours {
        tx.set_worker_lease(key, &Record::new(&hold.owner, hold.ttl_ms, tx.now()).render())?;
    }
    Ok(ours)
}

pub(super) fn drop_lease(tx: &Tx, key: &str, hold: &Hold) -> Result<bool> {
    let ours = is_ours(tx, key, hold)?;
    if ours {
        tx.clear_worker_lease(key)?;
    }
    Ok(ours)
}
