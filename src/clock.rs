//! The clock, which tests can replace. Every write uses a time read inside its own transaction and passed down as a
//! value.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::model::{LATEST_MS, Now};

const REAL: i64 = i64::MIN;

/// A source of time. Clones share one setting.
#[derive(Clone, Debug)]
pub struct Clock(Arc<AtomicI64>);

impl Clock {
    /// The wall clock, until [`Clock::set`] replaces it.
    pub fn system() -> Self {
        Self(Arc::new(AtomicI64::new(REAL)))
    }

    /// Whether both are the same clock.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Stops the clock at `ms` since 1970, or lets it run again.
    pub fn set(&self, ms: Option<i64>) {
        self.0.store(ms.unwrap_or(REAL), Ordering::SeqCst);
    }

    pub fn now(&self) -> Now {
        match self.0.load(Ordering::SeqCst) {
            REAL => Now(wall_ms()),
            ms => Now(ms),
        }
    }
}

/// A clock before 1970 reads as 1970: leases are only compared with each other.
fn wall_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(LATEST_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_clock_is_seen_by_its_clones() {
        let clock = Clock::system();
        let clone = clock.clone();
        clock.set(Some(5));
        assert_eq!(clone.now(), Now(5));
        clock.set(None);
        assert!(clone.now().ms() > 5);
    }
}
