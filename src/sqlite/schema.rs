//! The schema as it should be beside the one a file has: what is missing or altered is named, and made again.

use std::sync::OnceLock;

use rusqlite::Connection;

use super::{migrate, statement};
use crate::error::{Error, Result};

/// A table, index, view or trigger of ours.
pub struct Object {
    kind: String,
    name: String,
    sql: String,
}

impl Object {
    pub fn describe(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    /// Triggers have names of their own; a table, a view and an index cannot have the same.
    fn has_name_of(&self, other: &Object) -> bool {
        self.name.eq_ignore_ascii_case(&other.name) && (self.kind == "trigger") == (other.kind == "trigger")
    }

    /// Whether the file has it as it should be. Tables have grown in other ways from file to file: only that they are
    /// there counts.
    fn is_like(&self, expected: &Object) -> bool {
        let is_same_text = || self.sql == expected.sql || words(&self.sql).eq(words(&expected.sql));
        self.kind == expected.kind && (self.kind == "table" || is_same_text())
    }
}

/// How the text of a statement is laid out does not matter.
fn words(sql: &str) -> impl Iterator<Item = &str> {
    sql.split_whitespace()
}

/// What differs from the schema as it should be.
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

/// In the order they are made. They are found out by making them, once in a process.
fn expected() -> Result<&'static [Object]> {
    static EXPECTED: OnceLock<Vec<Object>> = OnceLock::new();
    // Nobody waits here for anybody: a fork may come in between.
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
        let place = present.iter().position(|object| object.has_name_of(expected));
        let found = place.map(|place| present.swap_remove(place));
        let is_right = found.as_ref().is_some_and(|found| found.is_like(expected));
        (!is_right).then_some(Difference { expected, found })
    };
    Ok(expected.iter().filter_map(compare).collect())
}

/// Whether something of ours is left in a file that has lost its version.
pub fn has_remains(connection: &Connection) -> Result<bool> {
    let present = objects(connection)?;
    let expected = expected()?;
    let is_ours = |object: &Object| expected.iter().any(|other| object.has_name_of(other));
    Ok(present.iter().any(|object| object.name != "ingest_queue" && is_ours(object)))
}

/// Makes anew what is missing or altered, and counts anew what triggers would have counted. Returns what it made.
pub fn mend(connection: &Connection) -> Result<Vec<String>> {
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
            Some(found) => connection.execute_batch(&format!("DROP {} {}", found.kind, expected.name))?,
        }
    }
    // A view takes its triggers along.
    let missing = self::differences(connection)?.into_iter().map(|difference| difference.expected).collect::<Vec<_>>();
    let (tables, others): (Vec<&Object>, _) = missing.iter().partition(|object| object.kind == "table");
    tables.iter().try_for_each(|table| connection.execute_batch(&table.sql))?;
    migrate::extend(connection)?;
    if others.iter().any(|object| object.name == "ingest_queue_key") {
        connection.execute_batch(include_str!("migrations/free_keys.sql"))?;
    }
    others.iter().try_for_each(|object: &&Object| connection.execute_batch(&object.sql))?;
    if missing.iter().any(|object| object.kind != "index") {
        connection.execute_batch(include_str!("migrations/recount.sql"))?;
    }
    Ok(missing.into_iter().map(Object::describe).collect())
}
