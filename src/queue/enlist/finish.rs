//! The end of a claim on the caller's own connection. There a lost claim is an error, which undoes the caller's writes.

use std::sync::Arc;

use super::item::ItemSteps;
use super::{Enlistment, Outcome, Rows, Step, Steps, ignored, integer, text};
use crate::error::{Error, Result};
use crate::model::{Now, Value};
use crate::queue::Queue;
use crate::queue::advance::{decided, unless_it_went_on};
use crate::queue::claim::ClaimedItem;
use crate::rules::outcome::{Ending, Settled};
use crate::store::{Child, Claimed, End, EndAnswer, EndStep, EndSteps, Fence, ForeignStatements, WhenDone};

pub(super) struct FinishSteps {
    foreign: &'static dyn ForeignStatements,
    queue: Arc<Queue>,
    held: Arc<ClaimedItem>,
    now: Now,
    steps: EndSteps<End>,
    /// What the handler enqueued, written after the end.
    children: std::vec::IntoIter<ItemSteps>,
    child: Option<ItemSteps>,
    settled: Settled,
    running: Running,
}

enum Running {
    Step(EndStep),
    /// Asks how many rows the step changed.
    Written,
    Triggers,
    /// Enqueues what the handler enqueued.
    Children,
    /// Updates those that wait for the item.
    Dependents,
}

impl Queue {
    /// Begins to end a claim on the caller's own connection.
    pub fn enlist_finish(self: &Arc<Self>, held: &Arc<ClaimedItem>, ending: Ending) -> Result<Enlistment> {
        let steps = FinishSteps::new(self, held, ending)?;
        Ok(Enlistment { ends: Some(held.clone()), ..self.enlistment(Box::new(steps))? })
    }
}

impl FinishSteps {
    pub fn new(queue: &Arc<Queue>, held: &Arc<ClaimedItem>, ending: Ending) -> Result<Self> {
        queue.check_is_ours(held)?;
        queue.check_ending(&ending)?;
        queue.reread_settings()?;
        if held.is_inherited() || held.is_settled() {
            return Err(queue.why_stale(held)?);
        }
        let store = &queue.session()?.store;
        let now = queue.options().clock.now();
        let ending = unless_it_went_on(held, ending);
        let consequences = queue.consequences(held, &ending)?;
        if !consequences.needs.is_empty() || consequences.step.is_some() {
            return Err(Error::Invalid(
                "sleep, gather and Next(after=…) cannot be part of the caller's own transaction; do them after it, or \
                 return the Next from the handler"
                    .into(),
            ));
        }
        let children = consequences.children.into_iter().map(|child| {
            let Child { queue: name, put } = child;
            ItemSteps::new(queue, &name, put, now, None)
        });
        let children = children.collect::<Result<Vec<_>>>()?.into_iter();
        let mut end = decided(0, held.claimed(), ending, &queue.settings().settings)?;
        end.progress = held.unsaved_progress.latest();
        if end.when_done == WhenDone::Remove {
            // On the caller's connection a foreign key might delete the rows that refer to the item. Retention removes
            // it later.
            let has_references = || queue.read(|view| view.references_to(queue.name(), held.item.id));
            if store.are_ends_awaited() || !has_references()?.is_empty() {
                end.when_done = WhenDone::Keep;
            }
        }
        Ok(Self {
            foreign: store.foreign(),
            queue: queue.clone(),
            held: held.clone(),
            now,
            steps: EndSteps::new(end),
            children,
            child: None,
            settled: Settled::Lost,
            running: Running::Written,
        })
    }

    fn advance(&mut self, answer: EndAnswer) -> Result<Step> {
        let step = self.steps.next(answer);
        if let EndStep::Over(settled) = step {
            return self.over(settled);
        }
        self.running = Running::Step(step);
        Ok(Step::Run(self.foreign.end(self.queue.name(), step, &self.steps, self.now)?))
    }

