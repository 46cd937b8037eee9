//! Recurring schedules: when the next tick is.

use std::str::FromStr;

use croner::errors::CronError;
use croner::{Cron, JobType};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, Zoned};

use crate::error::{Error, Result};
use crate::model::{LATEST_MS, Now};

/// When a schedule ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timing {
    /// A cron pattern, read in a time zone.
    Cron { pattern: String, tz: String },
    /// A fixed interval in milliseconds.
    Every(i64),
}

impl Timing {
    /// Refuses a timing that can never tick.
    pub fn check(&self, now: Now) -> Result<()> {
        self.next(now.ms(), now).map(drop)
    }

    /// Returns the first tick after now. `planned` is the tick that was due next: an interval keeps its phase from
    /// there. Missed ticks are skipped.
    pub fn next(&self, planned: i64, now: Now) -> Result<i64> {
        let next = match self {
            Timing::Every(every) if *every < 1 => {
                return Err(Error::Invalid("every must be at least a millisecond".into()));
            }
            Timing::Every(every) => {
                let late = now.ms().saturating_sub(planned);
                // A tick planned more than one interval ahead comes from a wrong clock.
                if late < -every {
                    now.plus(*every)
                } else {
                    planned.saturating_add(late.div_euclid(*every).saturating_add(1).saturating_mul(*every))
                }
            }
            Timing::Cron { pattern, tz } => {
                let (cron, tz) = (parse(pattern)?, zone(tz)?);
                let from = Timestamp::from_millisecond(now.ms().clamp(0, LATEST_MS)).unwrap_or(Timestamp::UNIX_EPOCH);
                let next = next_match(&cron, &from.to_zoned(tz))
                    .map_err(|error| Error::Invalid(format!("the cron pattern '{pattern}' never comes: {error}")))?;
                next.as_millisecond()
            }
        };
        Ok(next.min(LATEST_MS))
    }
}

/// Returns the first moment after `after` that matches the pattern.
fn next_match(cron: &Cron, after: &Zoned) -> std::result::Result<Timestamp, CronError> {
    if cron.determine_job_type() == JobType::IntervalWildcard {
        return Ok(cron.find_next_occurrence(after, false)?.timestamp());
    }
    // A fixed time of day is searched in local time without a zone, where no hour is skipped. With a time zone, croner
    // mistakes the hour that a clock change skips for a match, and ticks once too often.
    let mut face = after.datetime();
    loop {
        face = cron.find_next_occurrence(&face, false)?;
        let shown = first_shown(face, after.time_zone()).ok_or(CronError::InvalidTime)?;
        if shown > after.timestamp() {
            return Ok(shown);
        }
    }
}

/// Returns when the clocks of a time zone first show this time, or the moment at which they skip it.
fn first_shown(face: DateTime, tz: &TimeZone) -> Option<Timestamp> {
    let ambiguous = tz.to_ambiguous_timestamp(face);
    let earlier = ambiguous.earlier().ok()?;
    match ambiguous.offset() {
        AmbiguousOffset::Gap { .. } => Some(tz.following(earlier).next()?.timestamp()),
        _ => Some(earlier),
    }
}

fn parse(pattern: &str) -> Result<Cron> {
    Cron::from_str(pattern).map_err(|error| {
        Error::Invalid(format!(
            "'{pattern}' is not a cron pattern (minute hour day month weekday, such as '*/15 * * * *'): {error}"
        ))
    })
}

fn zone(name: &str) -> Result<TimeZone> {
    TimeZone::get(name)
        .map_err(|_| Error::Invalid(format!("tz '{name}' is not a time zone; give a name such as 'Europe/Berlin'")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::parse_ms;

    fn at(text: &str) -> Now {
        Now(parse_ms(text).unwrap())
    }

    fn cron(pattern: &str, tz: &str) -> Timing {
        Timing::Cron { pattern: pattern.into(), tz: tz.into() }
    }

    fn next(timing: &Timing, now: &str) -> String {
        Now(timing.next(at(now).ms(), at(now)).unwrap()).text()
    }

    #[test]
    fn a_pattern_is_read_in_its_time_zone() {
        assert_eq!(next(&cron("30 9 * * *", "UTC"), "2026-06-14 09:30:00"), "2026-06-15 09:30:00.000");
        assert_eq!(next(&cron("30 9 * * *", "Europe/Berlin"), "2026-06-14 07:00:00"), "2026-06-14 07:30:00.000");
    }

    #[test]
    fn an_hour_that_is_left_out_or_comes_twice_ticks_once() {
        let nightly = cron("30 2 * * *", "Europe/Berlin");
        // On 2026-03-29 the clocks go from 2:00 to 3:00; on 2026-10-25 from 3:00 back to 2:00.
        let spring = [next(&nightly, "2026-03-28 12:00:00"), next(&nightly, "2026-03-29 01:30:00")];
        assert!(spring[0].starts_with("2026-03-29 01:"), "{spring:?}");
        assert!(spring[1].starts_with("2026-03-30 00:30"), "{spring:?}");
        let autumn = [next(&nightly, "2026-10-24 12:00:00"), next(&nightly, "2026-10-25 00:30:00")];
        assert_eq!(autumn, ["2026-10-25 00:30:00.000", "2026-10-26 01:30:00.000"]);
    }

    #[test]
    fn a_time_of_day_outside_the_hour_that_is_left_out_ticks_once_too() {
        for (pattern, tz, before, expected) in [
            ("30 1 * * *", "Europe/Berlin", "2026-03-29 00:30:00", "2026-03-29 23:30:00.000"),
            ("30 23 * * *", "America/Santiago", "2026-09-06 03:30:00", "2026-09-07 02:30:00.000"),
            ("0 0 * * 1", "Africa/Cairo", "2026-04-22 12:00:00", "2026-04-26 21:00:00.000"),
            // Samoa skipped 2011-12-30, so its tick comes at the beginning of the 31st.
            ("0 12 * * *", "Pacific/Apia", "2011-12-29 22:00:00", "2011-12-30 10:00:00.000"),
        ] {
            assert_eq!(next(&cron(pattern, tz), before), expected, "{pattern} in {tz}");
        }
    }

    #[test]
    fn an_interval_keeps_its_beat_and_makes_up_for_nothing() {
        let timing = Timing::Every(60_000);
        assert_eq!(timing.next(1_000_000, Now(1_000_000)).unwrap(), 1_060_000);
        assert_eq!(timing.next(1_000_000, Now(1_059_999)).unwrap(), 1_060_000);
        assert_eq!(timing.next(1_000_000, Now(9_990_000)).unwrap(), 10_000_000);
        assert_eq!(timing.next(99_000_000, Now(1_000_000)).unwrap(), 1_060_000, "a clock that went back");
    }

    #[test]
    fn what_cannot_tick_is_refused() {
        for (timing, word) in [
            (cron("whenever", "UTC"), "cron pattern"),
            (cron("0 0 30 2 *", "UTC"), "never"),
            (cron("* * * * *", "Mars/Olympus"), "time zone"),
            (Timing::Every(0), "every"),
        ] {
            let said = timing.check(at("2026-06-14 10:00:00")).unwrap_err().to_string();
            assert!(said.contains(word), "{said}");
        }
    }
}
