//! What an engine must do for the end of a claim.

use crate::error::Result;
use crate::model::{Receipt, Value};
use crate::rules::outcome::Verdict;

/// What must still be true of a row for a claim's end to be recorded. A claim made by membox has no token. The values
/// are raw: another program may have written something that is not a number, and that row must be reclaimable too.
pub struct Fence {
    pub id: i64,
    pub attempt: Value,
    pub token: Value,
}

impl Fence {
    /// The attempt as a number, for the history.
    pub fn attempt_number(&self) -> i64 {
        if let Value::Integer(number) = self.attempt { number } else { 0 }
    }

    /// `None` for the claim of another program.
    pub fn receipt(&self) -> Option<Receipt> {
        match (&self.attempt, &self.token) {
            (Value::Integer(attempt), Value::Integer(token)) => {
                Some(Receipt { id: self.id, attempt: *attempt, token: *token })
            }
            _ => None,
        }
    }
}

impl From<Receipt> for Fence {
    fn from(receipt: Receipt) -> Self {
        Self { id: receipt.id, attempt: Value::Integer(receipt.attempt), token: Value::Integer(receipt.token) }
    }
}

/// A claim as its row records it.
pub struct Claimed {
    pub fence: Fence,
    pub retries: u32,
    pub max_retries: Option<u32>,
    pub worker: Option<String>,
    pub started_at: Option<String>,
    pub cancelled: bool,
    pub batch: Option<i64>,
    /// The process that holds it and the lease granted, as far as recording its end needs them.
    pub holder: Option<i64>,
    pub lease_ms: Option<i64>,
}

/// How an attempt ended, for the history.
pub struct AttemptRecord<'a> {
    pub item: i64,
    pub attempt: i64,
    pub ending: &'a str,
    pub worker: Option<&'a str>,
    pub started_at: Option<&'a str>,
    pub error: Option<&'a str>,
}

pub trait FinishTx {
    /// Writes the verdict if the claim is still the one the fence names. Returns whether it was. Locks the item.
    fn finish(&self, queue: &str, fence: &Fence, verdict: &Verdict, worker: Option<&str>) -> Result<bool>;

    /// Ends an item that was cancelled while in progress. Returns whether it was such an item. Locks the item.
    fn finish_cancelled(&self, queue: &str, fence: &Fence) -> Result<bool>;

    /// Adds the attempt to the history, which keeps the latest `kept` of an item.
    fn add_attempt(&self, record: &AttemptRecord, kept: i64) -> Result<()>;

    /// Removes the content of a finished item.
    fn drop_content(&self, queue: &str, id: i64) -> Result<()>;
}
