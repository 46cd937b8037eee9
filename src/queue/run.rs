//! The only way into a write transaction. The verb decides how the commit is flushed and where tests may inject a
//! fault. The transaction's events are acted upon after the commit.

use std::cell::RefCell;
use std::ops::Deref;

use super::{Durability, Queue};
use crate::error::Result;
use crate::faults;
use crate::model::Event;
use crate::store::{CommitSync, LockWait, Store, Tx, View};

/// The purpose of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Enqueue,
    Claim,
    Finish,
    /// A step of a worker loop.
    Step {
        finishes: bool,
        claims: bool,
    },
    /// Ends an item without a claim.
    Answer,
    /// Administrative changes to items: retry, copy, cancel, reschedule, remove.
    Repair,
    /// Administrative changes to the queue: settings, schedules, pauses.
    Configure,
    /// Records a step of a handler.
    AddStep,
    Extend,
    Progress,
    /// Worker leases and named locks.
    Lease,
    /// Records in the file that this process may claim.
    Enter,
    Reclaim,
    /// Lets schedules that are due enqueue their items.
    Tick,
    Tend,
}

impl Verb {
    /// Whether the change must survive a power cut once the call has returned. Losing any other change only causes a
    /// redelivery.
    fn is_acknowledged(self) -> bool {
        match self {
            Verb::Enqueue | Verb::Finish | Verb::AddStep | Verb::Answer | Verb::Repair | Verb::Configure => true,
            Verb::Step { finishes, .. } => finishes,
            Verb::Claim
            | Verb::Extend
            | Verb::Progress
            | Verb::Lease
            | Verb::Enter
            | Verb::Reclaim
            | Verb::Tick
            | Verb::Tend => false,
        }
    }

    /// Whether items may have ended, come back or gone, so that those that wait for them are updated.
    fn may_end_items(self) -> bool {
        matches!(self, Verb::Repair | Verb::Answer | Verb::Tend)
    }

    /// Where a test may make the verb fail before it has changed anything.
    fn fault_points(self) -> &'static [faults::FaultPoint] {
        use faults::FaultPoint;
        match self {
            Verb::Enqueue => &[FaultPoint::Enqueue],
            Verb::Claim | Verb::Step { finishes: false, claims: true } => &[FaultPoint::Claim],
            Verb::Finish | Verb::Step { finishes: true, claims: false } => &[FaultPoint::Finish],
            Verb::Step { finishes: true, claims: true } => &[FaultPoint::Finish, FaultPoint::Claim],
            _ => &[],
        }
    }
}

/// A running transaction and the events of its changes.
pub(super) struct Change<'a> {
    tx: &'a dyn Tx,
    events: RefCell<Vec<Event>>,
}

impl Change<'_> {
    pub fn view(&self) -> &dyn View {
        self.tx
    }

    /// Adds an event, which takes effect only if the transaction commits.
    pub fn tell(&self, event: Event) {
        let mut events = self.events.borrow_mut();
        // Consecutive equal events count as one.
        if events.last() != Some(&event) {
            events.push(event);
        }
    }
}

impl<'a> Deref for Change<'a> {
    type Target = dyn Tx + 'a;

    fn deref(&self) -> &Self::Target {
        self.tx
    }
}

impl Queue {
    pub(super) fn run<T: Send>(&self, verb: Verb, work: impl FnOnce(&Change) -> Result<T> + Send) -> Result<T> {
        self.run_within(verb, self.wait(), work)
    }

    /// Like `run`, with another limit for waiting on other writers.
    pub(super) fn run_within<T: Send>(
        &self,
        verb: Verb,
        wait: LockWait,
        work: impl FnOnce(&Change) -> Result<T> + Send,
    ) -> Result<T> {
        self.move_store(verb, |store, commit_sync| {
            store.write(commit_sync, &self.options.clock, wait, |tx| {
                let change = Change { tx, events: RefCell::default() };
                let value = work(&change)?;
                if verb.may_end_items() && change.update_dependents(&[])?.any {
                    change.tell(Event::Changed);
                }
                Ok((value, change.events.into_inner()))
            })
        })
    }

    /// Runs a whole move of the store, which returns its value and the events of its changes.
    pub(super) fn move_store<T>(
        &self,
        verb: Verb,
        run: impl FnOnce(&dyn Store, CommitSync) -> Result<(T, Vec<Event>)>,
    ) -> Result<T> {
        let session = self.session()?;
        faults::before(verb.fault_points())?;
        let (value, events) = run(&*session.store, self.commit_sync(verb))?;
        for event in &events {
            self.act_upon(*event);
        }
        self.tell_warnings();
        faults::after(&events)?;
        Ok(value)
    }

    fn commit_sync(&self, verb: Verb) -> CommitSync {
        match self.options.durability {
            Durability::Full if verb.is_acknowledged() => CommitSync::Full,
            Durability::Full | Durability::Normal => CommitSync::Normal,
        }
    }

    /// Wakes the threads of this process that wait for the event. Other processes notice the commit itself.
    fn act_upon(&self, event: Event) {
        let Some(session) = &*self.session.load() else { return };
        let wake_signal = session.store.wake_signal();
        match event {
            Event::Enqueued | Event::Returned | Event::Claimable => wake_signal.wake_for_work(),
            Event::Ended { id, frees_group } => {
                wake_signal.wake_for_end(id);
                if frees_group {
                    wake_signal.wake_for_work();
                }
            }
            Event::Removed { id } => {
                wake_signal.wake_for_end(id);
                wake_signal.wake_for_work();
            }
            Event::Changed => wake_signal.wake(),
            Event::Claimed => {}
        }
    }
}
