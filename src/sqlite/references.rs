//! Foreign keys by which tables of the application refer to items. Our connections do not enforce them, so that our
//! deletes neither cascade nor fail half-way. Instead, items that are referred to are not deleted.

use std::sync::Arc;

use rusqlite::{Connection, params};

use super::statement;
use crate::error::Result;
use crate::sync::Mutex;

/// One foreign key that refers to items.
pub struct Reference {
    pub table: String,
    key: i64,
    /// The key's columns, each with the item's column that it refers to.
    columns: Vec<(String, String)>,
}

/// The foreign keys of a file that refer to items, usually none. Read again when the schema has changed.
#[derive(Default)]
pub struct References(Mutex<Option<(i64, Arc<[Reference]>)>>);

impl References {
    pub fn of(&self, connection: &Connection) -> Result<Arc<[Reference]>> {
        let schema: i64 = connection.prepare_cached("PRAGMA schema_version")?.query_row([], |row| row.get(0))?;
        if let Some((_, known)) = self.0.lock().as_ref().filter(|(of, _)| *of == schema) {
            return Ok(known.clone());
        }
        let found: Arc<[Reference]> = read(connection)?.into();
        *self.0.lock() = Some((schema, found.clone()));
        Ok(found)
    }
}

fn read(connection: &Connection) -> Result<Vec<Reference>> {
    let mut statement = connection.prepare_cached(statement!("references"))?;
    let mut rows = statement.query([])?;
    let mut references: Vec<Reference> = Vec::new();
    while let Some(row) = rows.next()? {
        let (table, key, columns): (String, i64, _) = (row.get(0)?, row.get(1)?, (row.get(2)?, row.get(3)?));
        match references.last_mut().filter(|last| last.table == table && last.key == key) {
            Some(last) => last.columns.push(columns),
            None => references.push(Reference { table, key, columns: vec![columns] }),
        }
    }
    Ok(references)
}

impl Reference {
    /// Of the given items of a queue, returns those that the key refers to.
    pub fn among(&self, connection: &Connection, queue: &str, ids: &[i64]) -> Result<Vec<i64>> {
        let sql = format!(
            "SELECT item.id FROM json_each(?2) AS asked CROSS JOIN ingest_queue AS item ON item.id = asked.value
              WHERE item.queue = ?1 AND {}",
            self.condition()
        );
        let asked = format!("{ids:?}");
        collect(connection, &sql, params![queue, asked])
    }

    /// Asks on the caller's connection whether the key refers to an item. ?1 id ?2 queue
    pub fn question(&self) -> String {
        format!(
            "SELECT 1 FROM main.ingest_queue AS item WHERE item.id = ?1 AND item.queue = ?2 AND {}",
            self.condition()
        )
    }

    /// Returns finished items of a queue that the key refers to, at most `limit`.
    pub fn finished(&self, connection: &Connection, queue: &str, limit: usize) -> Result<Vec<i64>> {
        let sql = format!(
            "SELECT item.id FROM ingest_queue AS item
              WHERE item.queue = ?1 AND item.status IN ('done', 'failed', 'cancelled') AND {} LIMIT ?2",
            self.condition()
        );
        collect(connection, &sql, params![queue, limit as i64])
    }

    /// The table and column names are the application's, so this SQL has to be formatted. The item is on the left: its
    /// columns decide how values are compared, as they do for foreign keys.
    fn condition(&self) -> String {
        let (theirs, ours): (Vec<_>, Vec<_>) =
            self.columns.iter().map(|(their, our)| (quoted(their), quoted(our))).unzip();
        let (theirs, ours) = (theirs.join(", row."), ours.join(", item."));
        format!("(item.{ours}) IN (SELECT row.{theirs} FROM main.{} AS row)", quoted(&self.table))
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn collect(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<i64>> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map(values, |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
