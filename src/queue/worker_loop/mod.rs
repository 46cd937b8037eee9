//! A worker loop: its slots. Each slot records what it did, claims the next item in the same transaction, and waits
//! or leaves when there is none.
//!
//! Of the slots that find nothing, one keeps watch over the file and the others sleep behind it. When the last slot of a
//! drain finds nothing, "nothing is left" and "the worker lease is free" are one transaction, so that an enqueuer who sees
//! a live worker can trust that it will look again.

mod step;
mod watch;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar};
use std::time::Duration;

use super::claim::ClaimedItem;
use super::wait::Waiting;
use super::{Queue, lease as leases};
use crate::error::{Error, Result};
use crate::heartbeat::Heartbeat;
use crate::process;
use crate::rules::outcome::Settled;
use crate::sync::Mutex;

/// What a loop is for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many items, or groups, are handled at once.
    pub slots: usize,
    /// Be the one worker of the queue: hold its worker lease.
    pub exclusive: bool,
    /// Take that lease as membox does; see `take_over_worker_lease`.
    pub takes_over: bool,
    /// Stay when nothing is left, until stopped.
    pub stays: bool,
    /// Stay while something falls due within this time.
    pub linger_ms: i64,
    /// Take no more items than this.
    pub limit: Option<u64>,
    /// Take everything pending of one group at once; what has no group comes by itself.
    pub whole_groups: bool,
    /// Renew a claim no longer than this.
    pub max_runtime: Option<Duration>,
    /// Of the worker lease.
    pub ttl_ms: i64,
}

pub struct WorkerLoop {
    /// All in one file.
    queues: Vec<Arc<Queue>>,
    plan: Plan,
    state: Mutex<State>,
    changed: Condvar,
    /// In the slots of the slot that keeps watch.
    watch: Mutex<Option<Waiting>>,
    /// For those who handle an item, who must not wait for a transaction to learn it.
    stopping: Arc<AtomicBool>,
    generation: u64,
}

#[derive(Default)]
struct State {
    lease: Option<(leases::LeaseHold, Heartbeat)>,
    slots: Vec<Slot>,
    taken: u64,
    /// The queue after the one that was served last: where the next claim begins, so that no queue starves another.
    turn: usize,
    watching: Option<usize>,
    stopped: bool,
    over: bool,
}

/// What a slot holds.
#[derive(Default)]
struct Slot {
    items: Vec<(Arc<ClaimedItem>, Heartbeat)>,
    queue: usize,
    /// It found nothing and waits, or has left.
    idle: bool,
}

/// What a step gave: how the last items were settled, and what to do next.
pub struct Step {
    pub settled: Vec<Settled>,
    pub next: Next,
}

pub enum Next {
    /// Items of the queue with this number.
    Work(usize, Vec<Arc<ClaimedItem>>),
    Wait,
    Over,
}

/// More would be a mistake, and cost memory before the first item is claimed.
const MOST_SLOTS: usize = 10_000;

impl WorkerLoop {
    /// Takes the worker lease if the plan says so; `None` when another live worker holds it.
    pub fn begin(queues: Vec<Arc<Queue>>, plan: Plan) -> Result<Option<Self>> {
        let first = queues.first().ok_or_else(|| Error::Invalid("a worker needs at least one queue".into()))?;
        if !(1..=MOST_SLOTS).contains(&plan.slots) {
            return Err(Error::Invalid(format!("concurrency must be between 1 and {MOST_SLOTS}")));
        }
        if queues.iter().any(|queue| queue.address != first.address) {
            return Err(Error::Invalid("the queues of one worker must be in one file".into()));
        }
        if plan.exclusive {
            let ttl_ms = plan.ttl_ms;
            let is_ours =
                if plan.takes_over { first.take_over_worker_lease(ttl_ms) } else { first.acquire_worker_lease(ttl_ms) };
            if !is_ours? {
                return Ok(None);
            }
        }
        let slots = (0..plan.slots).map(|_| Slot::default()).collect();
        let state = Mutex::new(State { slots, ..State::default() });
        let worker_loop = Self {
            queues,
            plan,
            state,
            changed: Condvar::new(),
            watch: Mutex::default(),
            stopping: Arc::default(),
            generation: process::generation(),
        };
        if worker_loop.plan.exclusive
            && let Err(error) = worker_loop.keep_lease()
        {
            worker_loop.first().release_worker_lease()?;
            return Err(error);
        }
        Ok(Some(worker_loop))
    }

