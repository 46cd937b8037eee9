//! The retry policy: when a failed item becomes pending again by itself.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::model::{LATEST_MS, millis};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    Exponential,
    Linear,
}

/// When a failed item becomes pending again by itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    pub max: u32,
    pub base: f64,
    pub factor: f64,
    pub cap: f64,
    pub jitter: f64,
    pub kind: Backoff,
}

/// The text is the Python expression.
impl std::fmt::Display for Retry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { max, base, factor, cap, jitter, kind } = self;
        let kind = kind.as_str();
        write!(formatter, "Retry(max={max}, base={base}, factor={factor}, cap={cap}, jitter={jitter}, kind='{kind}')")
    }
}

impl Backoff {
    pub fn as_str(self) -> &'static str {
        match self {
            Backoff::Exponential => "exponential",
            Backoff::Linear => "linear",
        }
    }
}

impl Retry {
    pub fn new(max: u32, base: f64, factor: f64, cap: f64, jitter: f64, kind: Backoff) -> Result<Self> {
        millis("Retry base", base)?;
        millis("Retry cap", cap)?;
        if max == 0 {
            return Err(Error::Invalid(
                "Retry max must be at least 1; for no automatic retries give no policy, and remove a stored one with \
                 configure(retry=None)"
                    .into(),
            ));
        }
        if !factor.is_finite() || factor < 1.0 {
            return Err(Error::Invalid(format!("Retry factor must be a finite number of at least 1, not {factor}")));
        }
        if !(0.0..=1.0).contains(&jitter) {
            return Err(Error::Invalid(format!("Retry jitter must be between 0 and 1, not {jitter}")));
        }
        Ok(Self { max, base, factor, cap, jitter, kind })
    }

    /// The delay after the given failure (the first is 1), in milliseconds.
    pub fn delay(&self, failure: u32, fraction: f64) -> i64 {
        let step = f64::from(failure.max(1));
        let pause = match self.kind {
            Backoff::Exponential => self.base * self.factor.powf(step - 1.0),
            Backoff::Linear => self.base * step,
        };
        // Zero times an overflowed power is NaN; with a base of zero the delay is zero.
        let pause = if pause.is_nan() { 0.0 } else { pause };
        let spread = 1.0 + self.jitter * (2.0 * fraction - 1.0);
        let seconds = (pause.min(self.cap) * spread).min(self.cap).clamp(0.0, LATEST_MS as f64 / 1000.0);
        (seconds * 1000.0).round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(kind: Backoff) -> Retry {
        Retry::new(3, 30.0, 2.0, 100.0, 0.0, kind).unwrap()
    }

    #[test]
    fn backoff_grows_as_its_kind_says_and_stops_at_the_cap() {
        let exponential = policy(Backoff::Exponential);
        assert_eq!([1, 2, 3, 4000].map(|n| exponential.delay(n, 0.5)), [30_000, 60_000, 100_000, 100_000]);
        let linear = policy(Backoff::Linear);
        assert_eq!([1, 2, 3, 4].map(|n| linear.delay(n, 0.5)), [30_000, 60_000, 90_000, 100_000]);
    }

    #[test]
    fn jitter_spreads_to_both_sides() {
        let policy = Retry { jitter: 0.1, ..policy(Backoff::Linear) };
        assert_eq!([0.0, 0.5, 1.0].map(|fraction| policy.delay(1, fraction)), [27_000, 30_000, 33_000]);
        assert_eq!(policy.delay(9, 1.0), 100_000, "never beyond the cap");
    }
}
