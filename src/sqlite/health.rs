//! How a file fares: its soundness, its schema, its size, its log and its locks.

use rusqlite::{Connection, params};

use super::{Database, Place, Transaction, locks, migrate, schema, statement};
use crate::error::{Error, Result};
use crate::model::Now;
use crate::store::{Health, Kept, View};

/// As many faults, and as many items of a kind, are told at most.
const MOST_TOLD: usize = 100;

impl Database {
    pub fn health(&self, queue: &str, now: Now, lease_ms: i64, thorough: bool) -> Result<Health> {
        let (own_locks, writer) = match self.place() {
            Place::Memory(_) => (true, None),
            Place::File(path) => {
                (locks::has_own_locks(path), locks::obstacle(path).and_then(|obstacle| name(&obstacle)))
            }
        };
        let wal_bytes = self.log_path().and_then(|log| std::fs::metadata(log).ok()).map_or(0, |file| file.len());
        self.read(|connection| {
            let page_bytes = number(connection, "PRAGMA page_size")?;
            // Damage is an answer here, not an error, wherever it is met.
            let mut faults = if thorough { faults(connection)? } else { Vec::new() };
            let altered = schema::differences(connection)?;
            faults.extend(altered.iter().map(schema::Difference::describe));
            if !self.shape().own_meta && !migrate::exists(connection, "meta")? {
                faults.push(schema::fault("table meta", "is missing"));
            }
            let mut or_fault = |found: Result<Vec<i64>>| match found {
                Err(Error::Corrupt(text)) => {
                    faults.push(text);
                    Ok(Vec::new())
                }
                // What it goes by is missing, which is told above.
                Err(Error::Storage(_)) if !altered.is_empty() => Ok(Vec::new()),
                found => found,
            };
            let stuck = or_fault(Transaction::new(connection, self, now).stuck_items(queue, lease_ms))?;
            let unknown_status = or_fault(if thorough { unknown_status(connection, queue) } else { Ok(Vec::new()) })?;
            Ok(Health {
                faults,
                mended: self.mended().to_vec(),
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

    fn kept(&self, connection: &Connection, queue: &str) -> Result<Vec<Kept>> {
        let mut kept = Vec::new();
        for reference in self.references().of(connection)?.iter() {
            let mut ids = reference.finished(connection, queue, MOST_TOLD)?;
            ids.sort_unstable();
            kept.extend(ids.into_iter().map(|id| Kept { id, table: reference.table.clone() }));
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
    let rows = statement.query_map(params![queue, MOST_TOLD as i64], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn number(connection: &Connection, pragma: &str) -> Result<i64> {
    Ok(connection.query_row(pragma, [], |row| row.get(0))?)
}

fn name(obstacle: &locks::Obstacle) -> Option<String> {
    if obstacle.kind == locks::Kind::Reads {
        return None;
    }
    Some(match obstacle.holder {
        locks::Holder::ThisProcess => "this process".into(),
        locks::Holder::Process(pid) => format!("process {pid}"),
        locks::Holder::Unknown => "another process".into(),
    })
}
