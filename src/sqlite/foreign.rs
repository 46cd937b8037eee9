//! The statements of an enqueue for a connection that is not ours, in a transaction that is not ours.

use rusqlite::ToSql;
use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};

use super::statement;
use crate::error::Result;
use crate::model::{Now, Value};
use crate::store::NewRow;

/// A statement and its values.
#[derive(Clone)]
pub struct Statement {
    pub sql: &'static str,
    pub values: Vec<Value>,
    pub returns_rows: bool,
}

impl Statement {
    fn new(sql: &'static str, values: &[&dyn ToSql]) -> Result<Self> {
        let values = values.iter().map(|value| owned(*value)).collect::<rusqlite::Result<_>>()?;
        Ok(Self { sql, values, returns_rows: false })
    }

    fn query(sql: &'static str, values: &[&dyn ToSql]) -> Result<Self> {
        Ok(Self { returns_rows: true, ..Self::new(sql, values)? })
    }

    fn question(sql: &'static str) -> Self {
        Self { sql, values: Vec::new(), returns_rows: true }
    }

    /// The id of the last new row, and how many rows the last statement changed.
    pub fn written() -> Self {
        Self::question(statement!("written"))
    }

    /// The names of the application's triggers on our table.
    pub fn foreign_triggers() -> Self {
        Self::question(statement!("foreign_triggers"))
    }

    pub fn enqueue(queue: &str, row: &NewRow, now: Now) -> Result<Self> {
        row.with_values(queue, &now.text(), |values| Self::new(statement!("enqueue"), values))
    }

    pub fn find_key(queue: &str, key: &str, since: Option<i64>, now: Now) -> Result<Self> {
        Self::query(statement!("find_key"), rusqlite::params![queue, key, now.ms(), since])
    }

    pub fn free_key(queue: &str, key: &str) -> Result<Self> {
        Self::new(statement!("free_key"), rusqlite::params![queue, key])
    }

    /// Its first column says how many items wait.
    pub fn counts(queue: &str) -> Result<Self> {
        Self::query(statement!("counts"), rusqlite::params![queue])
    }

    /// Without its first value, the id, which is known only once the row was found.
    pub fn replace(row: &NewRow) -> Result<Self> {
        row.with_replacing_values(0, |values| Self::new(statement!("replace"), &values[1..]))
    }
}

fn owned(value: &dyn ToSql) -> rusqlite::Result<Value> {
    let value = value.to_sql()?;
    let value = match &value {
        ToSqlOutput::Borrowed(value) => *value,
        ToSqlOutput::Owned(value) => ValueRef::from(value),
        _ => ValueRef::Null,
    };
    Ok(Value::column_result(value)?)
}
