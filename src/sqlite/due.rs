//! When something of a queue is next due, as far as the writing connection knows. A claim made before then need not look
//! for what is due: the first claimable item is enough.

use std::cell::RefCell;

use super::Transaction;
use crate::error::Result;
use crate::store::{Scout, Served};

/// Until when nothing of a queue is due. What could make something due earlier must be reported, or forget this.
#[derive(Default)]
pub struct NextDue(RefCell<Vec<(String, i64)>>);

impl NextDue {
    fn of(&self, queue: &str) -> Option<i64> {
        self.0.borrow().iter().find(|(name, _)| name == queue).map(|(_, at)| *at)
    }

    fn learn(&self, queue: &str, at: i64) {
        let mut queues = self.0.borrow_mut();
        match queues.iter_mut().find(|(name, _)| name == queue) {
            Some((_, known)) => *known = at,
            None => queues.push((queue.to_owned(), at)),
        }
    }

    fn no_later_than(&self, queue: &str, at: i64) {
        if let Some((_, known)) = self.0.borrow_mut().iter_mut().find(|(name, _)| name == queue) {
            *known = at.min(*known);
        }
    }

    pub fn forget(&self) {
        self.0.borrow_mut().clear();
    }
}

impl Transaction<'_> {
    /// What a claim made now would find, if it is known that nothing is due and something is claimable.
    pub(super) fn known_scout(&self, served: &Served) -> Result<Option<Scout>> {
        let Some(writer) = self.writer else { return Ok(None) };
        let nothing_is_due = writer.next_due.of(served.name).is_some_and(|at| self.now.ms() < at);
        if !nothing_is_due || served.looks_ahead {
            return Ok(None);
        }
        let Some(ready) = self.next(served.name)? else { return Ok(None) };
        Ok(Some(Scout::only_ready(ready, served.known.clone())))
    }

    /// Keeps what a look has found, unless a trigger of the application or a rate may change it at any time.
    pub(super) fn learn_next_due(&self, served: &Served, scout: &Scout) {
        let is_lasting = self.keeps_books() && served.settings.group_rate.is_none();
        if let Some(writer) = self.writer
            && is_lasting
            && !scout.needs_action()
            && !scout.paused
        {
            writer.next_due.learn(served.name, scout.next_event.unwrap_or(i64::MAX));
        }
    }

    /// Reports that something of this queue will be due at this time.
    pub(super) fn will_be_due(&self, queue: &str, at: i64) {
        if let Some(writer) = self.writer {
            writer.next_due.no_later_than(queue, at);
        }
    }

    /// To be called before anything is done that may make something due.
    pub(super) fn anything_may_be_due(&self) {
        if let Some(writer) = self.writer {
            writer.next_due.forget();
        }
    }
}
