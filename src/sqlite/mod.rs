//! The SQLite engine: bind, run, map rows; one short function per statement, in the file of its verb.

mod advance;
mod backup;
mod bookkeeping;
mod claim;
mod due;
mod engine;
mod enqueue;
mod file;
mod finish;
mod flow;
mod foreign;
mod health;
mod lease;
mod locks;
mod migrate;
mod padding;
mod rate;
mod read;
mod reclaim;
mod references;
mod remove;
mod renew;
mod repair;
mod retention;
mod rows;
mod schedule;
mod schema;
mod settings;
mod stage;
mod step;

#[cfg(feature = "python")]
pub use file::wake_all;
pub use file::{Database, Location, has_queue};
#[cfg(feature = "python")]
pub use locks::{COMMIT_CHECK, FORK, LOCKS, install};
pub use remove::remove;

use once_cell::unsync::OnceCell;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Row, ToSql};

use self::bookkeeping::Uncounted;
use self::file::WriterState;
use crate::error::Result;
use crate::model::Now;
use crate::store::{Scope, Tx};

/// The text of a statement, by the name of its file.
macro_rules! statement {
    ($name:literal) => {
        include_str!(concat!("sql/", $name, ".sql"))
    };
}
use statement;

/// A write transaction or a read snapshot, with the one clock reading that everything in it shares.
pub struct Transaction<'a> {
    connection: &'a Connection,
    database: &'a Database,
    now: Now,
    now_text: OnceCell<String>,
    /// `None` in a read snapshot.
    writer: Option<&'a WriterState>,
    uncounted: Uncounted,
}

impl<'a> Transaction<'a> {
    /// A read snapshot.
    fn new(connection: &'a Connection, database: &'a Database, now: Now) -> Self {
        let (now_text, uncounted) = (OnceCell::new(), Uncounted::default());
        Self { connection, database, now, now_text, writer: None, uncounted }
    }

    /// A write transaction, which has begun.
    fn writing(connection: &'a Connection, database: &'a Database, now: Now, writer: &'a WriterState) -> Self {
        Self { writer: Some(writer), ..Self::new(connection, database, now) }
    }

    fn now_text(&self) -> &str {
        self.now_text.get_or_init(|| self.now.text())
    }

    /// Runs a statement and returns how many rows it changed.
    fn run(&self, sql: &str, values: &[&dyn ToSql]) -> Result<usize> {
        Ok(self.connection.prepare_cached(sql)?.execute(values)?)
    }

    /// Returns the first column of the first row.
    fn one<T: FromSql>(&self, sql: &str, values: &[&dyn ToSql]) -> Result<Option<T>> {
        self.first(sql, values, |row| row.get(0))
    }

    fn first<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl FnOnce(&Row) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.connection.prepare_cached(sql)?.query_row(values, read).optional()?)
    }

    fn all<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl FnMut(&Row) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(values, read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn finds(&self, sql: &str, values: &[&dyn ToSql]) -> Result<bool> {
        Ok(self.connection.prepare_cached(sql)?.exists(values)?)
    }

    fn sorted_ids(&self, sql: &str, values: &[&dyn ToSql]) -> Result<Vec<i64>> {
        let mut ids: Vec<i64> = self.all(sql, values, |row| row.get(0))?;
        ids.sort_unstable();
        Ok(ids)
    }
}

impl Tx for Transaction<'_> {
    /// A write transaction holds the file's only write lock.
    fn lock(&self, _: Scope) -> Result<()> {
        Ok(())
    }

    fn is_open(&self) -> bool {
        !self.connection.is_autocommit()
    }
}
