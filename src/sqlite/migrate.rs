//! Numbered migrations: a new file gets its tables, a file made by membox is extended in place, a newer one is refused.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::{Location, schema, statement};
use crate::error::{Error, Result};

/// The schema this version writes.
pub const VERSION: i64 = 6;

/// The value of `PRAGMA auto_vacuum` that allows free pages to be returned in small steps.
const INCREMENTAL: i64 = 2;

/// What differs from file to file after migration.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Free pages can be returned to the file system in small steps.
    pub returns_space: bool,
}

/// What opening a file found and did.
pub struct Prepared {
    pub shape: Shape,
    /// Schema objects that were missing or altered, and were recreated.
    pub recreated: Vec<String>,
}

/// Migrates a newly opened file to the current schema and switches it to WAL mode.
pub fn prepare(connection: &mut Connection, location: &Location, patience: Duration) -> Result<Prepared> {
    // Reads first. Nothing is written to a file that is not a database, belongs to a newer version, or has another kind
    // of table under our name.
    let found = version(connection)?;
    if found == 0 {
        check_table(connection)?;
    }
    if let Location::File(_) = location {
        // Takes effect only in an empty file, which will be ours. Its free pages can then be returned in small steps.
        if connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))? == 0 {
            connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
        }
        switch_to_wal(connection, patience)?;
    }
    let is_whole = found == VERSION && schema::differences(connection)?.is_empty() && has_place_for_lease(connection)?;
    let recreated = if is_whole { Vec::new() } else { upgrade(connection)? };
    let vacuum: i64 = connection.query_row("PRAGMA auto_vacuum", [], |row| row.get(0))?;
    Ok(Prepared { shape: Shape { returns_space: vacuum == INCREMENTAL }, recreated })
}

fn upgrade(connection: &mut Connection) -> Result<Vec<String>> {
    let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have migrated it in the meantime.
    let found = version(&tx)?;
    check_table(&tx)?;
    let may_use_meta = found > 0 || is_made_by_membox(&tx)?;
    // Without a version, the file has nothing of ours or remains of dropped tables, which are completed below.
    let has_lost_version = found == 0 && schema::has_remains(&tx)?;
    if has_lost_version {
        tx.execute_batch(include_str!("migrations/leave.sql"))?;
    } else if found < VERSION {
        migrate(&tx, found)?;
    }
    let recreated = schema::recreate(&tx)?;
    let has_place_for_lease = lease_is_ours(&tx)? || (may_use_meta && has_meta_of_membox(&tx)?);
    if !has_place_for_lease {
        tx.execute(statement!("lease_is_ours_set"), [])?;
    }
    tx.execute(statement!("schema_version_set"), [VERSION.to_string()])?;
    tx.commit()?;
    Ok(if found == VERSION || has_lost_version { recreated } else { Vec::new() })
}

/// Returns whether worker leases can be stored. Without our own table, that is another fault.
pub fn has_place_for_lease(connection: &Connection) -> Result<bool> {
    Ok(!exists(connection, "membox_queue_meta")? || lease_is_ours(connection)? || has_meta_of_membox(connection)?)
}

/// Returns whether worker leases are stored in our own table. Otherwise they are in membox's `meta`.
pub fn lease_is_ours(connection: &Connection) -> Result<bool> {
    Ok(connection.prepare_cached(statement!("lease_is_ours"))?.query_row([], |row| row.get(0))?)
}

/// Returns whether the file has a `meta` in which membox looks for worker leases. An application's own `meta` may have
/// another shape.
pub fn has_meta_of_membox(connection: &Connection) -> Result<bool> {
    let kind: Option<String> = connection.query_row(statement!("kind_of"), ["meta"], |row| row.get(0)).optional()?;
    if kind.as_deref() != Some("table") {
        return Ok(false);
    }
    let present = columns(connection, "meta")?;
    let is_text = |name: &str| {
        let found = present.iter().find(|column| column.name.eq_ignore_ascii_case(name));
        found.is_some_and(|column| column.kind.is_empty() || column.kind.eq_ignore_ascii_case("TEXT"))
    };
    let is_known = |column: &Column| ["key", "value"].iter().any(|name| column.name.eq_ignore_ascii_case(name));
    let is_demanding = |column: &Column| column.required && column.default.is_none() && !is_known(column);
    Ok(is_text("key") && is_text("value") && !present.iter().any(is_demanding))
}

