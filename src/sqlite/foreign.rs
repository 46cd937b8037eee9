//! Statements for the caller's own SQLite connection.

use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{ToSql, params};

use super::finish::with_statement;
use super::repair::with_change;
use super::schedule::with_schedule_values;
use super::statement;
use crate::error::Result;
use crate::model::{Now, Receipt, Schedule, Status, Value};
use crate::store::{BlockStatement, End, EndStep, EndSteps, ForeignStatements, ItemChange, NewRow, Statement};

pub struct Foreign;

impl ForeignStatements for Foreign {
    fn enqueue(&self, queue: &str, row: &NewRow, now: Now) -> Result<Statement> {
        row.with_values(queue, &now.text(), |values| command(statement!("enqueue"), values))
    }

    fn find_key(&self, queue: &str, key: &str, since: Option<i64>, now: Now) -> Result<Statement> {
        query(statement!("find_key"), params![queue, key, now.ms(), since])
    }

    fn free_key(&self, queue: &str, key: &str) -> Result<Statement> {
        command(statement!("free_key"), params![queue, key])
    }

    fn counts(&self, queue: &str) -> Result<Statement> {
        query(statement!("counts"), params![queue])
    }

    fn replace(&self, row: &NewRow) -> Result<Statement> {
        row.with_replacing_values(0, |values| command(statement!("replace"), &values[1..]))
    }

    fn location(&self) -> Statement {
        question(statement!("connection_file"))
    }

    fn written(&self) -> Statement {
        question(statement!("written"))
    }

    fn foreign_triggers(&self) -> Statement {
        question(statement!("foreign_triggers"))
    }

    fn known_schedule(&self, queue: &str, name: &str) -> Result<Statement> {
        query(statement!("known_schedule"), params![queue, name])
    }

    fn schedule(&self, queue: &str, schedule: &Schedule, row: &NewRow) -> Result<Statement> {
        with_schedule_values(queue, schedule, row, |values| command(statement!("schedule"), values))
    }

    fn end(&self, queue: &str, step: EndStep, steps: &EndSteps<End>, now: Now) -> Result<Statement> {
        let returns_rows = matches!(step, EndStep::CheckHeld | EndStep::FindRest);
        let made = with_statement(queue, step, steps.end(), steps.history(), (now, &now.text()), command)?;
        Ok(Statement { returns_rows, ..made })
    }

    fn holds(&self, queue: &str, receipt: Receipt) -> Result<Statement> {
        query(statement!("holds"), params![receipt.id, queue, receipt.attempt, receipt.token])
    }

    fn present(&self, queue: &str, receipt: Receipt) -> Result<Statement> {
        command(statement!("present"), params![receipt.id, queue, receipt.attempt, receipt.token])
    }

    fn change(&self, queue: &str, id: i64, change: ItemChange, now: Now) -> Result<Statement> {
        with_change(queue, id, change, &now.text(), command)
    }

    fn newest_with_key(&self, queue: &str, key: &str) -> Result<Statement> {
        query(statement!("newest_with_key"), params![key, queue])
    }

    fn finished_ids(&self, queue: &str, status: Status) -> Result<Statement> {
        query(statement!("finished_ids"), params![queue, status.as_str()])
    }

    fn block(&self, statement: BlockStatement) -> Statement {
        let sql = match statement {
            BlockStatement::Begin => statement!("begin"),
            BlockStatement::Savepoint => statement!("block_savepoint"),
            BlockStatement::Release => statement!("block_release"),
            BlockStatement::Undo => statement!("block_undo"),
            BlockStatement::Commit => statement!("commit"),
            BlockStatement::RollBack => statement!("roll_back"),
        };
        Statement { block: Some(statement), ..order(sql) }
    }

    fn savepoint(&self) -> Statement {
        order(statement!("savepoint"))
    }

    fn release(&self) -> Statement {
        order(statement!("savepoint_release"))
    }

    fn undo(&self) -> Statement {
        order(statement!("savepoint_undo"))
    }

    fn begin(&self) -> Statement {
        order(statement!("begin"))
    }

    fn roll_back(&self) -> Statement {
        order(statement!("roll_back"))
    }
}

fn command(sql: &'static str, values: &[&dyn ToSql]) -> Result<Statement> {
    let values = values.iter().map(|value| owned(*value)).collect::<rusqlite::Result<_>>()?;
    Ok(Statement { values, ..order(sql) })
}

fn query(sql: &'static str, values: &[&dyn ToSql]) -> Result<Statement> {
    Ok(Statement { returns_rows: true, ..command(sql, values)? })
}

fn question(sql: &'static str) -> Statement {
    Statement { returns_rows: true, ..order(sql) }
}

fn order(sql: &'static str) -> Statement {
    Statement { sql: sql.into(), values: Vec::new(), returns_rows: false, block: None }
}

/// Finds out whether an item is referred to by a foreign key; returns a row if it is.
pub(super) fn referring(sql: String, id: i64, queue: &str) -> Statement {
    let values = vec![Value::Integer(id), Value::Text(queue.to_owned())];
    Statement { sql: sql.into(), values, returns_rows: true, block: None }
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
