//! The worker lease: how its record is written and read, and whether it is live.
//!
//! The record is membox's JSON object `{"pid", "hostname", "heartbeat"}` with three members of ours. `owner` is a
//! random token that refresh and release must present. `ttl` is the duration in seconds. `holder` is the number by
//! which other processes see that this one is alive. membox's own record has none of them, so only its heartbeat
//! counts.

use serde::{Deserialize, Serialize};

use crate::model::{Now, parse_ms};
use crate::rules::name;

/// The duration of a lease whose record names none.
pub const DEFAULT_TTL_MS: i64 = 60_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeaseRecord {
    #[serde(default)]
    pub pid: serde_json::Value,
    #[serde(default)]
    pub hostname: serde_json::Value,
    pub heartbeat: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<i64>,
}

/// The process that writes a record, shown to operators.
#[derive(Clone, Copy, Debug)]
pub struct LeaseWriter {
    pub pid: u32,
    pub hostname: &'static str,
}

impl LeaseRecord {
    pub fn new(writer: LeaseWriter, owner: &str, ttl_ms: i64, holder: Option<i64>, now: Now) -> Self {
        Self {
            pid: writer.pid.into(),
            hostname: writer.hostname.into(),
            heartbeat: now.iso(),
            owner: Some(owner.to_owned()),
            ttl: Some(ttl_ms as f64 / 1000.0),
            holder,
        }
    }

    pub fn parse(stored: &str) -> Option<Self> {
        serde_json::from_str(stored).ok()
    }

    /// Returns whether this process wrote it, by the two members that membox compares.
    pub fn is_of(&self, writer: LeaseWriter) -> bool {
        self.pid == writer.pid && self.hostname == writer.hostname
    }

    /// Returns whether a stored record carries this one's token. The token is random and occurs nowhere else, so the
    /// record need not be parsed.
    pub fn owns(&self, stored: &str) -> bool {
        self.owner.as_ref().is_some_and(|owner| stored.contains(owner.as_str()))
    }

    /// Returns the record with a new heartbeat.
    pub fn beaten_at(&self, now: Now) -> Self {
        Self { heartbeat: now.iso(), ..self.clone() }
    }

    pub fn render(&self) -> String {
        serde_json::to_string(self).expect("a lease record has only strings and numbers")
    }
}

/// Returns the lease that keeps other workers out, if the stored value is one: readable, not expired, its process not
/// dead. A heartbeat further ahead than the lease is long comes from a wrong clock, so it keeps no worker out.
pub fn live(
    stored: Option<&str>,
    default_ttl_ms: i64,
    now: Now,
    is_alive: impl FnOnce(i64) -> bool,
) -> Option<LeaseRecord> {
    let record = LeaseRecord::parse(stored?)?;
    let ttl_ms = match record.ttl {
        Some(ttl) if ttl.is_finite() && ttl >= 0.0 => (ttl * 1000.0) as i64,
        _ => default_ttl_ms,
    };
    let beat = parse_ms(&record.heartbeat)?;
    let (age, lead) = (now.ms().saturating_sub(beat), beat.saturating_sub(now.ms()));
    (age < ttl_ms && lead <= ttl_ms && record.holder.is_none_or(is_alive)).then_some(record)
}

/// Returns the key of a queue's lease; the default queue has membox's own.
pub fn key(queue: &str) -> String {
    if queue == name::DEFAULT_QUEUE { "worker_lease".into() } else { format!("worker_lease:{queue}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now(1_781_431_200_000);

    const WRITER: LeaseWriter = LeaseWriter { pid: 7, hostname: "box" };

    fn at(ms: i64) -> LeaseRecord {
        LeaseRecord::new(WRITER, "me", 60_000, None, Now(NOW.ms() + ms))
    }

    fn is_live(stored: &str) -> bool {
        live(Some(stored), DEFAULT_TTL_MS, NOW, |_| true).is_some()
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        assert_eq!(live(Some(&at(0).render()), DEFAULT_TTL_MS, NOW, |_| true), Some(at(0)));
    }

    #[test]
    fn it_lives_for_its_own_ttl() {
        assert!(is_live(&at(-59_999).render()));
        assert!(!is_live(&at(-60_000).render()));
        let long = LeaseRecord::new(WRITER, "me", 600_000, None, Now(NOW.ms() - 100_000));
        assert!(is_live(&long.render()));
    }

    #[test]
    fn membox_records_live_by_their_heartbeat() {
        assert!(is_live(r#"{"pid": 12, "hostname": "box", "heartbeat": "2026-06-14T09:59:30+00:00"}"#));
        assert!(is_live(r#"{"pid": 12, "hostname": "box", "heartbeat": "2026-06-14T09:59:30"}"#));
        assert!(!is_live(r#"{"pid": 12, "hostname": "box", "heartbeat": "2026-06-14T09:58:30+00:00"}"#));
    }

    #[test]
    fn malformed_records_hold_nobody_off() {
        for text in ["", "null", "[]", "{}", "nonsense", r#"{"heartbeat": 5}"#, r#"{"heartbeat": "soon"}"#] {
            assert!(!is_live(text), "{text}");
        }
        assert_eq!(live(None, DEFAULT_TTL_MS, NOW, |_| true), None);
    }

    #[test]
    fn a_dead_process_holds_nobody_off() {
        let stored = LeaseRecord { holder: Some(7), ..at(0) }.render();
        assert!(live(Some(&stored), DEFAULT_TTL_MS, NOW, |holder| holder == 7).is_some());
        assert!(live(Some(&stored), DEFAULT_TTL_MS, NOW, |_| false).is_none());
    }

    #[test]
    fn a_heartbeat_far_in_the_future_holds_nobody_off() {
        assert!(is_live(&at(5_000).render()));
        assert!(!is_live(&at(86_400_000).render()));
    }
}