/// Returns whether membox made the table of items: ours has another default.
pub fn is_made_by_membox(connection: &Connection) -> Result<bool> {
    let present = columns(connection, "ingest_queue")?;
    let time = present.iter().find(|column| column.name.eq_ignore_ascii_case("enqueued_at"));
    Ok(time.is_some_and(|column| !column.default.as_deref().is_some_and(|default| default.contains("strftime"))))
}

/// Stores the worker leases in membox's `meta` from now on, where membox's own programs look for them. Returns false if
/// the file has a `meta` of another shape.
pub fn share_leases(connection: &Connection) -> Result<bool> {
    if !exists(connection, "meta")? {
        connection.execute_batch(include_str!("migrations/meta.sql"))?;
    }
    let is_shared = has_meta_of_membox(connection)?;
    if is_shared {
        connection.execute_batch(include_str!("migrations/leases_to_meta.sql"))?;
    }
    Ok(is_shared)
}

/// Creates everything that a new file gets.
pub fn create(connection: &Connection) -> Result<()> {
    migrate(connection, 0)
}

/// Brings the tables up to date. Other objects of an earlier version that have another shape now are made anew by
/// [`schema::recreate`].
fn migrate(connection: &Connection, found: i64) -> Result<()> {
    let run = |sql: &str| connection.execute_batch(sql);
    if found > 0 {
        run(include_str!("migrations/leave.sql"))?;
        if columns(connection, "membox_queue_counts")?.iter().any(|column| column.name == "pending") {
            run(include_str!("migrations/leave_counts.sql"))?;
        }
        return extend(connection);
    }
    if exists(connection, "ingest_queue")? {
        extend(connection)?;
    } else {
        run(include_str!("migrations/items.sql"))?;
    }
    run(include_str!("migrations/indexes.sql"))?;
    run(include_str!("migrations/counts.sql"))?;
    run(include_str!("migrations/tables.sql"))?;
    run(include_str!("migrations/checksums.sql"))?;
    run(include_str!("migrations/groups.sql"))?;
    run(include_str!("migrations/workflows.sql"))?;
    run(include_str!("migrations/guards.sql"))?;
    run(include_str!("migrations/status.sql"))?;
    run(include_str!("migrations/recount.sql"))?;
    Ok(())
}

/// Returns whether a file has a queue, ours or membox's.
pub fn has_queue(connection: &Connection) -> Result<bool> {
    Ok(exists(connection, "membox_queue_meta")? || exists(connection, "ingest_queue")?)
}

/// Returns the schema version; 0 for a file that has no queue of ours yet.
pub fn version(connection: &Connection) -> Result<i64> {
    if !exists(connection, "membox_queue_meta")? {
        return Ok(0);
    }
    let stored: Option<String> = connection.query_row(statement!("schema_version"), [], |row| row.get(0)).optional()?;
    match stored.as_deref().map(str::parse::<i64>) {
        Some(Ok(found)) if found > VERSION => Err(Error::SchemaVersion { found, known: VERSION }),
        Some(Ok(found)) if found >= 1 => Ok(found),
        _ => Err(Error::Corrupt(format!(
            "the schema_version in membox_queue_meta is {stored:?}, which no version of this library writes; \
             restore a backup, nothing was changed"
        ))),
    }
}

/// Membox's own columns. A table without them belongs to another application.
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

