//! The statements of an enqueue for a connection that is not ours, in a transaction that is not ours.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value};

use super::statement;
use crate::error::Result;
use crate::model::Now;
use crate::store::NewRow;

/// A statement and its values.
pub struct Statement {
    pub sql: &'static str,
    pub values: Vec<Value>,
}

impl Statement {
    fn new(sql: &'static str, values: &[&dyn ToSql]) -> Result<Self> {
        let values = values.iter().map(|value| owned(*value)).collect::<rusqlite::Result<_>>()?;
        Ok(Self { sql, values })
    }

    pub fn enqueue(queue: &str, row: &NewRow, now: Now) -> Result<Self> {
        row.with_values(queue, &now.text(), |values| Self::new(statement!("enqueue"), values))
    }

    pub fn find_key(queue: &str, key: &str, since: Option<i64>, now: Now) -> Result<Self> {
        Self::new(statement!("find_key"), rusqlite::params![queue, key, now.ms(), since])
    }

    pub fn free_key(queue: &str, key: &str) -> Result<Self> {
        Self::new(statement!("free_key"), rusqlite::params![queue, key])
    }

    /// Its first column says how many items wait.
    pub fn counts(queue: &str) -> Result<Self> {
        Self::new(statement!("counts"), rusqlite::params![queue])
    }

    /// Without its first value, the id, which is known only once the row was found.
    pub fn replace(row: &NewRow) -> Result<Self> {
        row.with_replacing_values(0, |values| Self::new(statement!("replace"), &values[1..]))
    }
}

fn owned(value: &dyn ToSql) -> rusqlite::Result<Value> {
    Ok(match value.to_sql()? {
        ToSqlOutput::Borrowed(value) => value.try_into()?,
        ToSqlOutput::Owned(value) => value,
        _ => Value::Null,
    })
}
