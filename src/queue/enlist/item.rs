//! The enqueue of one item on the caller's own connection.

use std::path::PathBuf;

use super::{Outcome, Rows, Step, Steps, ignored, integer, text};
use crate::error::{Error, Result};
use crate::model::{NewItem, Now, OnDuplicate, Status, Value};
use crate::queue::Queue;
use crate::rules::key::{Taken, taken};
use crate::rules::room;
use crate::store::{ForeignStatements, Statement};

pub struct ItemSteps {
    /// The statement that is running.
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
    /// Makes sure that the key is free, if no item was found.
    free: Option<Statement>,
}

enum Running {
    /// No statement has run yet.
    Nothing,
    Find,
    Counts,
    Free,
    Insert,
    /// The insert failed, and a duplicate key may be the reason.
    FindAgain,
    Replace(i64),
    /// After an insert, or after the replacement of this item.
    Written(Option<i64>),
    Triggers(Option<i64>),
}

impl ItemSteps {
    /// With `is_bounded`, the enqueue is refused if the queue is full.
    pub fn new(queue: &Queue, item: NewItem, now: Now, is_bounded: bool) -> Result<Self> {
        let foreign = queue.session()?.store.foreign();
        let (row, key) = queue.prepare(item)?.at(now);
        let key = match (&row.key, key) {
            (Some(name), Some(key)) => Some(KeyStatements {
                name: name.clone(),
                on_duplicate: key.on_duplicate,
                find: foreign.find_key(queue.name(), name, key.since(now), now)?,
                free: Some(foreign.free_key(queue.name(), name)?),
            }),
            _ => None,
        };
        Ok(Self {
            running: Running::Nothing,
            foreign,
            queue: queue.name().to_owned(),
            path: queue.path(),
            key,
            max_pending: queue.settings().settings.max_pending.filter(|_| is_bounded),
            insert: Some(foreign.enqueue(queue.name(), &row, now)?),
            replace: Some(foreign.replace(&row)?),
        })
    }
}

impl Steps for ItemSteps {
    fn begin(&mut self) -> Result<Step> {
        match self.find() {
            Some(find) => Ok(self.run(Running::Find, find)),
            None => self.look_for_room(),
        }
    }

    fn next(&mut self, rows: &Rows) -> Result<Step> {
        let first = rows.first();
        match self.running {
            Running::Nothing => self.begin(),
            Running::Find => match first {
                Some(row) => self.found(row),
                None => self.look_for_room(),
            },
            Running::Counts => {
                let pending = first.map_or(0, |row| integer(row, 0));
                self.max_pending.map_or(Ok(()), |limit| room::check(&self.queue, limit, pending, pending + 1))?;
                self.insert()
            }
            Running::Free => self.insert(),
            Running::Insert => Ok(self.run(Running::Written(None), self.foreign.written())),
            Running::FindAgain => first.map_or(Ok(Step::Fail), |row| self.found(row)),
            Running::Replace(id) => Ok(self.run(Running::Written(Some(id)), self.foreign.written())),
            Running::Written(replaced) => match first.map(|row| (integer(row, 0), integer(row, 1))) {
                Some((inserted, changes)) if changes > 0 => Ok(done(Some(replaced.unwrap_or(inserted)))),
                // The reported row id belongs to another item.
                _ => Ok(self.run(Running::Triggers(replaced), self.foreign.foreign_triggers())),
            },
            Running::Triggers(replaced) => {
                let what = replaced.map_or_else(|| "the new item".into(), |id| format!("item {id}"));
                Err(ignored(&what, rows, self.path.as_deref()))
            }
        }
    }

    fn failed(&mut self) -> Result<Step> {
        match (&self.running, self.find()) {
            // The caller's transaction may have begun only now. Another process may have enqueued the key before it
            // did.
            (Running::Free | Running::Insert, Some(find)) => Ok(self.run(Running::FindAgain, find)),
            _ => Ok(Step::Fail),
        }
    }
}

impl ItemSteps {
    fn run(&mut self, running: Running, statement: Statement) -> Step {
        self.running = running;
        Step::Run(statement)
    }

    fn find(&self) -> Option<Statement> {
        self.key.as_ref().map(|key| key.find.clone())
    }

    /// Handles another item that has the key.
    fn found(&mut self, row: &[Value]) -> Result<Step> {
        let (id, status) = (integer(row, 0), Status::parse(&text(row, 1)));
        let Some(key) = &self.key else { return Ok(done(Some(id))) };
        match (taken(key.on_duplicate, &key.name, id, status)?, self.replace.take()) {
            (Taken::Replace, Some(mut replace)) => {
                replace.values.insert(0, Value::Integer(id));
                Ok(self.run(Running::Replace(id), replace))
            }
            (Taken::Skip, _) => Ok(done(None)),
            _ => Ok(done(Some(id))),
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

/// The item with this id has the content, or the key.
fn done(id: Option<i64>) -> Step {
    Step::Done(Outcome::Ids(vec![id]))
}
