//! What an engine must do for the end of a claim.

use super::End;
use crate::error::Result;
use crate::model::{Receipt, Value};
use crate::rules::outcome::Settled;

/// What must still be true of a row for a claim's end to be recorded. A claim made by membox has no token. The values
/// are raw: another program may have written something that is not a number, and that row must be reclaimable too.
#[derive(Clone)]
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
#[derive(Clone)]
pub struct Claimed {
    pub fence: Fence,
    pub retries: u32,
    pub max_retries: Option<u32>,
    pub worker: Option<String>,
    pub started_at: Option<String>,
    pub cancelled: bool,
    pub batch: Option<i64>,
    pub has_group: bool,
    /// The process that holds it and the lease granted, as far as recording its end needs them.
    pub holder: Option<i64>,
    pub lease_ms: Option<i64>,
    /// The lease has expired, but its holder is alive and waits for other writers to renew it.
    pub awaits_renewal: bool,
}

pub trait FinishTx {
    /// Records the end if the claim is still the one its fence names, with its entry in the history and what follows: the
    /// rest of its batch is released unless it is done. Returns what became of the item: `Cancelled` if it was cancelled
    /// meanwhile, `Lost` if the fence names another claim. Locks the item and the rest of its batch.
    fn end(&self, queue: &str, end: &End) -> Result<Settled>;
}
