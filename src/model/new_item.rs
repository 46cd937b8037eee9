//! An item to enqueue.

use super::{Deadline, IfFailed, Need, Now, Stored};

/// When an item is due.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum When {
    #[default]
    Now,
    /// Milliseconds from the moment it is written.
    After(i64),
    /// Milliseconds since 1970; the past means now.
    At(i64),
}

impl When {
    /// The `run_at` to store; `None` means now.
    pub fn due(self, now: Now) -> Option<i64> {
        match self {
            When::Now => None,
            When::After(delay) => (delay > 0).then(|| now.plus(delay)),
            When::At(at) => (at > now.ms()).then_some(at),
        }
    }
}

/// One item to enqueue.
#[derive(Clone, Debug, PartialEq)]
pub struct NewItem {
    /// The queue it goes into; `None`: the one that enqueues it.
    pub queue: Option<String>,
    pub content: Stored,
    pub project: Option<String>,
    pub source_path: Option<String>,
    pub doc_date: Option<String>,
    pub priority: i64,
    /// Whether it was given a priority, so that it inherits none.
    pub has_priority: bool,
    pub when: When,
    pub max_retries: Option<u32>,
    /// A JSON object, as text.
    pub headers: Option<String>,
    pub group: Option<String>,
    pub key: Option<Key>,
    /// What it waits for, in this order.
    pub after: Vec<Need>,
    pub if_failed: IfFailed,
    pub expires: Option<Deadline>,
}

/// The key of an item: at most one unfinished item per queue and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub name: KeyName,
    /// How long after its enqueue an item keeps its key, finished or not, in milliseconds.
    pub ttl_ms: Option<i64>,
    pub on_duplicate: OnDuplicate,
}

impl Key {
    /// Items enqueued after this time still have the key, finished or not.
    pub fn since(&self, now: Now) -> Option<i64> {
        self.ttl_ms.map(|ttl| now.ms().saturating_sub(ttl))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyName {
    Given(String),
    /// A hash of the content.
    ByContent,
}

/// What `enqueue` does when another item has the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Returns the existing item's id.
    #[default]
    Return,
    Raise,
    /// Gives the existing item the new content if it is still pending.
    Replace,
    /// Adds nothing and returns no id, so that the caller knows whether its item is new.
    Skip,
}

impl NewItem {
    pub fn new(content: impl Into<Stored>) -> Self {
        Self {
            queue: None,
            content: content.into(),
            project: None,
            source_path: None,
            doc_date: None,
            priority: 0,
            has_priority: false,
            when: When::Now,
            max_retries: None,
            headers: None,
            group: None,
            key: None,
            after: Vec::new(),
            if_failed: IfFailed::Cancel,
            expires: None,
        }
    }

    pub fn text(content: impl Into<String>) -> Self {
        Self::new(Stored::text(content.into()))
    }
}
