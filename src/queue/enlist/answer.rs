//! An answer on the caller's own connection.

use super::{Enlistment, Outcome, Rows, Step, Steps, integer};
use crate::error::Result;
use crate::model::{Answer, Now};
use crate::queue::{Queue, Target};
use crate::store::{ForeignStatements, Statement};

struct AnswerSteps {
    foreign: &'static dyn ForeignStatements,
    queue: String,
    target: Target,
    answer: Answer,
    key_ttl: Option<i64>,
    now: Now,
    running: Running,
}

enum Running {
    /// Finds the item by its key.
    Find,
    Answer(i64),
    /// Asks whether the item was changed.
    Written(i64),
    /// Updates those that wait for the item.
    Dependents,
    /// Asks whether an answer is kept already.
    Kept,
    Keep,
}

impl Queue {
    /// Begins an answer on the caller's own connection.
    pub fn enlist_answer(&self, target: &Target, answer: Answer, key_ttl: Option<i64>) -> Result<Enlistment> {
        self.reread_settings()?;
        let steps = AnswerSteps {
            foreign: self.session()?.store.foreign(),
            queue: self.name().to_owned(),
            target: target.clone(),
            answer: self.prepare_answer(answer)?,
            key_ttl,
            now: self.options.clock.now(),
            running: Running::Find,
        };
        self.enlistment(Box::new(steps))
    }
}

impl Steps for AnswerSteps {
    fn begin(&mut self) -> Result<Step> {
        match &self.target {
            Target::Id(id) => self.answer(*id),
            Target::Key(key) => Ok(Step::Run(self.foreign.newest_with_key(&self.queue, key)?)),
        }
    }

    fn next(&mut self, rows: &Rows) -> Result<Step> {
        let first = rows.first();
        match self.running {
            Running::Find => match first {
                Some(row) => self.answer(integer(row, 0)),
                None => self.keep(),
            },
            Running::Answer(id) => Ok(self.run(Running::Written(id), self.foreign.written())),
            Running::Written(id) if first.is_some_and(|row| integer(row, 1) > 0) => {
                Ok(self.run(Running::Dependents, self.foreign.update_dependents(id, self.now)?))
            }
            Running::Written(id) if matches!(self.target, Target::Key(_)) => {
                Ok(self.run(Running::Kept, self.foreign.has_answer(id, self.now)?))
            }
            Running::Kept if first.is_none() => self.keep(),
            Running::Written(_) | Running::Kept => Ok(changed(false)),
            Running::Dependents | Running::Keep => Ok(changed(true)),
        }
    }
}

impl AnswerSteps {
    fn run(&mut self, running: Running, statement: Statement) -> Step {
        self.running = running;
        Step::Run(statement)
    }

    fn answer(&mut self, id: i64) -> Result<Step> {
        let statement = self.foreign.answer(&self.queue, id, &self.answer, self.now)?;
        Ok(self.run(Running::Answer(id), statement))
    }

    /// Keeps the answer for an item that is still to come.
    fn keep(&mut self) -> Result<Step> {
        let (Target::Key(key), Some(ttl)) = (&self.target, self.key_ttl) else { return Ok(changed(false)) };
        let statement = self.foreign.put_answer(&self.queue, key, self.now.plus(ttl), &self.answer, self.now)?;
        Ok(self.run(Running::Keep, statement))
    }
}

fn changed(is_changed: bool) -> Step {
    Step::Done(Outcome::Changed(is_changed))
}
