//! Moments and durations: one reading of the clock, and the text forms of times.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::error::{Error, Result};

/// The latest moment that every time zone can represent: shortly before the end of the year 9999.
pub const LATEST_MS: i64 = 253_402_207_200_000;

/// The beginning of the year 1, the earliest time that is written.
const EARLIEST_MS: i64 = -62_135_596_800_000;

/// One reading of the clock: milliseconds for machines, text for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now(pub i64);

impl Now {
    pub fn ms(self) -> i64 {
        self.0
    }

    /// The time `ms` from now, limited to the calendar.
    pub fn plus(self, ms: i64) -> i64 {
        self.0.saturating_add(ms).min(LATEST_MS)
    }

    /// `YYYY-MM-DD HH:MM:SS.mmm`, UTC: the form of the table's text columns.
    pub fn text(self) -> String {
        civil(self.0).strftime("%Y-%m-%d %H:%M:%S.%3f").to_string()
    }

    /// `YYYY-MM-DDTHH:MM:SS.mmm+00:00`: the form of the worker lease's heartbeat.
    pub fn iso(self) -> String {
        civil(self.0).strftime("%Y-%m-%dT%H:%M:%S.%3f+00:00").to_string()
    }
}

fn civil(ms: i64) -> DateTime {
    let timestamp = Timestamp::from_millisecond(ms.clamp(EARLIEST_MS, LATEST_MS)).unwrap_or(Timestamp::UNIX_EPOCH);
    TimeZone::UTC.to_datetime(timestamp)
}

/// Parses a timestamp written by us, by SQLite's `datetime()` or in ISO 8601. Without an offset it is UTC.
pub fn parse_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(timestamp.as_millisecond());
    }
    let civil: DateTime = text.parse().ok()?;
    Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// Converts seconds to whole milliseconds. The error explains what is wrong with the value.
pub fn millis(what: &str, seconds: f64) -> Result<i64> {
    if !seconds.is_finite() || seconds < 0.0 {
        return Err(Error::Invalid(format!("{what} must be a finite number of seconds, zero or more, not {seconds}")));
    }
    if seconds > LATEST_MS as f64 / 1000.0 {
        return Err(Error::Invalid(format!("{what} of {seconds} seconds reaches beyond the year 9999")));
    }
    Ok((seconds * 1000.0).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_parse_are_inverse_to_the_millisecond() {
        for ms in [EARLIEST_MS, -1, 0, 1, 999, 1_781_431_200_123, LATEST_MS] {
            assert_eq!(parse_ms(&Now(ms).text()), Some(ms));
            assert_eq!(parse_ms(&Now(ms).iso()), Some(ms));
        }
        assert_eq!(Now(1_781_431_200_123).text(), "2026-06-14 10:00:00.123");
    }

    #[test]
    fn other_spellings_of_a_time_are_read() {
        for text in ["2026-06-14 10:00:00", "2026-06-14T10:00:00Z", "2026-06-14T12:00:00+02:00", "2026-06-14T10:00:00"]
        {
            assert_eq!(parse_ms(text), Some(1_781_431_200_000), "{text}");
        }
        assert_eq!(parse_ms("yesterday"), None);
    }

    #[test]
    fn seconds_that_are_no_duration_are_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(millis("delay", bad).is_err(), "{bad}");
        }
        assert_eq!(millis("delay", 0.0015).unwrap(), 2);
    }
}
