//! The enqueue of one item on the caller's own connection.

use std::path::PathBuf;

use super::{Outcome, Rows, Step, Steps, ignored, integer, text};
use crate::error::{Error, Result};
use crate::model::{IfFailed, Now, OnDuplicate, Status, Value};
use crate::queue::Queue;
use crate::rules::key::{Owner, Taken, taken};
use crate::rules::room;
use crate::store::{ForeignStatements, Needed, Put, Statement, missing};

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
    needs: Needs,
    /// Whether the item was inserted, rather than found by its key.
    is_new: bool,
}

/// What the item waits for.
struct Needs {
    /// New ones have no id until they are enqueued.
    ids: Vec<Option<i64>>,
    /// Those that are enqueued before it, each with its place among the others.
    children: Vec<(usize, ItemSteps)>,
    /// The children that did not exist before.
    own: Vec<i64>,
    if_failed: IfFailed,
    now: Now,
    /// Whether one of them is not done.
    is_open: bool,
    /// Those that have failed or were cancelled.
    ended: Vec<i64>,
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
    /// Enqueues the child of this number.
    Child(usize),
    /// Records that the item has made the child of this number.
    Parent(i64, usize),
    /// Looks at the needed item of this number.
    Need(usize),
    /// The item was inserted, and waits for so many.
    Waits(i64, usize),
    /// The item waits for all; what has become of so many of them takes effect.
    Ended(i64, usize),
    Looked(i64, usize),
}

impl ItemSteps {
    /// With a limit, the enqueue is refused if so many items are pending.
    pub fn new(queue: &Queue, name: &str, mut put: Put, now: Now, max_pending: Option<i64>) -> Result<Self> {
        let foreign = queue.session()?.store.foreign();
        let (mut ids, mut children) = (Vec::new(), Vec::new());
        for need in std::mem::take(&mut put.needs) {
            match need {
                Needed::Id(id) => ids.push(Some(id)),
                Needed::Put(name, put) => {
                    children.push((ids.len(), Self::new(queue, &name, *put, now, None)?));
                    ids.push(None);
                }
            }
        }
        let (own, ended) = (Vec::new(), Vec::new());
        let needs = Needs { ids, children, own, if_failed: put.if_failed, now, is_open: false, ended };
        let (row, key) = put.at(now);
        let key = match (&row.key, key) {
            (Some(key_name), Some(key)) => Some(KeyStatements {
                name: key_name.clone(),
                on_duplicate: key.on_duplicate,
                find: foreign.find_key(name, key_name, key.since(now), now)?,
                free: Some(foreign.free_key(name, key_name)?),
            }),
            _ => None,
        };
        Ok(Self {
            running: Running::Nothing,
            foreign,
            path: queue.path(),
            key,
            max_pending,
            insert: Some(foreign.enqueue(name, &row, now)?),
            replace: Some(foreign.replace(&row)?),
            queue: name.to_owned(),
            needs,
            is_new: false,
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
                Some((_, changes)) if changes > 0 && replaced.is_some() => Ok(done(replaced)),
                Some((inserted, changes)) if changes > 0 => {
                    self.is_new = true;
                    self.adopt(inserted, 0)
                }
                // The reported row id belongs to another item.
                _ => Ok(self.run(Running::Triggers(replaced), self.foreign.foreign_triggers())),
            },
            Running::Child(number) => {
                let (_, child) = &mut self.needs.children[number];
                match child.next(rows)? {
                    Step::Done(Outcome::Ids(ids)) => self.child_done(number, ids.first().copied().flatten()),
                    step => Ok(step),
                }
            }
            Running::Parent(id, count) => self.adopt(id, count + 1),
            Running::Need(number) => {
                let Some(id) = self.needs.ids[number] else { return self.insert_after(number + 1) };
                let status = first.map(|row| text(row, 0)).ok_or_else(|| missing(id))?;
                self.needs.is_open |= status != "done";
                if matches!(status.as_str(), "failed" | "cancelled") && !self.needs.ended.contains(&id) {
                    self.needs.ended.push(id);
                }
                self.insert_after(number + 1)
            }
            Running::Waits(id, count) => self.wait(id, count + 1),
            Running::Ended(id, count) => {
                let (needed, now) = (self.needs.ended[count], self.needs.now);
                Ok(self.run(Running::Looked(id, count), self.foreign.update_dependents(needed, now)?))
            }
            Running::Looked(id, count) => self.note_ended(id, count + 1),
            Running::Triggers(replaced) => {
                let what = replaced.map_or_else(|| "the new item".into(), |id| format!("item {id}"));
                Err(ignored(&what, rows, self.path.as_deref()))
            }
        }
    }

