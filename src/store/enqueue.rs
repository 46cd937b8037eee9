//! What an engine must do for an enqueue.

use crate::error::{Error, Result};
use crate::model::Status;

/// A row ready to be inserted.
pub struct NewRow {
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
    /// See `model::checksum`.
    pub checksum: Option<i64>,
}

pub trait EnqueueTx {
    /// Stores the item as pending. Returns its id. Locks nothing that another enqueue needs.
    fn enqueue(&self, queue: &str, row: NewRow) -> Result<i64>;

    /// Gives a pending item, found by this transaction, new content in its old place. Locks the item.
    fn replace(&self, id: i64, row: &NewRow) -> Result<()>;

    /// Returns the item that has a key, and its status if that is a known one. Items enqueued after `since` still have
    /// their key, finished or not. The result stays true until the commit.
    fn find_key(&self, queue: &str, key: &str, since: Option<i64>) -> Result<Option<(i64, Option<Status>)>>;

    /// Takes the key from an item that was cancelled while in progress.
    fn free_key(&self, queue: &str, key: &str) -> Result<()>;

    /// Explains why a change that should have taken effect did not: damage, or a trigger of the application.
    fn without_effect(&self, what: &str) -> Error;
}