/// Refuses an `ingest_queue` that is not a queue: items enqueued into it would be lost.
fn check_table(connection: &Connection) -> Result<()> {
    let kind: Option<String> =
        connection.query_row(statement!("kind_of"), ["ingest_queue"], |row| row.get(0)).optional()?;
    let objection = match kind.as_deref() {
        None => return Ok(()),
        Some("table")
            if connection.query_row(statement!("is_without_rowid"), ["ingest_queue"], |row| row.get(0))? =>
        {
            Some("it is WITHOUT ROWID".into())
        }
        Some("table") => objection(&columns(connection, "ingest_queue")?),
        Some(kind) => Some(format!("it is a {kind}")),
    };
    match objection {
        None => Ok(()),
        Some(reason) => Err(Error::Storage(format!(
            "the file has an ingest_queue of its own that is not a queue: {reason}; use another file"
        ))),
    }
}

fn objection(present: &[Column]) -> Option<String> {
    let find = |name: &str| present.iter().find(|column| column.name.eq_ignore_ascii_case(name));
    if let Some(missing) = MEMBOX_COLUMNS.into_iter().find(|name| find(name).is_none()) {
        return Some(format!("it has no column {missing}"));
    }
    let keys = present.iter().filter(|column| column.key > 0).collect::<Vec<_>>();
    if !matches!(keys[..], [key] if key.name.eq_ignore_ascii_case("id") && key.kind.eq_ignore_ascii_case("INTEGER")) {
        return Some("its id is not an INTEGER PRIMARY KEY".into());
    }
    if find("status").and_then(|status| status.default.as_deref()) != Some("'pending'") {
        return Some("its status is not 'pending' by default".into());
    }
    let known =
        |name: &str| MEMBOX_COLUMNS.into_iter().chain(additions().map(|(_, name, _)| name)).any(|known| known == name);
    let demanding = |column: &&Column| column.required && column.default.is_none() && column.key == 0;
    let unknown = present.iter().filter(demanding).find(|column| !known(&column.name.to_ascii_lowercase()));
    unknown.map(|column| format!("its column {} must be given a value", column.name))
}

/// Adds the columns that our tables lack. A missing table is left to [`schema::recreate`].
pub fn extend(connection: &Connection) -> Result<()> {
    let mut table = ("", Vec::new());
    for (of, name, statement) in additions() {
        if table.0 != of {
            table = (of, columns(connection, of)?);
        }
        let is_present = |column: &Column| column.name.eq_ignore_ascii_case(name);
        if !table.1.is_empty() && !table.1.iter().any(is_present) {
            connection.execute_batch(statement)?;
        }
    }
    Ok(())
}

/// The statements that add a column, each with the names of the table and the column.
fn additions() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    include_str!("migrations/columns.sql").split_inclusive(';').filter_map(|statement| {
        let (table, column) = statement.split_once("ALTER TABLE ")?.1.split_once(" ADD COLUMN ")?;
        Some((table, column.split_whitespace().next()?, statement))
    })
}

struct Column {
    name: String,
    kind: String,
    required: bool,
    default: Option<String>,
    key: i64,
}

fn columns(connection: &Connection, table: &str) -> Result<Vec<Column>> {
    let mut statement = connection.prepare(statement!("columns"))?;
    let columns = statement
        .query_map([table], |row| {
            let [name, kind] = [row.get(0)?, row.get(1)?];
            Ok(Column { name, kind, required: row.get(2)?, default: row.get(3)?, key: row.get(4)? })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(columns)
}

pub fn exists(connection: &Connection, table: &str) -> Result<bool> {
    let kind: Option<String> = connection.query_row(statement!("kind_of"), [table], |row| row.get(0)).optional()?;
    Ok(kind.is_some())
}

/// Switches to WAL mode, which needs exclusive access for a moment; SQLite reports that without calling the busy
/// handler.
fn switch_to_wal(connection: &Connection, patience: Duration) -> Result<()> {
    let deadline = Instant::now().checked_add(patience);
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Error::Storage(format!(
                    "the file stays in journal mode '{mode}', but the queue needs WAL; is it on a network file system?"
                )));
            }
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && deadline.is_none_or(|deadline| Instant::now() < deadline) =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error.into()),
        }
    }
}