    fn failed(&mut self) -> Result<Step> {
        if let Running::Child(number) = self.running {
            return self.needs.children[number].1.failed();
        }
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
        match (
            taken(key.on_duplicate, &key.name, Owner { id, status, has_moved: integer(row, 2) > 0 })?,
            self.replace.take(),
        ) {
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
        self.begin_child(0)
    }

    /// Begins the child of this number, or looks at what the item waits for once all are there.
    fn begin_child(&mut self, number: usize) -> Result<Step> {
        if number == self.needs.children.len() {
            // A child that was skipped, because its key is in use, is not waited for.
            self.needs.ids.retain(Option::is_some);
            return self.insert_after(0);
        }
        self.running = Running::Child(number);
        match self.needs.children[number].1.begin()? {
            Step::Done(Outcome::Ids(ids)) => self.child_done(number, ids.first().copied().flatten()),
            step => Ok(step),
        }
    }

    fn child_done(&mut self, number: usize, id: Option<i64>) -> Result<Step> {
        let (place, child) = &self.needs.children[number];
        self.needs.ids[*place] = id;
        self.needs.own.extend(id.filter(|_| child.is_new));
        self.begin_child(number + 1)
    }

    /// Records that the inserted item has made the next of its children.
    fn adopt(&mut self, id: i64, count: usize) -> Result<Step> {
        match self.needs.own.get(count) {
            Some(child) => {
                let statement = self.foreign.set_parent(*child, id)?;
                Ok(self.run(Running::Parent(id, count), statement))
            }
            None => self.wait(id, 0),
        }
    }

    /// Looks at the needed item of this number, or inserts the item once all are known.
    fn insert_after(&mut self, number: usize) -> Result<Step> {
        if let Some(id) = self.needs.ids.get(number).copied().flatten() {
            let statement = self.foreign.status(id)?;
            return Ok(self.run(Running::Need(number), statement));
        }
        let mut insert = self.insert.take().ok_or_else(|| Error::Invalid("this enqueue has ended".into()))?;
        if self.needs.is_open {
            self.foreign.make_blocked(&mut insert);
        }
        Ok(self.run(Running::Insert, insert))
    }

    /// Makes the inserted item wait for the next of the items it needs.
    fn wait(&mut self, id: i64, place: usize) -> Result<Step> {
        match self.needs.ids.get(place).copied().flatten() {
            Some(needed) => {
                let statement = self.foreign.wait_for(id, place as i64, needed, self.needs.if_failed)?;
                Ok(self.run(Running::Waits(id, place), statement))
            }
            None => self.note_ended(id, 0),
        }
    }

    /// What has become of a needed item already takes effect at once.
    fn note_ended(&mut self, id: i64, count: usize) -> Result<Step> {
        match self.needs.ended.get(count) {
            Some(needed) => Ok(self.run(Running::Ended(id, count), self.foreign.note_awaited(*needed)?)),
            None => Ok(done(Some(id))),
        }
    }
}

/// The item with this id has the content, or the key.
fn done(id: Option<i64>) -> Step {
    Step::Done(Outcome::Ids(vec![id]))
}
