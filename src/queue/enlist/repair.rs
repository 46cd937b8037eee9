//! Retrying, cancelling, rescheduling and deleting items on the caller's own connection.

use std::collections::VecDeque;

use super::{Enlistment, Outcome, Rows, Step, Steps, integer};
use crate::error::{Error, Result};
use crate::model::{Now, When};
use crate::queue::repair::{NAMED_AT_MOST, referred_to, retriable_status};
use crate::queue::{Queue, Target, Targets};
use crate::store::{ForeignStatements, ItemChange, Statement};

/// A verb that changes items.
#[derive(Clone, Copy)]
pub enum Repair {
    /// Due after so many milliseconds.
    Retry(i64),
    Cancel,
    RunNow,
    RunLater(When),
    Delete,
}

impl Repair {
    /// The changes of one item, of which the first that has an effect is the last to be tried.
    fn changes(self, now: Now) -> VecDeque<ItemChange> {
        match self {
            Repair::Retry(delay) => [ItemChange::Retry((delay > 0).then(|| now.plus(delay)))].into(),
            Repair::Cancel => [ItemChange::Cancel, ItemChange::CancelRunning, ItemChange::CancelForGood].into(),
            Repair::RunNow => [ItemChange::RunNow].into(),
            Repair::RunLater(when) => [ItemChange::RunLater(when.due(now))].into(),
            Repair::Delete => [ItemChange::Delete].into(),
        }
    }
}

struct RepairSteps {
    foreign: &'static dyn ForeignStatements,
    queue: String,
    now: Now,
    repair: Repair,
    /// Finds the items, if their ids are not given.
    find: Option<Statement>,
    ids: VecDeque<i64>,
    /// The item whose turn it is, and what is still to be tried.
    current: i64,
    left: VecDeque<ItemChange>,
    /// For a deletion: the tables that may refer to the item, each with the question whether one does.
    references: VecDeque<(String, Statement)>,
    count: usize,
    is_one: bool,
    running: Running,
}

enum Running {
    Find,
    /// Asks which items need the one that is to be deleted.
    Needed,
    /// Asks whether a row of this table refers to the item.
    Reference(String),
    Change,
    /// Asks how many rows the change changed.
    Written,
    /// What the item still waits for is looked at again.
    Awaited,
    /// Updates those that wait for the item.
    Dependents,
}

impl Queue {
    /// Begins to change one item on the caller's own connection.
    pub fn enlist_repair(&self, target: &Target, repair: Repair) -> Result<Enlistment> {
        let foreign = self.session()?.store.foreign();
        match target {
            Target::Id(id) => self.enlist_changes(repair, None, vec![*id], true),
            Target::Key(key) => {
                let find = foreign.newest_with_key(self.name(), key)?;
                self.enlist_changes(repair, Some(find), Vec::new(), true)
            }
        }
    }

    /// Begins to retry several items on the caller's own connection.
    pub fn enlist_retry_many(&self, targets: &Targets, delay: i64) -> Result<Enlistment> {
        let foreign = self.session()?.store.foreign();
        match targets {
            Targets::Ids(ids) => self.enlist_changes(Repair::Retry(delay), None, ids.clone(), false),
            Targets::Status(status) => {
                retriable_status(*status)?;
                let find = foreign.finished_ids(self.name(), *status)?;
                self.enlist_changes(Repair::Retry(delay), Some(find), Vec::new(), false)
            }
        }
    }

    fn enlist_changes(
        &self,
        repair: Repair,
        find: Option<Statement>,
        ids: Vec<i64>,
        is_one: bool,
    ) -> Result<Enlistment> {
        let mut steps = RepairSteps {
            foreign: self.session()?.store.foreign(),
            queue: self.name().to_owned(),
            now: self.options.clock.now(),
            repair,
            find,
            ids: VecDeque::new(),
            current: 0,
            left: VecDeque::new(),
            references: VecDeque::new(),
            count: 0,
            is_one,
            running: Running::Find,
        };
        if matches!(repair, Repair::Delete) {
            steps.references = self.read(|view| view.references_to(self.name(), 0))?.into();
        }
        steps.take(ids);
        self.enlistment(Box::new(steps))
    }
}

impl RepairSteps {
    /// Of several items with one key only the latest is retried, so the largest id comes first.
    fn take(&mut self, mut ids: Vec<i64>) {
        ids.sort_unstable_by(|one, other| other.cmp(one));
        self.ids = ids.into();
    }

    fn next_item(&mut self) -> Result<Step> {
        let Some(id) = self.ids.pop_front() else {
            let outcome = if self.is_one { Outcome::Changed(self.count > 0) } else { Outcome::Count(self.count) };
            return Ok(Step::Done(outcome));
        };
        self.current = id;
        self.left = self.repair.changes(self.now);
        if matches!(self.repair, Repair::Delete) {
            self.running = Running::Needed;
            return Ok(Step::Run(self.foreign.needed_by(id, NAMED_AT_MOST)?));
        }
        self.next_change()
    }

    fn update_dependents(&mut self) -> Result<Step> {
        self.running = Running::Dependents;
        Ok(Step::Run(self.foreign.update_dependents(self.current, self.now)?))
    }

    fn next_change(&mut self) -> Result<Step> {
        if let Some((table, mut question)) = self.references.pop_front() {
            question.values[0] = crate::model::Value::Integer(self.current);
            self.running = Running::Reference(table);
            return Ok(Step::Run(question));
        }
        let Some(change) = self.left.pop_front() else { return self.next_item() };
        self.running = Running::Change;
        Ok(Step::Run(self.foreign.change(&self.queue, self.current, change, self.now)?))
    }
}

impl Steps for RepairSteps {
    fn begin(&mut self) -> Result<Step> {
        match self.find.take() {
            Some(find) => Ok(Step::Run(find)),
            None => self.next_item(),
        }
    }

    fn next(&mut self, rows: &Rows) -> Result<Step> {
        match &self.running {
            Running::Find => {
                self.take(rows.iter().map(|row| integer(row, 0)).collect());
                self.next_item()
            }
            Running::Needed if !rows.is_empty() => {
                let needed_by = rows.iter().map(|row| integer(row, 0)).collect();
                Err(Error::Needed { id: self.current, needed_by })
            }
            Running::Needed => self.next_change(),
            Running::Reference(table) if !rows.is_empty() => Err(referred_to(self.current, table)),
            Running::Reference(_) => self.next_change(),
            Running::Change => {
                self.running = Running::Written;
                Ok(Step::Run(self.foreign.written()))
            }
            Running::Written if rows.first().is_some_and(|row| integer(row, 1) > 0) => {
                self.count += 1;
                match self.repair {
                    Repair::Retry(_) => {
                        self.running = Running::Awaited;
                        Ok(Step::Run(self.foreign.note_awaited_by(self.current)?))
                    }
                    Repair::Cancel | Repair::Delete => self.update_dependents(),
                    Repair::RunNow | Repair::RunLater(_) => self.next_item(),
                }
            }
            Running::Written => self.next_change(),
            Running::Awaited => self.update_dependents(),
            Running::Dependents => self.next_item(),
        }
    }
}
