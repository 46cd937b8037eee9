//! Removing the queue from a file: every schema object of ours, and nothing of the application's.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::file::{self, Identity, PATIENCE};
use super::locks::{self, LivenessLock};
use super::{Location, migrate, schema, statement};
use crate::error::{Error, Result};
use crate::model::Now;
use crate::rules::lease;
use crate::store::Removal;

/// Removes the queue from an existing file, or with `dry_run` only reports what would be removed. Unfinished items are
/// removed only with `discard`.
pub fn remove(given: &Path, discard: bool, dry_run: bool, now: Now) -> Result<Removal> {
    let location = Location::resolve(given)?;
    let Location::File(path) = &location else {
        return Err(Error::Invalid("a queue in memory is removed by closing it; give the path of a file".into()));
    };
    if file::is_open(path) {
        return Err(Error::Busy("a queue of this process has the file open; close it first".into()).about(path));
    }
    let removed = remove_from(&location, path, discard, dry_run, now);
    locks::sweep();
    removed.map_err(|error| error.about(path))
}

fn remove_from(location: &Location, path: &Path, discard: bool, dry_run: bool, now: Now) -> Result<Removal> {
    let mut connection = file::connect_existing(location)?;
    if migrate::version(&connection)? == 0 && !schema::has_remains(&connection)? {
        return Err(Error::Invalid(format!("{}: the file has no queue in it; nothing was changed", path.display())));
    }
    if !dry_run {
        // Afterwards the file has every object of ours under the name that this version knows.
        migrate::prepare(&mut connection, location, PATIENCE)?;
    }
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    check_is_idle(&tx, path, now)?;
    let is_kept = |name: &str| name.eq_ignore_ascii_case("ingest_queue");
    let keeps_items = migrate::is_made_by_membox(&tx)?;
    let ours = schema::ours(&tx)?;
    let dropped = ours.iter().filter(|object| !(keeps_items && is_kept(&object.name))).collect::<Vec<_>>();
    check_is_unused(&tx, &dropped)?;
    let (items, unfinished) = if keeps_items { (0, 0) } else { count(&tx)? };
    if unfinished > 0 && !discard && !dry_run {
        return Err(Error::Invalid(format!(
            "{}: the file has {unfinished} unfinished items, which would be lost; finish or cancel them, or pass \
             discard=True. Nothing was removed",
            path.display()
        )));
    }
    let objects = dropped.iter().map(|object| object.describe()).collect();
    if !dry_run {
        // Dropping a table or a view drops its indexes and triggers, so those go first.
        for kind in ["trigger", "index", "view", "table"] {
            for object in dropped.iter().filter(|object| object.kind == kind) {
                tx.execute_batch(&format!("DROP {kind} {}", object.name))?;
            }
        }
        tx.commit()?;
    }
    Ok(Removal { items, unfinished, objects })
}

/// Refuses while a worker lives, here or in another process: it would lose what it is working on.
fn check_is_idle(connection: &Connection, path: &Path, now: Now) -> Result<()> {
    let Identity(device, inode) =
        Identity::of(path).ok_or_else(|| Error::Storage("the file vanished while it was opened".into()))?;
    let mut records = Vec::new();
    if migrate::exists(connection, "membox_queue_meta")? {
        records.extend(texts(connection, statement!("own_leases"))?);
    }
    if migrate::has_meta_of_membox(connection)? {
        records.extend(texts(connection, statement!("leases"))?);
    }
    let is_alive = |holder| LivenessLock::is_seen(device, inode, holder);
    let live = records.iter().find_map(|record| lease::live(Some(record), lease::DEFAULT_TTL_MS, now, is_alive));
    let who = match live {
        Some(record) => format!("process {} works on it or is about to", record.pid),
        None if LivenessLock::is_any_seen(device, inode) => "a worker, or a claim that has not ended, uses it".into(),
        None => return Ok(()),
    };
    Err(Error::Busy(format!("{who}; stop the workers of this file first, nothing was removed")))
}

fn texts(connection: &Connection, sql: &str) -> Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    let found = statement.query_map([], |row| row.get(0))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// Refuses while something of the application would break: a foreign key, a trigger or a view that names a table of ours.
fn check_is_unused(connection: &Connection, dropped: &[&schema::Object]) -> Result<()> {
    let names = |word: &str| {
        let is_named = |object: &&&schema::Object| object.kind != "trigger" && object.name.eq_ignore_ascii_case(word);
        dropped.iter().find(is_named).map(|object| object.name.clone())
    };
    let mut statement = connection.prepare(statement!("mentions"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let [kind, name, table, sql]: [String; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
        let is_dropped = dropped.iter().any(|object| object.kind == kind && object.name == name);
        // What belongs to a table goes with it.
        if is_dropped || names(&table).is_some() {
            continue;
        }
        if let Some(used) = words(&sql).find_map(names) {
            return Err(Error::Storage(format!(
                "the {kind} {name} of the application uses {used}; drop or change it first, nothing was removed"
            )));
        }
    }
    Ok(())
}

fn words(sql: &str) -> impl Iterator<Item = &str> {
    sql.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
}

/// How many items there are, and how many of them are unfinished.
fn count(connection: &Connection) -> Result<(i64, i64)> {
    if !migrate::exists(connection, "ingest_queue")? {
        return Ok((0, 0));
    }
    Ok(connection.query_row(statement!("all_items"), [], |row| Ok((row.get(0)?, row.get(1)?)))?)
}
