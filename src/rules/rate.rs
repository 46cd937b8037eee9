//! The rate limit: at most `count` claims in any `per` milliseconds.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::model::Now;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    pub count: u32,
    pub per_ms: i64,
}

impl Rate {
    pub fn new(count: u32, per_ms: i64) -> Result<Self> {
        if count == 0 {
            return Err(Error::Invalid("Rate count must be at least 1; to stop a queue, pause it".into()));
        }
        if per_ms < 1 {
            return Err(Error::Invalid("Rate per must be at least a millisecond".into()));
        }
        Ok(Self { count, per_ms })
    }

    /// Returns the number of the claim that must be a period old before the next one. `last` is the latest claim's
    /// number.
    pub fn before(&self, last: i64) -> i64 {
        last.saturating_add(1).saturating_sub(i64::from(self.count))
    }

    /// Returns when the next claim is allowed, if not now. `earlier` is the time of the claim `count` before it. A time
    /// more than a period ahead comes from a wrong clock and delays nothing.
    pub fn wait(&self, earlier: Option<i64>, now: Now) -> Option<i64> {
        let free = earlier.filter(|at| at.saturating_sub(now.ms()) <= self.per_ms)?.saturating_add(self.per_ms);
        (free > now.ms()).then_some(free)
    }

    /// The latest time that `wait` can return.
    pub fn furthest(&self, now: Now) -> i64 {
        now.plus(self.per_ms.saturating_mul(2))
    }
}

/// The text is the Python expression.
impl std::fmt::Display for Rate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Rate({}, per={})", self.count, self.per_ms as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_waits_until_the_one_so_many_before_it_is_a_period_old() {
        let rate = Rate::new(2, 60_000).unwrap();
        let now = Now(1_000_000);
        assert_eq!(rate.wait(None, now), None);
        assert_eq!(rate.wait(Some(1_000_000), now), Some(1_060_000));
        assert_eq!(rate.wait(Some(940_001), now), Some(1_000_001));
        assert_eq!(rate.wait(Some(940_000), now), None);
    }

    #[test]
    fn a_clock_that_went_back_holds_nobody() {
        let rate = Rate::new(1, 1_000).unwrap();
        assert_eq!(rate.wait(Some(86_400_000), Now(5)), None);
        assert_eq!(rate.wait(Some(6), Now(5)), Some(1_006), "a small step back lets nobody slip through");
        assert_eq!(rate.wait(Some(1_005), Now(5)), Some(rate.furthest(Now(5))));
        assert_eq!(rate.wait(Some(1_006), Now(5)), None);
    }

    #[test]
    fn a_rate_of_nothing_is_refused() {
        assert!(Rate::new(0, 1_000).is_err() && Rate::new(1, 0).is_err());
    }
}