    fn over(&mut self, settled: Settled) -> Result<Step> {
        self.settled = settled;
        match settled {
            Settled::Cancelled => Err(self.held.cancelled_meanwhile()),
            Settled::Lost => Err(self.queue.why_stale(&self.held)?),
            _ => self.next_child(),
        }
    }

    fn next_child(&mut self) -> Result<Step> {
        self.child = if self.settled.is_completed() { self.children.next() } else { None };
        let Some(child) = &mut self.child else { return self.update_dependents() };
        self.running = Running::Children;
        let step = child.begin()?;
        self.unless_done(step)
    }

    fn unless_done(&mut self, step: Step) -> Result<Step> {
        if matches!(step, Step::Done(_)) { self.next_child() } else { Ok(step) }
    }

    fn update_dependents(&mut self) -> Result<Step> {
        if !matches!(self.settled, Settled::Done | Settled::Failed) {
            return Ok(Step::Done(Outcome::Ended(self.settled)));
        }
        self.running = Running::Dependents;
        Ok(Step::Run(self.foreign.update_dependents(self.held.item.id, self.now)?))
    }
}

impl Steps for FinishSteps {
    fn begin(&mut self) -> Result<Step> {
        self.advance(EndAnswer::Nothing)
    }

    fn next(&mut self, rows: &Rows) -> Result<Step> {
        match self.running {
            Running::Step(EndStep::Finish | EndStep::FinishCancelled | EndStep::RecordStage) => {
                self.running = Running::Written;
                Ok(Step::Run(self.foreign.written()))
            }
            Running::Written => {
                self.advance(EndAnswer::TookEffect(rows.first().is_some_and(|row| integer(row, 1) == 1)))
            }
            Running::Step(EndStep::CheckHeld) if !rows.is_empty() => {
                self.running = Running::Triggers;
                Ok(Step::Run(self.foreign.foreign_triggers()))
            }
            Running::Step(EndStep::FindRest) => {
                self.advance(EndAnswer::Rest(rows.iter().map(|row| claimed(row)).collect()))
            }
            Running::Step(_) => self.advance(EndAnswer::Nothing),
            Running::Children => {
                let step = self.child.as_mut().map_or(Ok(Step::Fail), |child| child.next(rows))?;
                self.unless_done(step)
            }
            Running::Dependents => Ok(Step::Done(Outcome::Ended(self.settled))),
            Running::Triggers => {
                let what = format!("the end of item {}", self.steps.end().claim.fence.id);
                Err(ignored(&what, rows, self.queue.path().as_deref()))
            }
        }
    }

    fn failed(&mut self) -> Result<Step> {
        match self.running {
            Running::Step(step) if step.is_optional() => self.advance(EndAnswer::Nothing),
            Running::Children => self.child.as_mut().map_or(Ok(Step::Fail), Steps::failed),
            _ => Ok(Step::Fail),
        }
    }
}

impl ClaimedItem {
    /// The error for a claim whose item was cancelled.
    pub(super) fn cancelled_meanwhile(&self) -> Error {
        Error::Stale { id: self.item.id, why: "the item was cancelled".into() }
    }
}

/// A claim as its row records it; see `rest_of_batch.sql` for the columns.
fn claimed(row: &[Value]) -> Claimed {
    let value = |column: usize| row.get(column).cloned().unwrap_or(Value::Null);
    let number = |column: usize| if let Value::Integer(number) = value(column) { Some(number) } else { None };
    let words = |column: usize| (!matches!(value(column), Value::Null)).then(|| text(row, column));
    let count = |column: usize| number(column).and_then(|number| u32::try_from(number).ok());
    Claimed {
        fence: Fence { id: integer(row, 0), attempt: value(1), token: value(2) },
        retries: count(3).unwrap_or(0),
        max_retries: count(4),
        worker: words(5),
        started_at: words(6),
        cancelled: number(7) == Some(1),
        batch: number(8),
        has_group: number(11) == Some(1),
        holder: number(9),
        lease_ms: number(10),
        awaits_renewal: false,
    }
}
