//! What an engine must offer for the caller's own connection: plain statements. The caller's library runs them in the
//! caller's transaction.

use std::borrow::Cow;

use super::{End, EndStep, EndSteps, ItemChange, NewRow};
use crate::error::Result;
use crate::model::{Answer, IfFailed, Now, Receipt, Schedule, Status, StepKind, Value};

/// A statement and its values.
#[derive(Clone)]
pub struct Statement {
    pub sql: Cow<'static, str>,
    pub values: Vec<Value>,
    pub returns_rows: bool,
    /// What it does to the block of `item.transaction`. A library that keeps account of its transactions does that
    /// itself instead.
    pub block: Option<BlockStatement>,
}

/// The statements around the block of `item.transaction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockStatement {
    /// Begins the transaction that is the block.
    Begin,
    /// Begins the block in the caller's own transaction.
    Savepoint,
    Release,
    /// Undoes the block; its savepoint is still to be released.
    Undo,
    /// Commits the transaction that is the block.
    Commit,
    RollBack,
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
    fn make_blocked(&self, enqueue: &mut Statement);

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

    /// Records that the dependents of all items are to be updated that an item still waits for.
    fn note_awaited_by(&self, id: i64) -> Result<Statement>;

    /// Lists up to `limit` items that wait for an item and are not done.
    fn needed_by(&self, id: i64, limit: i64) -> Result<Statement>;

    /// Updates a bounded number of dependents of an item.
    fn update_dependents(&self, id: i64, now: Now) -> Result<Statement>;

    /// Finds a schedule by name; returns its cron pattern, interval and time zone, its next and last tick, and the last
    /// item.
    fn known_schedule(&self, queue: &str, name: &str) -> Result<Statement>;

    /// Adds or replaces a schedule.
    fn schedule(&self, queue: &str, schedule: &Schedule, row: &NewRow) -> Result<Statement>;

    /// One step of an end; see [`EndStep`].
    fn end(&self, queue: &str, step: EndStep, steps: &EndSteps<End>, now: Now) -> Result<Statement>;

    /// Finds a valid receipt, and returns whether its item was cancelled.
    fn holds(&self, queue: &str, receipt: Receipt, now: Now) -> Result<Statement>;

    /// Changes one row, and nothing in it, if the receipt is valid and its item was not cancelled. Locks the item.
    fn present(&self, queue: &str, receipt: Receipt) -> Result<Statement>;

    /// Changes one item.
    fn change(&self, queue: &str, id: i64, change: ItemChange, now: Now) -> Result<Statement>;

    /// Finds the items of a finished status; returns their ids.
    fn finished_ids(&self, queue: &str, status: Status) -> Result<Statement>;

    /// What begins or ends the block of `item.transaction`.
    fn block(&self, statement: BlockStatement) -> Statement;

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
