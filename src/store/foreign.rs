//! What an engine must offer for the caller's own connection: plain statements. The caller's library runs them in the
//! caller's transaction.

use super::NewRow;
use crate::error::Result;
use crate::model::{Answer, IfFailed, Now, Receipt, Schedule, StepKind, Value};

/// A statement and its values.
#[derive(Clone)]
pub struct Statement {
    pub sql: &'static str,
    pub values: Vec<Value>,
    pub returns_rows: bool,
}

pub trait ForeignStatements: Send + Sync {
    /// Returns which database the connection is open on.
    fn location(&self) -> Statement;

    /// Inserts the item.
    fn enqueue(&self, queue: &str, row: &NewRow, now: Now) -> Result<Statement>;

    /// Finds the item that has a key; returns its id and status.
    fn find_key(&self, queue: &str, key: &str, since: Option<i64>, now: Now) -> Result<Statement>;

    /// Takes the key from an item that was cancelled while in progress.
    fn free_key(&self, queue: &str, key: &str) -> Result<Statement>;

    /// Returns in its first column how many items are pending.
    fn counts(&self, queue: &str) -> Result<Statement>;

    /// Gives an item new content. Its first value, the id, is missing: it is known only once the row is found.
    fn replace(&self, row: &NewRow) -> Result<Statement>;

    /// Records a step if the receipt is valid; see `StepTx`.
    fn add_step(
        &self,
        queue: &str,
        receipt: Receipt,
        name: &str,
        kind: StepKind,
        result: &str,
        now: Now,
    ) -> Result<Statement>;

    /// Returns the id of the last inserted row, and how many rows the last statement changed.
    fn written(&self) -> Statement;

    /// The names of the application's triggers on our table.
    fn foreign_triggers(&self) -> Statement;

    /// Returns the status of an item.
    fn status(&self, id: i64) -> Result<Statement>;

    /// Changes an `enqueue` so that the item is blocked.
    fn block(&self, enqueue: &mut Statement);

    /// Makes an item wait for another.
    fn wait_for(&self, id: i64, place: i64, needed: i64, if_failed: IfFailed) -> Result<Statement>;

    /// Finds the newest item with a key.
    fn newest_with_key(&self, queue: &str, key: &str) -> Result<Statement>;

    /// Ends an item without a claim, unless it is done or cancelled.
    fn answer(&self, queue: &str, id: i64, answer: &Answer, now: Now) -> Result<Statement>;

    /// Returns a row if the item is done and its key still reserved.
    fn has_answer(&self, id: i64, now: Now) -> Result<Statement>;

    /// Inserts an item that has ended already, under a key that stays reserved until `key_until`.
    fn put_answer(&self, queue: &str, key: &str, key_until: i64, answer: &Answer, now: Now) -> Result<Statement>;

    /// Records which item has made another.
    fn set_parent(&self, id: i64, parent: i64) -> Result<Statement>;

    /// Records that the dependents of an item are to be updated.
    fn note_awaited(&self, id: i64) -> Result<Statement>;

    /// Updates a bounded number of dependents of an item.
    fn update_dependents(&self, id: i64, now: Now) -> Result<Statement>;

    /// Finds a schedule by name; returns its cron pattern, interval and time zone, its next and last tick, and the last
    /// item.
    fn known_schedule(&self, queue: &str, name: &str) -> Result<Statement>;

    /// Adds or replaces a schedule.
    fn schedule(&self, queue: &str, schedule: &Schedule, row: &NewRow) -> Result<Statement>;

    /// Begins a part of the caller's transaction that can be undone.
    fn savepoint(&self) -> Statement;

    /// Ends that part.
    fn release(&self) -> Statement;

    /// Undoes that part; it is still to be ended.
    fn undo(&self) -> Statement;

    /// Begins a transaction that writes.
    fn begin(&self) -> Statement;

    /// Undoes that transaction.
    fn roll_back(&self) -> Statement;
}
