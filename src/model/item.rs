//! An item as it was read, its status, its attempts, and counts.

use arc_swap::ArcSwapOption;
use serde_json::{Map, Value};

use super::Content;
use super::time::parse_ms;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    Pending,
    Processing,
    Done,
    Failed,
    Blocked,
    Cancelled,
}

impl Status {
    pub const ALL: [Status; 6] =
        [Status::Pending, Status::Processing, Status::Done, Status::Failed, Status::Blocked, Status::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Processing => "processing",
            Status::Done => "done",
            Status::Failed => "failed",
            Status::Blocked => "blocked",
            Status::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// One row, as it was when it was read.
#[derive(Debug)]
pub struct Item {
    pub id: i64,
    pub queue: String,
    /// The queue it was enqueued into, once it has moved to another.
    pub home: Option<String>,
    /// How many stages it has behind it.
    pub stage: i64,
    /// The item that made it.
    pub parent: Option<i64>,
    /// When it is cancelled, in milliseconds since 1970.
    pub expires_at: Option<i64>,
    /// `None` once a converted copy replaces it, so that a large document is not in memory twice.
    pub content: ArcSwapOption<Content>,
    /// What is wrong with the row, if it cannot be read as its columns declare. The content is then the raw text.
    pub damage: Option<String>,
    pub project: Option<String>,
    pub source_path: Option<String>,
    pub doc_date: Option<String>,
    pub status: String,
    pub retries: u32,
    pub error: Option<String>,
    pub enqueued_at: String,
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub priority: i64,
    pub run_at: Option<i64>,
    pub attempt: i64,
    pub lease_until: Option<i64>,
    pub worker: Option<String>,
    pub max_retries: Option<u32>,
    pub headers: Option<Map<String, Value>>,
    /// JSON text; parsed on access.
    pub result: Option<String>,
    pub group: Option<String>,
    pub key: Option<String>,
    /// The progress that its handler reported, from 0 to 1.
    pub progress: Option<f64>,
    pub progress_note: Option<String>,
}

impl Item {
    /// The queue it was enqueued into.
    pub fn home(&self) -> &str {
        self.home.as_deref().unwrap_or(&self.queue)
    }

    /// Whether it is in this queue, or began there.
    pub fn belongs_to(&self, queue: &str) -> bool {
        self.queue == queue || self.home.as_deref() == Some(queue)
    }

    /// `None` for a status that another program wrote and that is none of ours; `status` has its text.
    pub fn known_status(&self) -> Option<Status> {
        Status::parse(&self.status)
    }

    /// The progress of the item. What is done is complete, whatever its handler reported last.
    pub fn shown_progress(&self) -> Option<f64> {
        if self.known_status() == Some(Status::Done) { self.progress.map(|_| 1.0) } else { self.progress }
    }

    pub fn enqueued_ms(&self) -> Option<i64> {
        parse_ms(&self.enqueued_at)
    }

    pub fn started_ms(&self) -> Option<i64> {
        self.started_at.as_deref().and_then(parse_ms)
    }

    pub fn finished_ms(&self) -> Option<i64> {
        self.finished_at.as_deref().and_then(parse_ms)
    }
}

/// The number of items of a queue in each status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub pending: i64,
    pub processing: i64,
    pub done: i64,
    pub failed: i64,
    pub blocked: i64,
    pub cancelled: i64,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub attempt: i64,
    /// done, failed, postponed, lost, released, cancelled, moved or blocked.
    pub ending: String,
    pub worker: Option<String>,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub error: Option<String>,
    /// The queue the item was in, and its stage.
    pub queue: String,
    pub stage: i64,
    /// Of a stage that is behind the item.
    pub content: Option<Content>,
}

/// Unfinished items of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupCounts {
    pub group: String,
    pub pending: i64,
    pub processing: i64,
}

impl Counts {
    /// Items that are pending or in progress.
    pub fn unfinished(&self) -> i64 {
        self.pending + self.processing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_status_parse() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
        assert_eq!(Status::parse("queued"), None);
    }
}
