//! The health of a file: its integrity, its schema, its size, its WAL and its locks.

use rusqlite::{Connection, params};

use super::{Database, Location, Transaction, locks, migrate, schema, statement};
use crate::error::{Error, Result};
use crate::model::Now;
use crate::store::{Health, ReferencedItem, View};

/// The largest number of faults, and of items of each kind, that is reported.
const MOST_REPORTED: usize = 100;

impl Database {
    pub fn health(&self, queue: &str, now: Now, lease_ms: i64, thorough: bool) -> Result<Health> {
        let (own_locks, writer) = match self.location() {
            Location::Memory(_) => (true, None),
            Location::File(path) => {
                (locks::has_own_locks(path), locks::blocking_lock(path).and_then(|lock| name(&lock)))
            }
        };
        let wal_bytes = self.wal_path().and_then(|wal| std::fs::metadata(wal).ok()).map_or(0, |file| file.len());
        self.read(|connection| {
            let page_bytes = number(connection, "PRAGMA page_size")?;
            // Damage is a result here, not an error.
            let mut faults = if thorough { faults(connection)? } else { Vec::new() };
            let altered = schema::differences(connection)?;
            faults.extend(altered.iter().map(schema::Difference::describe));
            if !migrate::has_place_for_lease(connection)? {
                faults.push(schema::fault("table meta", "is missing"));
            }
            let mut or_fault = |found: Result<Vec<i64>>| match found {
                Err(Error::Corrupt(text)) => {
                    faults.push(text);
                    Ok(Vec::new())
                }
                // An object that the statement needs is missing, which is reported above.
                Err(Error::Storage(_)) if !altered.is_empty() => Ok(Vec::new()),
                found => found,
            };
            let stuck = or_fault(Transaction::new(connection, self, now).stuck_items(queue, lease_ms))?;
            let unknown_status = or_fault(if thorough { unknown_status(connection, queue) } else { Ok(Vec::new()) })?;
            Ok(Health {
                faults,
                recreated: self.recreated().to_vec(),
                unknown_status,
                kept: self.kept(connection, queue)?,
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

    fn kept(&self, connection: &Connection, queue: &str) -> Result<Vec<ReferencedItem>> {
        let mut kept = Vec::new();
        for reference in self.references().of(connection)?.iter() {
            let mut ids = reference.finished(connection, queue, MOST_REPORTED)?;
            ids.sort_unstable();
            kept.extend(ids.into_iter().map(|id| ReferencedItem { id, table: reference.table.clone() }));
        }
        Ok(kept)
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

fn unknown_status(connection: &Connection, queue: &str) -> Result<Vec<i64>> {
    let mut statement = connection.prepare(statement!("unknown_status"))?;
    let rows = statement.query_map(params![queue, MOST_REPORTED as i64], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn number(connection: &Connection, pragma: &str) -> Result<i64> {
    Ok(connection.query_row(pragma, [], |row| row.get(0))?)
}

fn name(lock: &locks::BlockingLock) -> Option<String> {
    if lock.kind == locks::LockKind::Reads {
        return None;
    }
    Some(match lock.holder {
        locks::LockHolder::ThisProcess => "this process".into(),
        locks::LockHolder::Process(pid) => format!("process {pid}"),
        locks::LockHolder::Unknown => "another process".into(),
    })
}
