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
    /// The item is stored and pending; return its id. Locks nothing that another enqueue needs.
    fn enqueue(&self, queue: &str, row: NewRow) -> Result<i64>;

    /// A pending item that this transaction has found has new content, in its old place. Locks the item.
    fn replace(&self, id: i64, row: &NewRow) -> Result<()>;

    /// The item that has a key, and its status if it is one we know. `since`: items enqueued after it have their key still,
    /// finished or not. What was found stays true until the commit.
    fn find_key(&self, queue: &str, key: &str, since: Option<i64>) -> Result<Option<(i64, Option<Status>)>>;

    /// The key is taken from an item that was cancelled while it runs.
    fn free_key(&self, queue: &str, key: &str) -> Result<()>;

    /// Why a change that nothing stood against has changed nothing: damage, or a trigger of the application.
    fn without_effect(&self, what: &str) -> Error;
}
