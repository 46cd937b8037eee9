//! Numbered migrations: a new file gets its tables, a file made by membox is extended in place, a newer one is refused.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::connection::Place;
use super::statement;
use crate::error::{Error, Result};

/// The schema this version writes.
pub const VERSION: i64 = 1;

/// What differs from file to file after migration.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The application has a `meta` table of another shape, so the worker lease lives in ours.
    pub own_meta: bool,
}

/// Brings a freshly opened file to the present schema and into WAL mode.
pub fn prepare(connection: &mut Connection, place: &Place, patience: Duration) -> Result<Shape> {
    // Reading comes first: a file that is no database, or belongs to a newer version, is not touched.
    let found = version(connection)?;
    refuse_newer(found)?;
    if let Place::File(_) = place {
        switch_to_wal(connection, patience)?;
    }
    if found < VERSION {
        upgrade(connection)?;
    }
    Ok(Shape { own_meta: !fits_lease(connection)? })
}

fn upgrade(connection: &mut Connection) -> Result<()> {
    let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have been first.
    let found = version(&tx)?;
    refuse_newer(found)?;
    for step in found..VERSION {
        match step {
            0 => create_or_extend(&tx)?,
            _ => unreachable!("every version below VERSION has its step"),
        }
    }
    tx.execute(statement!("meta_create"), [])?;
    tx.execute(statement!("schema_version_set"), [VERSION.to_string()])?;
    tx.commit()?;
    Ok(())
}

fn version(connection: &Connection) -> Result<i64> {
    if !exists(connection, "membox_queue_meta")? {
        return Ok(0);
    }
    let version = connection.query_row(statement!("schema_version"), [], |row| row.get(0)).optional()?;
    Ok(version.unwrap_or(0))
}

fn refuse_newer(found: i64) -> Result<()> {
    if found > VERSION { Err(Error::SchemaVersion { found, known: VERSION }) } else { Ok(()) }
}

fn create_or_extend(connection: &Connection) -> Result<()> {
    if exists(connection, "ingest_queue")? {
        extend(connection)?;
    } else {
        connection.execute_batch(include_str!("migrations/0001_create.sql"))?;
    }
    connection.execute_batch(include_str!("migrations/0001_indexes.sql"))?;
    Ok(())
}

/// Membox's own columns: without them the table is somebody else's.
const MEMBOX_COLUMNS: [&str; 11] = [
    "id",
    "content",
    "project",
    "source_path",
    "doc_date",
    "status",
    "retries",
    "error",
    "enqueued_at",
    "started_at",
    "finished_at",
];

fn extend(connection: &Connection) -> Result<()> {
    let present = columns(connection, "ingest_queue")?;
    let has = |name: &str| present.iter().any(|column| column.name.eq_ignore_ascii_case(name));
    let missing: Vec<_> = MEMBOX_COLUMNS.into_iter().filter(|name| !has(name)).collect();
    let keyed = present.iter().filter(|column| column.key > 0).map(|column| column.name.as_str()).collect::<Vec<_>>();
    if !missing.is_empty() || keyed != ["id"] {
        return Err(Error::Storage(format!(
            "the file has a table ingest_queue that is not a queue (missing columns: {}; primary key: {}); \
             use another file",
            missing.join(", "),
            keyed.join(", ")
        )));
    }
    for (name, statement) in additions() {
        if !has(name) {
            connection.execute_batch(statement)?;
        }
    }
    Ok(())
}

/// The statements that add a column, each with the column's name.
fn additions() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("migrations/0001_extend.sql").split_inclusive(';').filter_map(|statement| {
        let name = statement.split("ADD COLUMN ").nth(1)?.split_whitespace().next()?;
        Some((name, statement))
    })
}

struct Column {
    name: String,
    optional: bool,
    key: i64,
}

fn columns(connection: &Connection, table: &str) -> Result<Vec<Column>> {
    let mut statement = connection.prepare(statement!("columns"))?;
    let columns = statement
        .query_map([table], |row| Ok(Column { name: row.get(0)?, optional: row.get(1)?, key: row.get(2)? }))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(columns)
}

/// Whether `meta` can hold the worker lease: a key, a value, and nothing else that must be given.
fn fits_lease(connection: &Connection) -> Result<bool> {
    let present = columns(connection, "meta")?;
    let has = |name: &str| present.iter().any(|column| column.name == name);
    Ok(has("key") && has("value") && present.iter().all(|c| c.optional || c.name == "key" || c.name == "value"))
}

fn exists(connection: &Connection, table: &str) -> Result<bool> {
    Ok(connection.query_row(statement!("table_exists"), [table], |row| row.get(0))?)
}

/// The switch needs the file for itself for a moment, and SQLite reports that without asking the busy handler.
fn switch_to_wal(connection: &Connection, patience: Duration) -> Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Error::Storage(format!(
                    "the file stays in journal mode '{mode}', but the queue needs WAL; is it on a network file system?"
                )));
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error.into()),
        }
    }
}
