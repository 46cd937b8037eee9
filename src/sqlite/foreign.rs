//! Statements for the caller's own SQLite connection.

use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{ToSql, params};

use super::finish::{EndValues, with_statement};
use super::flow::{DEPENDENTS_AT_A_TIME, with_answer_values, with_kept_answer_values};
use super::repair::with_change;
use super::schedule::with_schedule_values;
use super::stage::checksum_given;
use super::statement;
use crate::error::Result;
use crate::model::{Answer, IfFailed, Now, Receipt, Schedule, Status, StepKind, Value};
use crate::rules::outcome::Verdict;
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

    fn make_blocked(&self, enqueue: &mut Statement) {
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

    fn note_awaited_by(&self, id: i64) -> Result<Statement> {
        command(statement!("awaited_by"), params![id])
    }

    fn needed_by(&self, id: i64, limit: i64) -> Result<Statement> {
        query(statement!("needed_by"), params![id, limit])
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

    fn end(&self, queue: &str, step: EndStep, steps: &EndSteps<End>, now: Now) -> Result<Statement> {
        let returns_rows = matches!(step, EndStep::CheckHeld | EndStep::FindRest);
        let checksum = match &steps.end().decision.verdict {
            Verdict::Moved { next } => checksum_given(next),
            _ => None,
        };
        let given = EndValues { now, text: &now.text(), has_group: None, checksum };
        let made = with_statement(queue, step, steps.end(), steps.history(), given, command)?;
        Ok(Statement { returns_rows, ..made })
    }

    fn holds(&self, queue: &str, receipt: Receipt, now: Now) -> Result<Statement> {
        query(statement!("holds"), params![receipt.id, queue, receipt.attempt, receipt.token, now.ms()])
    }

    fn present(&self, queue: &str, receipt: Receipt) -> Result<Statement> {
        command(statement!("present"), params![receipt.id, queue, receipt.attempt, receipt.token])
    }

    fn change(&self, queue: &str, id: i64, change: ItemChange, now: Now) -> Result<Statement> {
        with_change(queue, id, change, (now, &now.text()), command)
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
        ToSqlOutput::ZeroBlob(length) => return Ok(Value::Bytes(vec![0; *length as usize])),
        _ => ValueRef::Null,
    };
    Ok(Value::column_result(value)?)
}
