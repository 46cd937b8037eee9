//! What an engine must do for an enqueue.

use super::StoredSettings;
use crate::error::{Error, Result};
use crate::model::{Deadline, IfFailed, Key, Now, Status, When};

/// A row ready to be inserted.
#[derive(Clone)]
pub struct NewRow {
    /// `blocked` if it waits for other items, else `pending`.
    pub status: Status,
    pub content: String,
    pub content_type: &'static str,
    pub project: Option<String>,
    pub source_path: Option<String>,
    pub doc_date: Option<String>,
    pub priority: i64,
    pub run_at: Option<i64>,
    pub max_retries: Option<u32>,
    pub headers: Option<String>,
    pub group: Option<String>,
    pub key: Option<String>,
    pub key_until: Option<i64>,
    /// The item that made it.
    pub parent: Option<i64>,
    /// When it is cancelled.
    pub expires_at: Option<i64>,
    /// See `model::checksum`.
    pub checksum: Option<i64>,
}

/// An item to enqueue. Times count from the transaction that writes it.
#[derive(Clone)]
pub struct Put {
    /// The number of its queue in [`Enqueue::queues`].
    pub queue: usize,
    pub row: NewRow,
    pub when: When,
    pub key: Option<Key>,
    pub needs: Vec<Needed>,
    pub if_failed: IfFailed,
    pub expires: Option<Deadline>,
}

/// One of the items that an item to enqueue waits for.
#[derive(Clone)]
pub enum Needed {
    Id(i64),
    /// It is enqueued before, into this queue.
    Put(String, Box<Put>),
}

impl Put {
    /// Returns the row as it is written at this time, and its key.
    pub fn at(mut self, now: Now) -> (NewRow, Option<Key>) {
        self.row.run_at = self.when.due(now);
        self.row.key_until = self.key.as_ref().and_then(|key| key.ttl_ms).map(|ttl| now.plus(ttl));
        self.row.expires_at = self.expires.map(|deadline| deadline.at(now)).or(self.row.expires_at);
        (self.row, self.key)
    }
}

/// A queue that items are enqueued into.
pub struct Destination<'a> {
    pub name: &'a str,
    /// The stored settings that the items were checked against. If the store has others, nothing is written.
    pub known: &'a StoredSettings,
    pub max_pending: Option<i64>,
}

/// Items to enqueue, all or none.
pub struct Enqueue<'a> {
    pub queues: &'a [Destination<'a>],
    /// Taken when they are written, so that a large document is in memory once.
    pub puts: Vec<Put>,
}

pub enum Enqueued {
    /// The id of each item; `None` if it was skipped, because its key is in use.
    Ids(Vec<Option<i64>>),
    /// Queues whose settings the caller does not know, and what is stored. Nothing was written.
    SettingsChanged(Vec<(usize, StoredSettings)>),
}

pub trait EnqueueTx {
    /// Stores the item as pending, or as blocked if it waits for others, which are stored before it; or does what it says about a key in use: `rules::key` decides. Returns the id of the
    /// item that has the content or the key; `None` if the item was skipped. Locks nothing that the enqueue of another
    /// key needs.
    fn put(&self, queue: &str, put: Put) -> Result<Option<i64>>;

    /// Explains why a change that should have taken effect did not: damage, or a trigger of the application.
    fn without_effect(&self, what: &str) -> Error;
}
