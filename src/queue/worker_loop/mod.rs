//! A worker loop and its slots. Each slot records what it did and claims the next item in the same transaction. If
//! there is none, it waits or leaves.
//!
//! Of the slots that find nothing, one watches the file and the others sleep until it wakes them. When the last slot of
//! a drain finds nothing, one transaction finds that nothing is left, releases the worker lease and removes the loop's
//! registration. So an enqueuer that sees a live worker can rely on it to look again.

mod registration;
mod step;
mod watch;
mod withdrawn;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, OnceLock};
use std::time::Duration;

use self::registration::Registration;
use super::claim::ClaimedItem;
use super::wait::Waiting;
use super::{Queue, lease as leases};
use crate::error::{Error, Result};
use crate::heartbeat::Heartbeat;
use crate::process;
use crate::rules::outcome::Settled;
use crate::sync::Mutex;

/// The options of a loop.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many items, or groups, are handled at once.
    pub slots: usize,
    /// Be the only worker of the queue: hold its worker lease.
    pub exclusive: bool,
    /// Take over the worker lease as membox does; see `take_over_worker_lease`.
    pub takes_over: bool,
    /// Keep waiting when nothing is left, until stopped.
    pub stays: bool,
    /// Keep waiting while something is due within this time.
    pub linger_ms: i64,
    /// Claim at most this many items.
    pub limit: Option<u64>,
    /// Claim all pending items of a group at once; an item without a group is claimed alone.
    pub whole_groups: bool,
    /// Renew a claim for at most this long.
    pub max_runtime: Option<Duration>,
    /// The lifetime of the worker lease.
    pub ttl_ms: i64,
}

pub struct WorkerLoop {
    /// All queues are in one file.
    queues: Vec<Arc<Queue>>,
    plan: Plan,
    state: Mutex<State>,
    changed: Condvar,
    /// Used by the slot that watches the file.
    watch: Mutex<Option<Waiting>>,
    last_look: Mutex<withdrawn::LastLook>,
    line: OnceLock<Arc<str>>,
    /// Tells running handlers that the loop is stopping, without waiting for a transaction.
    stopping: Arc<AtomicBool>,
    registration: Option<Registration>,
    generation: u64,
}

#[derive(Default)]
struct State {
    lease: Option<(leases::LeaseHold, Heartbeat)>,
    slots: Vec<Slot>,
    taken: u64,
    /// The slot that finds out whether the loop is over.
    closing: Option<usize>,
    watching: Option<usize>,
    stopped: bool,
    over: bool,
}

/// The claimed items of a slot.
#[derive(Default)]
struct Slot {
    items: Vec<(Arc<ClaimedItem>, Heartbeat)>,
    queue: usize,
    /// Whether the slot found nothing and waits, or has left.
    idle: bool,
}

/// The result of a step: how the last items were settled, and what to do next.
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

/// A larger number would be a mistake, and would use memory before the first item is claimed.
const MOST_SLOTS: usize = 10_000;

impl WorkerLoop {
    /// Starts a loop, with the worker lease if the plan is exclusive. Returns `None` if another live worker holds it.
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
        // Shows other processes at once, before the first claim, that this one works on the database.
        first.session()?.store.liveness();
        let slots = (0..plan.slots).map(|_| Slot::default()).collect();
        let state = Mutex::new(State { slots, ..State::default() });
        let mut worker_loop = Self {
            queues,
            plan,
            state,
            changed: Condvar::new(),
            watch: Mutex::default(),
            last_look: Mutex::default(),
            line: OnceLock::new(),
            stopping: Arc::default(),
            registration: None,
            generation: process::generation(),
        };
        if let Err(error) = worker_loop.enter() {
            if worker_loop.plan.exclusive {
                worker_loop.first().release_worker_lease()?;
            }
            return Err(error);
        }
        Ok(Some(worker_loop))
    }

    fn enter(&mut self) -> Result<()> {
        if self.plan.exclusive {
            self.keep_lease()?;
        }
        self.registration = Registration::new(&self.queues, &self.plan)?;
        // A drain without a lease that finds nothing takes no write lock.
        let is_short = !self.plan.exclusive && !self.plan.stays && self.plan.linger_ms <= 0;
        if is_short && !self.is_worth_claiming()? { Ok(()) } else { self.register() }
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

    /// The queues of the loop, by number.
    pub fn queues(&self) -> &[Arc<Queue>] {
        &self.queues
    }

    /// The queue of a slot's items.
    pub fn queue_of(&self, slot: usize) -> &Arc<Queue> {
        if self.is_inherited() {
            return self.first();
        }
        let number = self.state.lock().slots[slot].queue;
        &self.queues[number]
    }

    /// Stops claiming; items already claimed are handled to their end.
    pub fn stop(&self) {
        if self.is_inherited() {
            return;
        }
        // First, so that no enqueuer relies on a loop that claims no more.
        self.show_stopping();
        self.stopping.store(true, Ordering::SeqCst);
        self.state.lock().stopped = true;
        self.changed.notify_all();
        self.first().wake_all();
    }

    /// Set once the loop was asked to stop; remains valid after the loop is gone.
    pub fn stopping(&self) -> Arc<AtomicBool> {
        self.stopping.clone()
    }

    /// Whether a connection of this process that the queue did not open keeps the file locked.
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
        state.slots.iter_mut().for_each(|entry| entry.idle |= entry.items.is_empty());
        drop(state);
        if self.plan.exclusive {
            self.first().forget_worker_lease();
        }
        self.changed.notify_all();
        self.first().wake_all();
    }

    /// Leaves everything as a dying process would: nothing is renewed any more, and nothing is released.
    pub fn abandon(&self) {
        if self.is_inherited() {
            return;
        }
        self.stop();
        let mut state = self.state.lock();
        state.over = true;
        state.lease = None;
        state.slots.iter_mut().for_each(|entry| entry.items.clear());
        drop(state);
        self.drop_liveness();
    }

    /// Releases the remaining items uncounted, and the worker lease. Returns how many items were released.
    pub fn close(&self) -> Result<usize> {
        if self.is_inherited() {
            return Ok(0);
        }
        self.stop();
        let slots = {
            let mut state = self.state.lock();
            state.over = true;
            state.slots.iter_mut().map(|entry| (entry.queue, std::mem::take(&mut entry.items))).collect::<Vec<_>>()
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
                    // Items that could not be released are kept, so that closing can be tried again.
                    self.state.lock().slots[slot].items.extend(open);
                    failure = Some(error);
                }
            }
        }
        // Renewal of the lease stops here, even if the release fails.
        let lease = self.state.lock().lease.take();
        if lease.is_some()
            && let Err(error) = self.first().release_worker_lease()
        {
            self.first().forget_worker_lease();
            failure = failure.or(Some(error));
        }
        self.unregister();
        self.watch.lock().take();
        *self.last_look.lock() = withdrawn::LastLook::default();
        failure.map_or(Ok(released), Err)
    }
}
