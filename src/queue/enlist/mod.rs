//! Verbs on the caller's own connection, as state machines: each returns the next statement to run, and runs none.

mod answer;
mod item;
mod many;
mod schedule;
mod step;

use super::Queue;
use crate::error::{Error, Result};
use crate::model::{NewItem, Schedule, Value};
use crate::rules::tick::Timing;
use crate::store::{ForeignStatements, Statement};
use item::ItemSteps;
use many::ManySteps;
use schedule::ScheduleSteps;

pub type Rows = Vec<Vec<Value>>;

pub enum Step {
    Run(Statement),
    Done(Outcome),
    /// The caller should raise the error of its own database library.
    Fail,
}

pub enum Outcome {
    /// `None` for an item that was skipped, because its key is in use.
    Ids(Vec<Option<i64>>),
    Schedule(Box<Schedule>),
    /// Whether the item was changed.
    Changed(bool),
}

/// The statements of one verb, one after another.
trait Steps: Send + Sync {
    fn begin(&mut self) -> Result<Step>;

    /// Returns the next step, given the rows of the statement that ran.
    fn next(&mut self, rows: &Rows) -> Result<Step>;

    /// Returns the next step after the caller's library refused a statement.
    fn failed(&mut self) -> Step {
        Step::Fail
    }
}

/// A verb in the caller's transaction; the caller commits it or rolls it back.
pub struct Enlistment {
    steps: Box<dyn Steps>,
    frame: Frame,
    foreign: &'static dyn ForeignStatements,
    /// Whether the verb has several changes, of which all or none are made.
    is_atomic: bool,
    /// Whether the caller's transaction was open before the verb.
    is_inside: bool,
}

/// What is around the statements of an atomic verb: a savepoint, or a transaction that did not exist before.
enum Frame {
    Opening,
    Open,
    /// The verb is done; the savepoint is released.
    Closing(Option<Outcome>),
    /// The verb failed, and is undone. Without an error, the caller's library has one.
    Undoing(Option<Error>),
    Undone(Option<Error>),
}

impl Queue {
    /// Begins an enqueue on the caller's own connection.
    pub fn enlist(&self, item: NewItem) -> Result<Enlistment> {
        self.reread_settings()?;
        let is_atomic = !item.after.is_empty();
        let (name, max_pending) = (self.name(), self.settings().settings.max_pending);
        let (_, mut puts) = self.prepare_all(vec![item])?;
        let Some(put) = puts.pop() else { return Err(Error::Closed) };
        let steps = ItemSteps::new(self, name, put, self.options.clock.now(), max_pending)?;
        self.enlistment(Box::new(steps), is_atomic)
    }

    /// Begins an enqueue of several items, all or none, on the caller's own connection.
    pub fn enlist_many(&self, items: Vec<NewItem>) -> Result<Enlistment> {
        self.reread_settings()?;
        self.enlistment(Box::new(ManySteps::new(self, items)?), true)
    }

    /// Begins to add or replace a schedule on the caller's own connection.
    pub fn enlist_schedule(&self, name: &str, timing: Timing, item: NewItem) -> Result<Enlistment> {
        self.enlistment(Box::new(ScheduleSteps::new(self, name, timing, item)?), true)
    }

    fn enlistment(&self, steps: Box<dyn Steps>, is_atomic: bool) -> Result<Enlistment> {
        let foreign = self.session()?.store.foreign();
        Ok(Enlistment { steps, frame: Frame::Opening, foreign, is_atomic, is_inside: true })
    }
}

impl Enlistment {
    /// Returns which database the caller's connection is open on.
    pub fn location(&self) -> Statement {
        self.foreign.location()
    }

    pub fn is_atomic(&self) -> bool {
        self.is_atomic
    }

    /// Returns the first step. `is_inside`: the caller's connection has a transaction open.
    pub fn begin(&mut self, is_inside: bool) -> Result<Step> {
        self.is_inside = is_inside;
        if !self.is_atomic {
            self.frame = Frame::Open;
            return self.steps.begin();
        }
        Ok(Step::Run(if is_inside { self.foreign.savepoint() } else { self.foreign.begin() }))
    }

    /// Returns the next step, given the rows of the statement that ran.
    pub fn next(&mut self, rows: &Rows) -> Result<Step> {
        match &mut self.frame {
            Frame::Opening => {
                self.frame = Frame::Open;
                let step = self.steps.begin();
                self.within(step)
            }
            Frame::Open => {
                let step = self.steps.next(rows);
                self.within(step)
            }
            Frame::Closing(outcome) => Ok(outcome.take().map_or(Step::Fail, Step::Done)),
            Frame::Undoing(error) if self.is_inside => {
                self.frame = Frame::Undone(error.take());
                Ok(Step::Run(self.foreign.release()))
            }
            Frame::Undoing(error) | Frame::Undone(error) => error.take().map_or(Ok(Step::Fail), Err),
        }
    }

    /// Returns the next step after the caller's library refused a statement.
    pub fn failed(&mut self) -> Result<Step> {
        match &mut self.frame {
            Frame::Opening | Frame::Closing(_) => Ok(Step::Fail),
            Frame::Open => {
                let step = self.steps.failed();
                self.within(Ok(step))
            }
            // Some errors end the whole transaction, and the savepoint with it.
            Frame::Undoing(error) | Frame::Undone(error) => error.take().map_or(Ok(Step::Fail), Err),
        }
    }

    /// Adds to a step of the verb what the end of an atomic verb needs.
    fn within(&mut self, step: Result<Step>) -> Result<Step> {
        if !self.is_atomic {
            return step;
        }
        let error = match step {
            Ok(Step::Run(statement)) => return Ok(Step::Run(statement)),
            Ok(Step::Done(outcome)) if self.is_inside => {
                self.frame = Frame::Closing(Some(outcome));
                return Ok(Step::Run(self.foreign.release()));
            }
            Ok(Step::Done(outcome)) => return Ok(Step::Done(outcome)),
            Ok(Step::Fail) => None,
            Err(error) => Some(error),
        };
        self.frame = Frame::Undoing(error);
        Ok(Step::Run(if self.is_inside { self.foreign.undo() } else { self.foreign.roll_back() }))
    }
}

fn integer(row: &[Value], column: usize) -> i64 {
    if let Some(Value::Integer(number)) = row.get(column) { *number } else { 0 }
}

/// Reads a text, which the caller's connection may return as bytes.
fn text(row: &[Value], column: usize) -> String {
    match row.get(column) {
        Some(Value::Text(text)) => text.clone(),
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}
