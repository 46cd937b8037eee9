//! One worker's way through the queue: record the last item, claim the next, or leave, each time in one transaction.

use std::sync::Arc;

use super::claim::{Claim, Held};
use super::{Queue, worker};
use crate::error::{Error, Result};
use crate::heartbeat::Beat;
use crate::lease;
use crate::outcome::{Ending, Settled};
use crate::sqlite;
use crate::sync::Mutex;

/// A drain under way. It holds the worker lease and at most one item, and gives both back when it is closed.
pub struct Drain {
    queue: Arc<Queue>,
    state: Mutex<State>,
    generation: u64,
}

#[derive(Default)]
struct State {
    lease: Option<(worker::Hold, Beat)>,
    current: Option<(Arc<Held>, Beat)>,
}

/// What a step gave: how the last item was settled, and the next one to handle.
pub struct Step {
    pub settled: Option<Settled>,
    pub next: Option<Arc<Held>>,
}

impl Drain {
    /// Takes the worker lease; `None` when another live worker holds it.
    pub fn begin(queue: Arc<Queue>, ttl_ms: i64) -> Result<Option<Self>> {
        if !queue.acquire_worker_lease(ttl_ms)? {
            return Ok(None);
        }
        let drain = Self { queue, state: Mutex::default(), generation: sqlite::generation() };
        if let Err(error) = drain.watch_lease() {
            drain.queue.release_worker_lease()?;
            return Err(error);
        }
        Ok(Some(drain))
    }

    fn is_inherited(&self) -> bool {
        self.generation != sqlite::generation()
    }

    fn watch_lease(&self) -> Result<()> {
        if let Some(hold) = self.queue.worker_hold()? {
            let beat = self.queue.keep_worker_lease(&hold)?;
            self.state.lock().lease = Some((hold, beat));
        }
        Ok(())
    }

    /// Records how the current item ended and claims the next. When nothing is due, or when the worker lease is no
    /// longer ours, the lease is gone from the same transaction on.
    pub fn step(&self, ending: Option<Ending>) -> Result<Step> {
        let queue = &self.queue;
        if self.is_inherited() {
            return Err(Error::Forked("a drain", "end the child with os._exit, or start a drain of its own"));
        }
        if let Some(ending) = &ending {
            queue.check_ending(ending)?;
        }
        let mut state = self.state.lock();
        let finishing = state.current.as_ref().map(|(held, _)| held.clone()).zip(ending);
        let Some(hold) = state.lease.as_ref().map(|(hold, _)| hold.clone()) else {
            return Ok(Step { settled: None, next: None });
        };
        let sync = if finishing.is_some() { queue.acknowledged() } else { sqlite::Flush::Normal };
        let mut settled = None;
        let mut ending = finishing;
        let next = loop {
            let (took, outcome) = queue.transact(sync, |tx| {
                let outcome = match &ending {
                    // The handler may have recorded the end itself.
                    Some((held, ending)) => Some(match held.settled() {
                        Some(settled) => settled,
                        None => queue.settle(tx, held, ending.clone())?,
                    }),
                    None => None,
                };
                if !worker::is_ours(tx, &lease::key(queue.name()), &hold)? {
                    return Ok((None, outcome));
                }
                let taken = queue.take(tx, &Claim::default())?;
                if taken.items.is_empty() && !taken.unfinished {
                    queue.drop_worker_lease(tx, &hold)?;
                }
                Ok((Some(taken), outcome))
            })?;
            if let Some((held, _)) = ending.take() {
                let outcome = outcome.expect("an ending was given");
                queue.after_settling(&held, outcome);
                settled = Some(outcome);
                state.current = None;
            }
            match took {
                Some(taken) if taken.items.is_empty() && taken.unfinished => continue,
                Some(mut taken) => break taken.items.pop(),
                None => break None,
            }
        };
        match next {
            Some(held) => {
                let held = Arc::new(held);
                state.current = Some((held.clone(), queue.keep_alive(&held)?));
                Ok(Step { settled, next: Some(held) })
            }
            None => {
                state.lease = None;
                queue.forget_worker_lease();
                Ok(Step { settled, next: None })
            }
        }
    }

    /// Gives back what is still held: the item uncounted, and the lease. Says whether an item was given back.
    pub fn close(&self) -> Result<bool> {
        if self.is_inherited() {
            return Ok(false);
        }
        let mut state = self.state.lock();
        let released = match &state.current {
            Some((held, _)) if !held.is_settled() => self.queue.release(held, 0)?,
            _ => false,
        };
        // Only now: what could not be given back is kept, so that closing can be tried again.
        state.current = None;
        if state.lease.is_some() {
            self.queue.release_worker_lease()?;
            state.lease = None;
        }
        Ok(released)
    }
}
