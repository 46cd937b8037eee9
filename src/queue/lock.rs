//! Named locks: the right to do something alone, on the rules of the worker lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::worker::{Hold, drop_lease};
use super::{LONGEST_NAME, Queue};
use crate::error::{Error, Result};
use crate::heartbeat::Beat;
use crate::lease::Record;

/// A lock in somebody's hands, renewed by a native thread until it is given back or dropped.
pub struct Lock {
    key: String,
    hold: Hold,
    lost: Arc<AtomicBool>,
    _beat: Beat,
}

impl Lock {
    /// Whether somebody else has taken it over.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }
}

impl Queue {
    /// Takes a lock of the file by its name; `None` while somebody holds it live.
    pub fn try_lock(&self, name: &str, ttl_ms: i64) -> Result<Option<Lock>> {
        let key = lock_key(name)?;
        let hold = Hold::new(self, ttl_ms)?;
        if !self.write_lightly(|tx| self.take_lease(tx, &key, &hold))? {
            return Ok(None);
        }
        let lost = Arc::default();
        let beat = self.keep_lease(key.clone(), &hold, Arc::clone(&lost))?;
        Ok(Some(Lock { key, hold, lost, _beat: beat }))
    }

    /// Gives a lock back if it is still ours.
    pub fn unlock(&self, lock: &Lock) -> Result<bool> {
        self.write_lightly(|tx| drop_lease(tx, &lock.key, &lock.hold))
    }

    /// Who holds a lock live.
    pub fn lock_holder(&self, name: &str) -> Result<Option<Record>> {
        self.lease_holder(&lock_key(name)?)
    }
}

fn lock_key(name: &str) -> Result<String> {
    if name.is_empty() || name.len() > LONGEST_NAME || name.contains('\0') {
        return Err(Error::Invalid(format!("a lock's name has 1 to {LONGEST_NAME} bytes and no NUL, not {name:?}")));
    }
    Ok(format!("lock:{name}"))
}
