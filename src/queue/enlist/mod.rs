//! Verbs on the caller's own connection, as state machines: each returns the next statement to run, and runs none.

mod answer;
mod block;
mod finish;
mod item;
mod many;
mod repair;
mod schedule;
mod step;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::Queue;
use super::claim::ClaimedItem;
use crate::error::{Error, Result};
use crate::model::{NewItem, Schedule, Value};
use crate::rules::outcome::Settled;
use crate::rules::tick::Timing;
use crate::store::{ForeignStatements, Statement};
pub use block::Block;
use item::ItemSteps;
use many::ManySteps;
pub use repair::Repair;
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
    /// The claim has ended, once the caller commits.
    Ended(Settled),
    /// Whether the item was changed.
    Changed(bool),
    /// How many items were changed.
    Count(usize),
    Nothing,
}

/// The statements of one verb, one after another.
trait Steps: Send + Sync {
    fn begin(&mut self) -> Result<Step>;

    /// Returns the next step, given the rows of the statement that ran.
    fn next(&mut self, rows: &Rows) -> Result<Step>;

    /// Returns the next step after the caller's library refused a statement.
    fn failed(&mut self) -> Result<Step> {
        Ok(Step::Fail)
    }
}

/// A verb in the caller's transaction; the caller commits it or rolls it back.
pub struct Enlistment {
    steps: Box<dyn Steps>,
    phase: Phase,
    foreign: &'static dyn ForeignStatements,
    frame: Option<Frame>,
    /// The claim that the verb ends.
    ends: Option<Arc<ClaimedItem>>,
}

/// What is around the statements of a verb, so that all or none of its changes are made.
#[derive(Default)]
struct Frame {
    opening: VecDeque<Statement>,
    closing: VecDeque<Statement>,
    undoing: VecDeque<Statement>,
}

enum Phase {
    Opening,
    Open,
    /// The verb is done.
    Closing(Option<Outcome>),
    /// The verb failed, and is undone. Without an error, the caller's library has one.
    Undoing(Option<Error>),
}

impl Frame {
    /// A savepoint in the caller's transaction; if there is none yet, that transaction.
    fn of_verb(foreign: &dyn ForeignStatements, is_inside: bool) -> Self {
        let (opening, closing, undoing) = if is_inside {
            (foreign.savepoint(), vec![foreign.release()], vec![foreign.undo(), foreign.release()])
        } else {
            (foreign.begin(), Vec::new(), vec![foreign.roll_back()])
        };
        Self { opening: [opening].into(), closing: closing.into(), undoing: undoing.into() }
    }
}

impl Queue {
    /// Begins an enqueue on the caller's own connection.
    pub fn enlist(&self, item: NewItem) -> Result<Enlistment> {
        self.reread_settings()?;
        let (name, max_pending) = (self.name(), self.settings().settings.max_pending);
        let (_, mut puts) = self.prepare_all(vec![item])?;
        let Some(put) = puts.pop() else { return Err(Error::Closed) };
        let steps = ItemSteps::new(self, name, put, self.options.clock.now(), max_pending)?;
        self.enlistment(Box::new(steps))
    }

    /// Begins an enqueue of several items, all or none, on the caller's own connection.
    pub fn enlist_many(&self, items: Vec<NewItem>) -> Result<Enlistment> {
        self.reread_settings()?;
        self.enlistment(Box::new(ManySteps::new(self, items)?))
    }

    /// Begins to add or replace a schedule on the caller's own connection.
    pub fn enlist_schedule(&self, name: &str, timing: Timing, item: NewItem) -> Result<Enlistment> {
        self.enlistment(Box::new(ScheduleSteps::new(self, name, timing, item)?))
    }

    fn enlistment(&self, steps: Box<dyn Steps>) -> Result<Enlistment> {
        let foreign = self.session()?.store.foreign();
        Ok(Enlistment { steps, phase: Phase::Opening, foreign, frame: None, ends: None })
    }
}

impl Enlistment {
    /// Returns which database the caller's connection is open on.
    pub fn location(&self) -> Statement {
        self.foreign.location()
    }

    /// Returns the first step. `is_inside`: the caller's connection has a transaction open.
    pub fn begin(&mut self, is_inside: bool) -> Result<Step> {
        let foreign = self.foreign;
        self.frame.get_or_insert_with(|| Frame::of_verb(foreign, is_inside));
        self.open()
    }

    /// Returns the next step, given the rows of the statement that ran.
    pub fn next(&mut self, rows: &Rows) -> Result<Step> {
        match &self.phase {
            Phase::Opening => self.open(),
            Phase::Open => {
                let step = self.steps.next(rows);
                self.within(step)
            }
            Phase::Closing(_) => self.close(),
            Phase::Undoing(_) => self.undo(),
        }
    }

    /// Returns the next step after the caller's library refused a statement.
    pub fn failed(&mut self) -> Result<Step> {
        match &mut self.phase {
            Phase::Opening => Ok(Step::Fail),
            Phase::Open => {
                let step = self.steps.failed();
                self.within(step)
            }
            Phase::Closing(_) => self.fail(None),
            // Some errors end the whole transaction, and the savepoint with it.
            Phase::Undoing(error) => error.take().map_or(Ok(Step::Fail), Err),
        }
    }

    fn frame(&mut self) -> &mut Frame {
        self.frame.get_or_insert_default()
    }

    fn open(&mut self) -> Result<Step> {
        if let Some(statement) = self.frame().opening.pop_front() {
            return Ok(Step::Run(statement));
        }
        self.phase = Phase::Open;
        let step = self.steps.begin();
        self.within(step)
    }

    /// Adds to a step of the verb what its end needs.
    fn within(&mut self, step: Result<Step>) -> Result<Step> {
        match step {
            Ok(Step::Run(statement)) => Ok(Step::Run(statement)),
            Ok(Step::Done(outcome)) => {
                self.phase = Phase::Closing(Some(outcome));
                self.close()
            }
            Ok(Step::Fail) => self.fail(None),
            Err(error) => self.fail(Some(error)),
        }
    }

    fn close(&mut self) -> Result<Step> {
        if let Some(statement) = self.frame().closing.pop_front() {
            return Ok(Step::Run(statement));
        }
        let Phase::Closing(outcome) = &mut self.phase else { return Ok(Step::Fail) };
        let outcome = outcome.take();
        if let (Some(Outcome::Ended(settled)), Some(held)) = (&outcome, &self.ends) {
            held.promise(*settled);
        }
        Ok(outcome.map_or(Step::Fail, Step::Done))
    }

    fn fail(&mut self, error: Option<Error>) -> Result<Step> {
        self.phase = Phase::Undoing(error);
        self.undo()
    }

    fn undo(&mut self) -> Result<Step> {
        if let Some(statement) = self.frame().undoing.pop_front() {
            return Ok(Step::Run(statement));
        }
        let Phase::Undoing(error) = &mut self.phase else { return Ok(Step::Fail) };
        error.take().map_or(Ok(Step::Fail), Err)
    }
}

/// The error for a change that a trigger of the application ignored, given the names of its triggers.
fn ignored(what: &str, triggers: &Rows, path: Option<&Path>) -> Error {
    let names: Vec<_> = triggers.iter().map(|row| text(row, 0)).collect();
    let path = path.map_or_else(String::new, |path| format!("{}: ", path.display()));
    Error::ignored(what, &names).retold(|told| format!("{path}{told}"))
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
