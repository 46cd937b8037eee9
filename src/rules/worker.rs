//! The record of a worker loop: which process runs it, which queues it serves, and whether callers may rely on it.
//!
//! A loop holds a liveness lock while it runs, and a second one until it is asked to stop. The system drops both when
//! the process dies, so a record alone proves nothing.

use serde::{Deserialize, Serialize};

/// What a loop does when nothing is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It waits for more until it is stopped.
    Work,
    /// It ends.
    Drain,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Drain => "drain",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerRecord {
    pub name: String,
    pub pid: u32,
    pub host: String,
    /// When the loop began, in milliseconds since 1970.
    pub since: i64,
    pub kind: Kind,
    pub queues: Vec<String>,
    /// The liveness lock that the loop holds while it runs.
    pub running: i64,
    /// The liveness lock that the loop holds until it is asked to stop.
    pub claiming: i64,
    /// Whether the loop looks for new items before it ends by itself. A loop with a limit of items does not. For a loop
    /// with a worker lease, only the lease counts, which ends when a process is stopped for long.
    pub looks_again: bool,
    /// The liveness lock of the process, which its claims name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<i64>,
}

impl WorkerRecord {
    pub fn parse(stored: &str) -> Option<Self> {
        serde_json::from_str(stored).ok()
    }

    pub fn render(&self) -> String {
        serde_json::to_string(self).expect("a worker record has only strings and numbers")
    }

    /// The key under which it is stored.
    pub fn key(&self) -> String {
        format!("worker:{}", self.running)
    }

    pub fn serves(&self, queue: &str) -> bool {
        self.queues.iter().any(|served| served == queue)
    }

    /// Whether a caller that has enqueued into the queue may rely on the loop to look for new items.
    pub fn will_look_at(&self, queue: &str, is_alive: impl FnOnce(i64) -> bool) -> bool {
        self.serves(queue) && self.looks_again && is_alive(self.claiming)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(looks_again: bool) -> WorkerRecord {
        WorkerRecord {
            name: "box:7".into(),
            pid: 7,
            host: "box".into(),
            since: 1,
            kind: Kind::Work,
            queues: vec!["mail".into()],
            running: 1,
            claiming: 2,
            looks_again,
            process: Some(3),
        }
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        assert_eq!(WorkerRecord::parse(&record(true).render()), Some(record(true)));
        assert_eq!(WorkerRecord::parse("{}"), None);
    }

    #[test]
    fn callers_rely_on_a_loop_that_serves_their_queue_and_still_looks() {
        assert!(record(true).will_look_at("mail", |number| number == 2));
        assert!(!record(true).will_look_at("mail", |_| false));
        assert!(!record(true).will_look_at("ingest", |_| true));
        assert!(!record(false).will_look_at("mail", |_| true));
    }
}
