//! What an engine must offer for the caller's own connection: plain statements, which the caller's library runs in the
//! caller's transaction.

use super::NewRow;
use crate::error::Result;
use crate::model::{Now, Value};

/// A statement and its values.
#[derive(Clone)]
pub struct Statement {
    pub sql: &'static str,
    pub values: Vec<Value>,
    pub returns_rows: bool,
}

pub trait ForeignStatements: Send + Sync {
    /// Inserts the item.
    fn enqueue(&self, queue: &str, row: &NewRow, now: Now) -> Result<Statement>;

    /// Finds the item that has a key: its id and status.
    fn find_key(&self, queue: &str, key: &str, since: Option<i64>, now: Now) -> Result<Statement>;

    /// Takes the key from an item that was cancelled while it runs.
    fn free_key(&self, queue: &str, key: &str) -> Result<Statement>;

    /// Says in its first column how many items wait.
    fn counts(&self, queue: &str) -> Result<Statement>;

    /// Gives an item new content; without its first value, the id, which is known only once the row was found.
    fn replace(&self, row: &NewRow) -> Result<Statement>;

    /// The id of the last new row, and how many rows the last statement changed.
    fn written(&self) -> Statement;

    /// The names of the application's triggers on our table.
    fn foreign_triggers(&self) -> Statement;
}
