//! An enqueue on the caller's own connection, as a step machine: it says which statement to run next, and runs none.

use std::path::PathBuf;

use super::Queue;
use crate::error::{Error, Result};
use crate::model::{NewItem, OnDuplicate, Status, Value};
use crate::rules::key::{Taken, taken};
use crate::rules::room;
use crate::store::{ForeignStatements, Statement};

/// The rows that a statement returned.
type Rows = Vec<Vec<Value>>;

/// What to do next.
pub enum Step {
    Run(Statement),
    /// The item with this id has the content, or the key.
    Done(i64),
    /// What the caller's library raised is the answer.
    Fail,
}

/// An enqueue in the caller's transaction; the caller's commit or rollback decides about it.
pub struct Enlistment {
    /// The statement that runs.
    running: Running,
    foreign: &'static dyn ForeignStatements,
    queue: String,
    path: Option<PathBuf>,
    key: Option<KeyStatements>,
    max_pending: Option<i64>,
    insert: Option<Statement>,
    replace: Option<Statement>,
}

struct KeyStatements {
    name: String,
    on_duplicate: OnDuplicate,
    /// Looks for an item that has the key: its id and status. It may run twice.
    find: Statement,
    /// Makes sure that the key is free, if none was found.
    free: Option<Statement>,
}

enum Running {
    /// None has run yet.
    Nothing,
    Find,
    Counts,
    Free,
    Insert,
    /// The insert failed, and the key may be the reason.
    FindAgain,
    Replace(i64),
    /// After an insert, or after the replacement of this item.
    Written(Option<i64>),
    Triggers(Option<i64>),
}

impl Queue {
    /// Begins an enqueue on a connection of the caller's own.
    pub fn enlist(&self, item: NewItem) -> Result<Enlistment> {
        self.reread_settings()?;
        let (now, foreign) = (self.options.clock.now(), self.session()?.store.foreign());
        let (row, key) = self.prepare(item)?.written_at(now);
        let key = match (&row.key, key) {
            (Some(name), Some(key)) => Some(KeyStatements {
                name: name.clone(),
                on_duplicate: key.on_duplicate,
                find: foreign.find_key(self.name(), name, key.since(now), now)?,
                free: Some(foreign.free_key(self.name(), name)?),
            }),
            _ => None,
        };
        Ok(Enlistment {
            running: Running::Nothing,
            foreign,
            queue: self.name().to_owned(),
            path: self.path(),
            key,
            max_pending: self.settings().settings.max_pending,
            insert: Some(foreign.enqueue(self.name(), &row, now)?),
            replace: Some(foreign.replace(&row)?),
        })
    }
}

impl Enlistment {
    /// The first step.
    pub fn begin(&mut self) -> Result<Step> {
        match self.find() {
            Some(find) => Ok(self.run(Running::Find, find)),
            None => self.look_for_room(),
        }
    }

    /// What comes after the statement that ran, and returned these rows.
    pub fn next(&mut self, rows: &Rows) -> Result<Step> {
        let first = rows.first();
        match self.running {
            Running::Nothing => self.begin(),
            Running::Find => match first {
                Some(row) => self.found(row),
                None => self.look_for_room(),
            },
            Running::Counts => {
                let pending = first.map_or(0, |row| integer(row, 0));
                self.max_pending.map_or(Ok(()), |limit| room::check(limit, pending, pending + 1))?;
                self.insert()
            }
            Running::Free => self.insert(),
            Running::Insert => Ok(self.run(Running::Written(None), self.foreign.written())),
            Running::FindAgain => first.map_or(Ok(Step::Fail), |row| self.found(row)),
            Running::Replace(id) => Ok(self.run(Running::Written(Some(id)), self.foreign.written())),
            Running::Written(replaced) => match first.map(|row| (integer(row, 0), integer(row, 1))) {
                Some((inserted, changes)) if changes > 0 => Ok(Step::Done(replaced.unwrap_or(inserted))),
                // The id that it seems to have is another item's.
                _ => Ok(self.run(Running::Triggers(replaced), self.foreign.foreign_triggers())),
            },
            Running::Triggers(replaced) => {
                let what = replaced.map_or_else(|| "the new item".into(), |id| format!("item {id}"));
                let names: Vec<_> = rows.iter().map(|row| text(row, 0)).collect();
                let path = self.path.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()));
                Err(Error::ignored(&what, &names).retold(|told| format!("{path}{told}")))
            }
        }
    }

    /// What comes after the statement that ran, and which the caller's library refused.
    pub fn failed(&mut self) -> Step {
        match (&self.running, self.find()) {
            // The caller's transaction may have begun only now, and another process may have enqueued the key since.
            (Running::Free | Running::Insert, Some(find)) => self.run(Running::FindAgain, find),
            _ => Step::Fail,
        }
    }

    fn run(&mut self, running: Running, statement: Statement) -> Step {
        self.running = running;
        Step::Run(statement)
    }

    fn find(&self) -> Option<Statement> {
        self.key.as_ref().map(|key| key.find.clone())
    }

    /// Another item has the key.
    fn found(&mut self, row: &[Value]) -> Result<Step> {
        let (id, status) = (integer(row, 0), Status::parse(&text(row, 1)));
        let Some(key) = &self.key else { return Ok(Step::Done(id)) };
        match (taken(key.on_duplicate, &key.name, id, status)?, self.replace.take()) {
            (Taken::Replace, Some(mut replace)) => {
                replace.values.insert(0, Value::Integer(id));
                Ok(self.run(Running::Replace(id), replace))
            }
            _ => Ok(Step::Done(id)),
        }
    }

    fn look_for_room(&mut self) -> Result<Step> {
        if self.max_pending.is_none() {
            return self.insert();
        }
        let counts = self.foreign.counts(&self.queue)?;
        Ok(self.run(Running::Counts, counts))
    }

    fn insert(&mut self) -> Result<Step> {
        if let Some(free) = self.key.as_mut().and_then(|key| key.free.take()) {
            return Ok(self.run(Running::Free, free));
        }
        let insert = self.insert.take().ok_or_else(|| Error::Invalid("this enqueue has ended".into()))?;
        Ok(self.run(Running::Insert, insert))
    }
}

fn integer(row: &[Value], column: usize) -> i64 {
    if let Some(Value::Integer(number)) = row.get(column) { *number } else { 0 }
}

/// A text, which the caller's connection may return as bytes.
fn text(row: &[Value], column: usize) -> String {
    match row.get(column) {
        Some(Value::Text(text)) => text.clone(),
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}
