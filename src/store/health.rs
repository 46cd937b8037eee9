//! The health of a database and of a queue in it.

use super::ReferencedItem;

#[derive(Clone, Debug)]
pub struct Health {
    /// What SQLite found wrong with the file, and what our schema lacks or has altered; empty if it is sound.
    pub faults: Vec<String>,
    /// Schema objects that were missing or altered when the file was opened, and were recreated.
    pub recreated: Vec<String>,
    /// Items with an unknown status, which no verb sees; only a thorough check finds them.
    pub unknown_status: Vec<i64>,
    /// Finished items that rows of other tables refer to; retention skips them.
    pub kept: Vec<ReferencedItem>,
    pub schema_version: i64,
    pub file_bytes: i64,
    /// Space of removed rows in the file.
    pub free_bytes: i64,
    pub wal_bytes: u64,
    /// Whether our locks belong to the open file, so that another copy of SQLite in the process cannot drop them.
    pub own_locks: bool,
    /// The process that holds the write lock at this moment, as far as the system reveals it.
    pub writer: Option<String>,
    /// Items whose claim is over without an end: the process is gone, or the lease expired.
    pub stuck: Vec<i64>,
}
