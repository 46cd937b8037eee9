//! Idle slots: one watches the file, the others sleep until it wakes them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::super::wait::SLICE;
use super::{Next, State, Step, WorkerLoop};
use crate::error::Result;
use crate::model::Pick;
use crate::rules::outcome::Ending;
use crate::store::ReferencedItem;
use crate::sync::wait;
use crate::wake::Awaiting;

impl WorkerLoop {
    /// Whether no slot will claim any more, so that there is nothing to wait for.
    fn is_done(&self, state: &State) -> bool {
        state.stopped || state.over || self.plan.limit.is_some_and(|limit| state.taken >= limit)
    }

    /// Waits for one slice. Returns whether another step is worthwhile.
    pub fn wait(&self, slot: usize, limit: Duration) -> Result<bool> {
        if self.is_inherited() {
            return Ok(true);
        }
        // Not a drain: another slot may be finding, outside a transaction, that nothing is left.
        if self.plan.stays {
            self.register()?;
        }
        let started = Instant::now();
        let mut state = self.state.lock();
        loop {
            if self.is_done(&state) {
                return Ok(true);
            }
            let left = limit.saturating_sub(started.elapsed());
            if state.watching.is_none() {
                state.watching = Some(slot);
                drop(state);
                let looks = self.watch(left);
                self.state.lock().watching = None;
                if !matches!(looks, Ok(false)) {
                    // While this slot takes its step, another one watches.
                    self.changed.notify_one();
                }
                return looks;
            }
            if left.is_zero() {
                return Ok(false);
            }
            state = wait(&self.changed, state, Some(left));
        }
    }

    /// Watches the file for a while. It looks once at the start, to see changes made before the watch began.
    fn watch(&self, limit: Duration) -> Result<bool> {
        let mut watch = self.watch.lock();
        let waiting = match &mut *watch {
            Some(waiting) => waiting,
            None => watch.insert(self.first().begin_waiting(Awaiting::Work(self.line().clone()))?),
        };
        let started = Instant::now();
        loop {
            if waiting.is_worth_looking {
                let mut until_next_event = None;
                for queue in &self.queues {
                    let work_forecast = queue.work_forecast()?;
                    if work_forecast.is_worth_claiming() {
                        if waiting.may_trust_forecast(self.plan.slots) {
                            waiting.mark_found();
                            // The slot that watches next need not look: `advance` lets it, if the claim leaves something.
                            waiting.is_worth_looking = false;
                            return Ok(true);
                        }
                        // This loop could not claim it; another may.
                        waiting.pass_on();
                    }
                    until_next_event = [until_next_event, work_forecast.until_next_event].into_iter().flatten().min();
                }
                waiting.expect(until_next_event);
            }
            let left = limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let slept = Instant::now();
            let is_worth_looking = waiting.sleep(left)?;
            if self.is_done(&self.state.lock()) {
                waiting.pass_on();
                return Ok(true);
            }
            // A signal came; a sleep that lasted its time goes on.
            if !is_worth_looking && slept.elapsed() < left.min(SLICE) {
                return Ok(false);
            }
        }
    }

    /// Takes a step. If it claimed, and something is left, another slot, loop or claim of this process gets its turn.
    pub fn advance(&self, slot: usize, endings: Vec<Ending>) -> Result<Step> {
        let step = self.step(slot, endings)?;
        if matches!(step.next, Next::Work(..)) {
            let is_any_idle = self.state.lock().slots.iter().any(|slot| slot.idle);
            self.first().wake_next(self.line(), &self.queues, is_any_idle);
        }
        Ok(step)
    }

    /// Names what the loop waits for; see `Queue::line`.
    fn line(&self) -> &Arc<str> {
        self.line.get_or_init(|| {
            let pick = if self.plan.whole_groups { Pick::GroupOrOne } else { Pick::Queue };
            self.queues.iter().map(|queue| queue.line(&pick)).collect::<Vec<_>>().join("\n").into()
        })
    }

    /// Runs the periodic cleanup of all queues while another slot watches. Returns one of the items that only a foreign
    /// key keeps.
    pub fn tend(&self) -> Result<Option<ReferencedItem>> {
        self.changed.notify_one();
        self.queues.iter().try_fold(None, |kept: Option<ReferencedItem>, queue| {
            Ok(kept.or(queue.tend(|| self.stopping.load(Ordering::SeqCst))?))
        })
    }
}
