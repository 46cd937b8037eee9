//! How a file fares: its soundness, its size, its log and its locks.

use rusqlite::Connection;

use super::{Database, Place, claims_of, expired, holders, locks, migrate};
use crate::clock::Now;
use crate::error::{Error, Result};

/// As many faults, and as many stuck items, are told at most.
const MOST_TOLD: usize = 100;

#[derive(Clone, Debug)]
pub struct Health {
    /// What SQLite found wrong with the file; nothing if it is sound.
    pub faults: Vec<String>,
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

impl Database {
    pub fn health(&self, queue: &str, now: Now, lease_ms: i64, thorough: bool) -> Result<Health> {
        let (own_locks, writer) = match self.place() {
            Place::Memory(_) => (true, None),
            Place::File(path) => (locks::has_own_locks(path), name(&locks::writer(path))),
        };
        let wal_bytes = self.log_path().and_then(|log| std::fs::metadata(log).ok()).map_or(0, |file| file.len());
        self.read(|connection| {
            let page_bytes = number(connection, "PRAGMA page_size")?;
            // Damage is an answer here, not an error, wherever it is met.
            let mut faults = if thorough { faults(connection)? } else { Vec::new() };
            let stuck = match self.stuck(connection, queue, now, lease_ms) {
                Err(Error::Corrupt(text)) => {
                    faults.push(text);
                    Vec::new()
                }
                found => found?,
            };
            Ok(Health {
                faults,
                schema_version: migrate::version(connection)?,
                file_bytes: page_bytes * number(connection, "PRAGMA page_count")?,
                free_bytes: page_bytes * number(connection, "PRAGMA freelist_count")?,
                wal_bytes,
                own_locks,
                writer,
                stuck,
            })
        })
    }

    fn stuck(&self, connection: &Connection, queue: &str, now: Now, lease_ms: i64) -> Result<Vec<i64>> {
        let mut claims = expired(connection, queue, now, lease_ms, MOST_TOLD)?;
        for holder in holders(connection, queue)?.into_iter().filter(|holder| !self.is_alive(*holder)) {
            claims.extend(claims_of(connection, queue, holder, MOST_TOLD)?);
        }
        let mut ids = claims.into_iter().map(|claim| claim.fence.id).collect::<Vec<_>>();
        ids.sort_unstable();
        ids.dedup();
        ids.truncate(MOST_TOLD);
        Ok(ids)
    }
}

fn faults(connection: &Connection) -> Result<Vec<String>> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let lines = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>();
    match lines.map_err(Error::from) {
        Ok(lines) => Ok(lines.into_iter().filter(|line| line != "ok").collect()),
        Err(Error::Corrupt(text)) => Ok(vec![text]),
        Err(error) => Err(error),
    }
}

fn number(connection: &Connection, pragma: &str) -> Result<i64> {
    Ok(connection.query_row(pragma, [], |row| row.get(0))?)
}

fn name(writer: &locks::Writer) -> Option<String> {
    match writer {
        locks::Writer::Nobody => None,
        locks::Writer::ThisProcess => Some("this process".into()),
        locks::Writer::Process(pid) => Some(format!("process {pid}")),
        locks::Writer::Unknown => Some("another process".into()),
    }
}
