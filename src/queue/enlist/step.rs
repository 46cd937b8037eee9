//! The record of a step on the caller's own connection: together with what the step wrote there, or not at all.

use std::sync::Arc;

use super::{Enlistment, Outcome, Rows, Step, Steps, integer};
use crate::error::Result;
use crate::model::{Now, StepKind};
use crate::queue::Queue;
use crate::queue::claim::ClaimedItem;
use crate::store::ForeignStatements;

struct StepSteps {
    foreign: &'static dyn ForeignStatements,
    queue: Arc<Queue>,
    held: Arc<ClaimedItem>,
    name: String,
    result: String,
    now: Now,
    is_written: bool,
}

impl Queue {
    /// Begins to record a step on the caller's own connection.
    pub fn enlist_step(self: &Arc<Self>, held: &Arc<ClaimedItem>, name: &str, result: String) -> Result<Enlistment> {
        self.check_is_ours(held)?;
        self.check_size(result.len())?;
        if held.is_inherited() || held.is_settled() {
            return Err(self.why_stale(held)?);
        }
        let steps = StepSteps {
            foreign: self.session()?.store.foreign(),
            queue: self.clone(),
            held: held.clone(),
            name: name.to_owned(),
            result,
            now: self.options.clock.now(),
            is_written: false,
        };
        self.enlistment(Box::new(steps))
    }
}

impl Steps for StepSteps {
    fn begin(&mut self) -> Result<Step> {
        let (queue, receipt) = (self.queue.name(), self.held.receipt());
        Ok(Step::Run(self.foreign.add_step(queue, receipt, &self.name, StepKind::Step, &self.result, self.now)?))
    }

    fn next(&mut self, rows: &Rows) -> Result<Step> {
        if !self.is_written {
            self.is_written = true;
            return Ok(Step::Run(self.foreign.written()));
        }
        // The error undoes what the step wrote.
        match rows.first().map(|row| integer(row, 1)) {
            Some(1) => Ok(Step::Done(Outcome::Ids(Vec::new()))),
            _ => Err(self.queue.why_stale(&self.held)?),
        }
    }
}
