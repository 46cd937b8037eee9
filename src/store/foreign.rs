//! What an engine must offer for the caller's own connection: plain statements. The caller's library runs them in the
//! caller's transaction.

use std::borrow::Cow;

use super::{End, EndStep, EndSteps, ItemChange, NewRow};
use crate::error::Result;
use crate::model::{Now, Receipt, Schedule, Status, Value};

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

    /// Returns the id of the last inserted row, and how many rows the last statement changed.
    fn written(&self) -> Statement;

    /// The names of the application's triggers on our table.
    fn foreign_triggers(&self) -> Statement;

    /// Finds a schedule by name; returns its cron pattern, interval and time zone, its next and last tick, and the last
    /// item.
    fn known_schedule(&self, queue: &str, name: &str) -> Result<Statement>;

    /// Adds or replaces a schedule.
    fn schedule(&self, queue: &str, schedule: &Schedule, row: &NewRow) -> Result<Statement>;

    /// One step of an end; see [`EndStep`].
    fn end(&self, queue: &str, step: EndStep, steps: &EndSteps<End>, now: Now) -> Result<Statement>;

    /// Finds a valid receipt, and returns whether its item was cancelled.
    fn holds(&self, queue: &str, receipt: Receipt) -> Result<Statement>;

    /// Changes one row, and nothing in it, if the receipt is valid and its item was not cancelled. Locks the item.
    fn present(&self, queue: &str, receipt: Receipt) -> Result<Statement>;

    /// Changes one item.
    fn change(&self, queue: &str, id: i64, change: ItemChange, now: Now) -> Result<Statement>;

    /// Finds the newest item with a key; returns its id.
    fn newest_with_key(&self, queue: &str, key: &str) -> Result<Statement>;

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
