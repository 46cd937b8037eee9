//! The nouns: what is put in, what comes out, and what proves a claim.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::clock;

/// What an item carries. It comes back as it was given: text, a JSON value, or bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Text(String),
    Json(Value),
    Bytes(Vec<u8>),
}

impl Content {
    /// Reads the two columns back, or says why they do not fit each other.
    pub fn from_stored(kind: &str, stored: String) -> Result<Self, (String, String)> {
        match kind {
            "text" => Ok(Content::Text(stored)),
            "json" => match serde_json::from_str(&stored) {
                Ok(value) => Ok(Content::Json(value)),
                Err(error) => Err((format!("the content is not valid JSON: {error}"), stored)),
            },
            "base64" => match STANDARD.decode(&stored) {
                Ok(bytes) => Ok(Content::Bytes(bytes)),
                Err(error) => Err((format!("the content is not valid base64: {error}"), stored)),
            },
            other => Err((format!("the content_type '{other}' is not text, json or base64"), stored)),
        }
    }
}

/// Content in the form of the table's two columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The `content_type` column.
    pub kind: &'static str,
    /// The `content` column.
    pub text: String,
    /// What counts against the limit: the bytes of the text, or the bytes given.
    pub size: usize,
}

impl Stored {
    pub fn text(text: String) -> Self {
        Self { kind: "text", size: text.len(), text }
    }

    /// JSON text that is known to be valid.
    pub fn json(text: String) -> Self {
        Self { kind: "json", size: text.len(), text }
    }

    pub fn bytes(bytes: &[u8]) -> Self {
        Self { kind: "base64", size: bytes.len(), text: STANDARD.encode(bytes) }
    }
}

impl From<Content> for Stored {
    fn from(content: Content) -> Self {
        match content {
            Content::Text(text) => Stored::text(text),
            Content::Json(value) => Stored::json(value.to_string()),
            Content::Bytes(bytes) => Stored::bytes(&bytes),
        }
    }
}

/// When an item falls due.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum When {
    #[default]
    Now,
    /// Milliseconds from the moment it is written.
    After(i64),
    /// Milliseconds since 1970; the past means now.
    At(i64),
}

/// One item to enqueue.
#[derive(Clone, Debug)]
pub struct NewItem {
    pub content: Stored,
    pub project: Option<String>,
    pub source_path: Option<String>,
    pub doc_date: Option<String>,
    pub priority: i64,
    pub when: When,
    pub max_retries: Option<u32>,
    /// A JSON object, as text.
    pub headers: Option<String>,
}

impl NewItem {
    pub fn new(content: impl Into<Stored>) -> Self {
        Self {
            content: content.into(),
            project: None,
            source_path: None,
            doc_date: None,
            priority: 0,
            when: When::Now,
            max_retries: None,
            headers: None,
        }
    }

    pub fn text(content: impl Into<String>) -> Self {
        Self::new(Stored::text(content.into()))
    }
}

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

/// What proves a claim: the attempt it was, and a number only that claim knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub id: i64,
    pub attempt: i64,
    pub token: i64,
}

/// One row, as it was when it was read.
#[derive(Clone, Debug)]
pub struct Item {
    pub id: i64,
    pub queue: String,
    pub content: Content,
    /// What is wrong with the row, if it cannot be read as what it says it is; the content is then the raw text.
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
    pub claim_token: Option<i64>,
    pub lease_until: Option<i64>,
    pub worker: Option<String>,
    pub max_retries: Option<u32>,
    pub headers: Option<Map<String, Value>>,
    /// JSON text; read when somebody asks.
    pub result: Option<String>,
}

impl Item {
    pub fn enqueued_ms(&self) -> Option<i64> {
        clock::parse_ms(&self.enqueued_at)
    }

    pub fn started_ms(&self) -> Option<i64> {
        self.started_at.as_deref().and_then(clock::parse_ms)
    }

    pub fn finished_ms(&self) -> Option<i64> {
        self.finished_at.as_deref().and_then(clock::parse_ms)
    }
}

/// How many items of a queue stand in each status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub pending: i64,
    pub processing: i64,
    pub done: i64,
    pub failed: i64,
    pub blocked: i64,
    pub cancelled: i64,
}

impl Counts {
    pub(crate) fn add(&mut self, status: &str, count: i64) {
        match Status::parse(status) {
            Some(Status::Pending) => self.pending += count,
            Some(Status::Processing) => self.processing += count,
            Some(Status::Done) => self.done += count,
            Some(Status::Failed) => self.failed += count,
            Some(Status::Blocked) => self.blocked += count,
            Some(Status::Cancelled) => self.cancelled += count,
            // A status that another program made up is not ours to count.
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn content_comes_back_as_it_was_given() {
        for content in [
            Content::Text("a\0b \u{10ffff}".into()),
            Content::Json(json!({"a": [1, -0.0, 1e-7, u64::MAX, i64::MIN, null, "x"]})),
            Content::Bytes(vec![0, 255, 10]),
        ] {
            let stored = Stored::from(content.clone());
            assert_eq!(Content::from_stored(stored.kind, stored.text).unwrap(), content);
        }
    }

    #[test]
    fn content_that_does_not_fit_its_type_keeps_its_raw_text() {
        for kind in ["json", "base64", "pickle"] {
            let (reason, raw) = Content::from_stored(kind, "{oops".into()).unwrap_err();
            assert_eq!(raw, "{oops");
            assert!(reason.to_lowercase().contains(kind), "{reason}");
        }
    }

    #[test]
    fn the_first_and_the_last_status_parse() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
        assert_eq!(Status::parse("queued"), None);
    }
}
