//! How a database and a queue in it are.

use super::Kept;

#[derive(Clone, Debug)]
pub struct Health {
    /// What SQLite found wrong with the file, and what is missing or altered of our schema; nothing if it is sound.
    pub faults: Vec<String>,
    /// What was missing or altered of our schema when the file was opened, and was made anew.
    pub mended: Vec<String>,
    /// Items whose status is none, so that nothing sees them; only a thorough look finds them.
    pub unknown_status: Vec<i64>,
    /// Finished items that rows of other tables refer to: retention passes them over.
    pub kept: Vec<Kept>,
    pub schema_version: i64,
    pub file_bytes: i64,
    /// Of the file: space of removed rows.
    pub free_bytes: i64,
    pub wal_bytes: u64,
    /// Our locks belong to the open file, so another copy of SQLite in the process cannot drop them.
    pub own_locks: bool,
    /// Who holds the write lock at this moment, as far as the system tells.
    pub writer: Option<String>,
    /// Items whose claim has ended without an end: the holder is gone, or the lease ran out.
    pub stuck: Vec<i64>,
}