    fn first(&self) -> &Arc<Queue> {
        &self.queues[0]
    }

    fn keep_lease(&self) -> Result<()> {
        if let Some(hold) = self.first().worker_hold()? {
            let beat = self.first().keep_worker_lease(&hold)?;
            self.state.lock().lease = Some((hold, beat));
        }
        Ok(())
    }

    fn is_inherited(&self) -> bool {
        self.generation != process::generation()
    }

    /// The queues served, by their numbers.
    pub fn queues(&self) -> &[Arc<Queue>] {
        &self.queues
    }

    /// The queue that the items in a slot's hand come from.
    pub fn queue_of(&self, slot: usize) -> &Arc<Queue> {
        if self.is_inherited() {
            return self.first();
        }
        let number = self.state.lock().slots[slot].queue;
        &self.queues[number]
    }

    /// Claims no more; what is in hand is handled to its end.
    pub fn stop(&self) {
        if self.is_inherited() {
            return;
        }
        self.stopping.store(true, Ordering::SeqCst);
        self.state.lock().stopped = true;
        self.changed.notify_all();
        self.first().wake_all();
    }

    /// Set once the loop was asked to stop; outlives it.
    pub fn stopping(&self) -> Arc<AtomicBool> {
        self.stopping.clone()
    }

    /// Whether a connection of this process that is not ours keeps the file locked.
    pub fn is_blocked_by_this_process(&self) -> Result<bool> {
        Ok(self.first().session()?.store.is_blocked_by_this_process())
    }

    pub fn is_stopped(&self) -> bool {
        self.is_inherited() || self.state.lock().stopped
    }

    fn end(&self) {
        let mut state = self.state.lock();
        state.over = true;
        state.lease = None;
        state.slots.iter_mut().for_each(|hand| hand.idle |= hand.items.is_empty());
        drop(state);
        if self.plan.exclusive {
            self.first().forget_worker_lease();
        }
        self.changed.notify_all();
        self.first().wake_all();
    }

    /// Leaves everything as it is, as a process that dies does: nothing is renewed any more, and nothing given back.
    pub fn abandon(&self) {
        if self.is_inherited() {
            return;
        }
        self.stop();
        let mut state = self.state.lock();
        state.over = true;
        state.lease = None;
        state.slots.iter_mut().for_each(|hand| hand.items.clear());
    }

    /// Releases what is still held: items uncounted, and the lease. Returns how many items were released.
    pub fn close(&self) -> Result<usize> {
        if self.is_inherited() {
            return Ok(0);
        }
        self.stop();
        let slots = {
            let mut state = self.state.lock();
            state.over = true;
            state.slots.iter_mut().map(|hand| (hand.queue, std::mem::take(&mut hand.items))).collect::<Vec<_>>()
        };
        let mut released = 0;
        let mut failure = None;
        for (slot, (queue, items)) in slots.into_iter().enumerate() {
            let open = items.into_iter().filter(|(held, _)| !held.is_settled()).collect::<Vec<_>>();
            if open.is_empty() {
                continue;
            }
            match self.queues[queue].release_many(&open.iter().map(|(held, _)| &**held).collect::<Vec<_>>()) {
                Ok(count) => {
                    open.iter().for_each(|(held, _)| held.withdraw());
                    released += count;
                }
                Err(error) => {
                    // What could not be released is kept, so that closing can be tried again.
                    self.state.lock().slots[slot].items.extend(open);
                    failure = Some(error);
                }
            }
        }
        // Not renewed any more, whatever comes of the rest.
        let lease = self.state.lock().lease.take();
        if lease.is_some()
            && let Err(error) = self.first().release_worker_lease()
        {
            self.first().forget_worker_lease();
            failure = failure.or(Some(error));
        }
        self.watch.lock().take();
        failure.map_or(Ok(released), Err)
    }
}
