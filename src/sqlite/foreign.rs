//! Statements for the caller's own SQLite connection.

use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{ToSql, params};

use super::flow::{DEPENDENTS_AT_A_TIME, with_answer_values, with_kept_answer_values};
use super::schedule::with_schedule_values;
use super::statement;
use crate::error::Result;
use crate::model::{Answer, IfFailed, Now, Receipt, Schedule, Status, StepKind, Value};
use crate::store::{ForeignStatements, NewRow, Statement};

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

    fn add_step(
        &self,
        queue: &str,
        receipt: Receipt,
        name: &str,
        kind: StepKind,
        result: &str,
        now: Now,
    ) -> Result<Statement> {
        let Receipt { id, attempt, token } = receipt;
        let values = params![id, queue, attempt, token, name, kind.as_str(), result, now.text()];
        command(statement!("step_add"), values)
    }

    fn status(&self, id: i64) -> Result<Statement> {
        query(statement!("status"), params![id])
    }

    fn block(&self, enqueue: &mut Statement) {
        // The status is the last value of enqueue.sql.
        if let Some(status) = enqueue.values.last_mut() {
            *status = Value::Text(Status::Blocked.as_str().into());
        }
    }

    fn wait_for(&self, id: i64, place: i64, needed: i64, if_failed: IfFailed) -> Result<Statement> {
        command(statement!("after_add"), params![id, place, needed, if_failed.as_str()])
    }

    fn newest_with_key(&self, queue: &str, key: &str) -> Result<Statement> {
        query(statement!("newest_with_key"), params![key, queue])
    }

    fn answer(&self, queue: &str, id: i64, answer: &Answer, now: Now) -> Result<Statement> {
        with_answer_values(queue, id, answer, &now.text(), |values| command(statement!("answer"), values))
    }

    fn has_answer(&self, id: i64, now: Now) -> Result<Statement> {
        query(statement!("has_answer"), params![id, now.ms()])
    }

    fn put_answer(&self, queue: &str, key: &str, key_until: i64, answer: &Answer, now: Now) -> Result<Statement> {
        let now = now.text();
        with_kept_answer_values(queue, key, key_until, answer, &now, |values| command(statement!("answer_add"), values))
    }

    fn set_parent(&self, id: i64, parent: i64) -> Result<Statement> {
        command(statement!("parent_set"), params![id, parent])
    }

    fn note_awaited(&self, id: i64) -> Result<Statement> {
        command(statement!("awaited_add"), params![id])
    }

    fn update_dependents(&self, id: i64, now: Now) -> Result<Statement> {
        command(statement!("look"), params![id, DEPENDENTS_AT_A_TIME, now.text()])
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
    Ok(Statement { sql, values, returns_rows: false })
}

fn query(sql: &'static str, values: &[&dyn ToSql]) -> Result<Statement> {
    Ok(Statement { returns_rows: true, ..command(sql, values)? })
}

fn question(sql: &'static str) -> Statement {
    Statement { sql, values: Vec::new(), returns_rows: true }
}

fn order(sql: &'static str) -> Statement {
    Statement { sql, values: Vec::new(), returns_rows: false }
}

fn owned(value: &dyn ToSql) -> rusqlite::Result<Value> {
    let value = value.to_sql()?;
    let value = match &value {
        ToSqlOutput::Borrowed(value) => *value,
        ToSqlOutput::Owned(value) => ValueRef::from(value),
        ToSqlOutput::ZeroBlob(length) => return Ok(Value::Bytes(vec![0; *length as usize])),
        _ => ValueRef::Null,
    };
    Ok(Value::column_result(value)?)
}
