//! Schema comparison: which of our schema objects a file lacks or has altered, and how they are recreated.

use std::sync::OnceLock;

use rusqlite::Connection;

use super::{migrate, statement};
use crate::error::{Error, Result};

/// One of our tables, indexes, views or triggers.
pub struct Object {
    pub kind: String,
    pub name: String,
    sql: String,
}

impl Object {
    pub fn describe(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    /// Triggers have a separate namespace; tables, views and indexes share one.
    fn has_name_of(&self, other: &Object) -> bool {
        self.name.eq_ignore_ascii_case(&other.name) && (self.kind == "trigger") == (other.kind == "trigger")
    }

    /// Returns whether the file has the object as expected. Tables differ with the history of the file, so only their
    /// presence is checked.
    fn is_like(&self, expected: &Object) -> bool {
        let is_same_text = || self.sql == expected.sql || words(&self.sql).eq(words(&expected.sql));
        self.kind == expected.kind && (self.kind == "table" || is_same_text())
    }
}

/// White space in the text of a statement does not matter.
fn words(sql: &str) -> impl Iterator<Item = &str> {
    sql.split_whitespace()
}

/// One schema object that differs from the expected one.
pub struct Difference {
    pub expected: &'static Object,
    /// What the file has under that name.
    found: Option<Object>,
}

impl Difference {
    pub fn describe(&self) -> String {
        let how = if self.found.is_some() { "is not as it should be" } else { "is missing" };
        fault(&self.expected.describe(), how)
    }
}

pub fn fault(what: &str, how: &str) -> String {
    format!("{what} {how}; close the queue and open it again to have it made anew")
}

/// The expected objects in the order of their creation, found by creating them in memory once per process.
fn expected() -> Result<&'static [Object]> {
    static EXPECTED: OnceLock<Vec<Object>> = OnceLock::new();
    // No thread waits for another here: a fork at that moment would leave the child waiting forever.
    if let Some(known) = EXPECTED.get() {
        return Ok(known);
    }
    let connection = Connection::open_in_memory()?;
    migrate::create(&connection)?;
    let made = objects(&connection)?;
    Ok(EXPECTED.get_or_init(|| made))
}

fn objects(connection: &Connection) -> Result<Vec<Object>> {
    let mut statement = connection.prepare(statement!("objects"))?;
    let rows = statement.query_map([], |row| Ok(Object { kind: row.get(0)?, name: row.get(1)?, sql: row.get(2)? }))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub fn differences(connection: &Connection) -> Result<Vec<Difference>> {
    let expected = expected()?;
    let mut present = objects(connection)?;
    let compare = |expected: &'static Object| {
        let location = present.iter().position(|object| object.has_name_of(expected));
        let found = location.map(|location| present.swap_remove(location));
        let is_right = found.as_ref().is_some_and(|found| found.is_like(expected));
        (!is_right).then_some(Difference { expected, found })
    };
    Ok(expected.iter().filter_map(compare).collect())
}

/// Returns whether a file that has lost its version still has some of our objects.
pub fn has_remains(connection: &Connection) -> Result<bool> {
    let present = objects(connection)?;
    let expected = expected()?;
    let is_ours = |object: &Object| expected.iter().any(|other| object.has_name_of(other));
    Ok(present.iter().any(|object| object.name != "ingest_queue" && is_ours(object)))
}

/// Creates temporary twins of our views and their triggers, which fire while the file's own triggers are off.
pub fn create_twins(connection: &Connection) -> Result<()> {
    let is_twin = |object: &&Object| object.kind == "view" || object.sql.contains(" INSTEAD OF ");
    for object in expected()?.iter().filter(is_twin) {
        connection.execute_batch(&object.sql.replacen("CREATE ", "CREATE TEMP ", 1))?;
    }
    Ok(())
}

/// Returns whether one of our tables has a trigger that is not ours.
pub fn has_foreign_triggers(connection: &Connection) -> Result<bool> {
    let mut statement = connection.prepare(statement!("triggers"))?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let expected = expected()?;
    let is_ours = |name: &String| expected.iter().any(|object| object.kind == "trigger" && object.name == *name);
    Ok(!names.iter().all(is_ours))
}

/// Lists our objects that the file has.
pub fn ours(connection: &Connection) -> Result<Vec<Object>> {
    let (mut present, expected) = (objects(connection)?, expected()?);
    let is_ours = |object: &Object| expected.iter().any(|other| object.has_name_of(other) && object.kind == other.kind);
    present.retain(is_ours);
    Ok(present)
}

/// Recreates what is missing or altered, and recounts what triggers would have counted. Returns what it created.
pub fn recreate(connection: &Connection) -> Result<Vec<String>> {
    let differences = differences(connection)?;
    if differences.is_empty() {
        return Ok(Vec::new());
    }
    for Difference { expected, found } in &differences {
        match found {
            None => {}
            Some(found) if found.kind == "table" || expected.kind == "table" => {
                return Err(Error::Storage(format!(
                    "the file has a {} of its own where the queue needs its {}; rename it, or use another file",
                    found.describe(),
                    expected.kind,
                )));
            }
            Some(found) => connection.execute_batch(&format!("DROP {} IF EXISTS {}", found.kind, expected.name))?,
        }
    }
    // Dropping a view drops its triggers.
    let missing = self::differences(connection)?.into_iter().map(|difference| difference.expected).collect::<Vec<_>>();
    let (tables, others): (Vec<&Object>, _) = missing.iter().partition(|object| object.kind == "table");
    tables.iter().try_for_each(|table| connection.execute_batch(&table.sql))?;
    migrate::extend(connection)?;
    // Of keys that came twice meanwhile one is freed. That update fires triggers, which need everything but this index.
    let (keys, others): (Vec<&Object>, Vec<_>) =
        others.into_iter().partition(|object| object.name == "ingest_queue_key");
    others.iter().try_for_each(|object| connection.execute_batch(&object.sql))?;
    for index in keys {
        connection.execute_batch(include_str!("migrations/free_keys.sql"))?;
        connection.execute_batch(&index.sql)?;
    }
    if missing.iter().any(|object| object.kind != "index") {
        connection.execute_batch(include_str!("migrations/recount.sql"))?;
    }
    Ok(missing.into_iter().map(Object::describe).collect())
}
