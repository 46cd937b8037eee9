//! One step of a slot: records what ended and claims the next item, in one transaction.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::advance::{Claiming, Findings, Outcome, Report, advance, is_anything_due};
use super::super::claim::{Claim, ClaimedItem};
use super::super::promise::Promise;
use super::super::reclaim::RENEWAL_PAUSE;
use super::super::run::Verb;
use super::{Next, Slot, State, Step, WorkerLoop};
use crate::error::{Error, Result};
use crate::model::Pick;
use crate::rules::lease;
use crate::rules::outcome::{Ending, Settled, uncommitted};
use crate::store::Closing;
use crate::sync::wait;

/// How long a slot waits for another one that finds out whether the loop is over.
const LONGEST_CLOSING: Duration = Duration::from_millis(100);

/// What a slot may do in this step.
struct StepLimits {
    /// How many items the slot may claim.
    most: u64,
    /// Whether all other slots are idle.
    is_last: bool,
}

impl WorkerLoop {
    /// Records how the slot's items ended, and claims the next ones.
    pub fn step(&self, slot: usize, endings: Vec<Ending>) -> Result<Step> {
        if self.is_inherited() {
            return Err(Error::Forked("a drain", "end the child with os._exit, or start a drain of its own"));
        }
        for ending in &endings {
            self.check_ending(slot, ending)?;
        }
        let mut finishing = {
            let state = self.state.lock();
            let entry = &state.slots[slot];
            let items = entry.items.iter().map(|(held, _)| held.clone());
            (entry.queue, items.zip(endings).collect::<Vec<_>>())
        };
        let mut settled = Vec::new();
        match self.move_on(slot, &mut finishing, &mut settled) {
            Ok(next) => Ok(Step { settled, next }),
            Err(error) if settled.is_empty() || matches!(error, Error::Crash(_) | Error::Interrupted) => Err(error),
            // The ends are recorded, and are reported. The next step meets the error again.
            Err(_) => {
                self.rest(slot);
                Ok(Step { settled, next: Next::Wait })
            }
        }
    }

    /// Refuses an ending of the slot's items that could not be recorded.
    pub fn check_ending(&self, slot: usize, ending: &Ending) -> Result<()> {
        self.queue_of(slot).check_ending(ending)
    }

    /// Records the ends and claims, in as many moves as it takes. `settled` has what is recorded, even after an error.
    fn move_on(
        &self,
        slot: usize,
        finishing: &mut (usize, Vec<(Arc<ClaimedItem>, Ending)>),
        settled: &mut Vec<Settled>,
    ) -> Result<Next> {
        let mut findings = Findings::default();
        loop {
            let Some(StepLimits { most, is_last }) = self.prepare(slot) else {
                return Ok(Next::Wait);
            };
            let may_take = most > 0;
            if finishing.1.is_empty() && !may_take {
                self.leave(slot);
                return Ok(Next::Over);
            }
            let is_closing = is_last && !self.plan.stays;
            // A loop that enqueuers rely upon must find that nothing is left in the same transaction that releases its
            // lease and removes its registration.
            let looks = finishing.1.is_empty() && findings.is_empty() && !(is_closing && self.is_relied_upon());
            let moved = if looks && !self.is_worth_claiming().inspect_err(|_| self.unreserve(slot, may_take))? {
                let is_over = is_closing && self.is_nothing_left().inspect_err(|_| self.unreserve(slot, may_take))?;
                Outcome { is_over, ..Outcome::default() }
            } else {
                let moved = self.record_and_claim(finishing, most, is_closing, std::mem::take(&mut findings));
                let mut moved = moved.inspect_err(|_| self.unreserve(slot, may_take))?;
                settled.extend(self.empty_slot(slot, finishing, std::mem::take(&mut moved.settled)));
                finishing.1.clear();
                moved
            };
            if !moved.items.is_empty() {
                let items = self.start_items(slot, moved.queue, moved.items)?;
                if items.is_empty() {
                    continue;
                }
                return Ok(Next::Work(moved.queue, items));
            }
            if moved.is_over || moved.is_lease_lost {
                if moved.is_over {
                    self.mark_unregistered();
                }
                self.end();
                return Ok(Next::Over);
            }
            self.unreserve(slot, may_take);
            findings = moved.findings;
            if may_take && (!findings.is_empty() || moved.is_more || moved.awaits_renewal) {
                if moved.awaits_renewal {
                    std::thread::sleep(RENEWAL_PAUSE);
                }
                continue;
            }
            // Two slots may go idle at the same moment, each seeing the other as active. The last one then checks
            // again.
            if self.rest(slot) && !self.plan.stays && !is_last {
                continue;
            }
            return Ok(Next::Wait);
        }
    }

    /// Reserves one item for the slot before a claim. While the last active slot finds out whether the loop is over, the
    /// others wait: one that woke meanwhile would work under a lease that is just being released. Returns `None` if that
    /// takes long.
    fn prepare(&self, slot: usize) -> Option<StepLimits> {
        let started = Instant::now();
        let mut state = self.state.lock();
        while state.closing.is_some_and(|other| other != slot) && !state.over {
            let left = LONGEST_CLOSING.saturating_sub(started.elapsed());
            if left.is_zero() {
                return None;
            }
            state = wait(&self.changed, state, Some(left));
        }
        state.slots[slot].idle = false;
        let is_last = state.slots.iter().enumerate().all(|(other, entry)| other == slot || entry.idle);
        let left = self.plan.limit.map_or(u64::MAX, |limit| limit.saturating_sub(state.taken));
        let most = if state.stopped || state.over { 0 } else { left };
        if most > 0 {
            state.taken += 1;
            state.closing = (is_last && !self.plan.stays).then_some(slot);
        }
        Some(StepLimits { most, is_last })
    }

    /// Ends what `prepare` began: the slot has claimed nothing.
    fn unreserve(&self, slot: usize, was_reserved: bool) {
        if was_reserved {
            let mut state = self.state.lock();
            state.taken -= 1;
            self.reopen(&mut state, slot);
        }
    }

    fn reopen(&self, state: &mut State, slot: usize) {
        if state.closing == Some(slot) {
            state.closing = None;
            self.changed.notify_all();
        }
    }

    /// Records what ended and claims the next items, or releases the lease, in one transaction.
    fn record_and_claim(
        &self,
        finishing: &(usize, Vec<(Arc<ClaimedItem>, Ending)>),
        most: u64,
        is_closing: bool,
        findings: Findings,
    ) -> Result<Outcome> {
        let (number, endings) = finishing;
        let queues = self.queues.iter().map(|queue| &**queue).collect::<Vec<_>>();
        let wait = queues[*number].wait();
        // A batch is recorded last item first: an item that fails releases the later ones, which have their own endings.
        // The handler may have recorded an end itself.
        let open = endings.iter().rev().filter(|(held, _)| !held.is_settled());
        let reports = open.map(|(held, ending)| Report { queue: *number, held, ending: decided(held, ending.clone()) });
        let reports = reports.collect::<Vec<_>>();
        let hold = self.state.lock().lease.as_ref().map(|(hold, _)| hold.clone());
        let is_lease_lost = self.plan.exclusive && hold.is_none();
        let claims = most > 0 && !is_lease_lost;
        // The next item may come from any queue. Each one must record this process's liveness before the claim.
        let mut liveness = None;
        if claims {
            for queue in &queues {
                liveness = queue.liveness(wait)?;
            }
        }
        let (how, key) = (self.how(most), lease::key(self.first().name()));
        let claiming = claims.then(|| Claiming {
            how: &how,
            liveness: &liveness,
            unless: &self.stopping,
            lease: hold.as_ref().map(|hold| (key.as_str(), hold)),
            closing: is_closing.then(|| self.closing()),
            findings,
        });
        if reports.is_empty() && claiming.is_none() {
            let settled = endings.iter().filter_map(|(held, _)| held.settled()).collect();
            return Ok(Outcome { settled, is_lease_lost: most > 0 && is_lease_lost, ..Outcome::default() });
        }
        let verb = Verb::Step { finishes: !endings.is_empty(), claims: most > 0 };
        let mut outcome = advance(&queues, verb, wait, &reports, claiming)?;
        let mut recorded = outcome.settled.into_iter().rev();
        // What the handler has recorded was not sent.
        let mut became = |held: &ClaimedItem, ending: &Ending| match held.settled() {
            Some(settled) => settled,
            None => self.learned(*number, held, ending, recorded.next().unwrap_or(Settled::Lost)),
        };
        outcome.settled = endings.iter().map(|(held, ending)| became(held, ending)).collect();
        outcome.is_lease_lost |= most > 0 && is_lease_lost;
        Ok(outcome)
    }

    /// Learns which promised ends of a slot's items were committed. Returns whether one was not.
    pub fn look_at_promises(&self, slot: usize) -> Result<bool> {
        if self.is_inherited() {
            return Ok(false);
        }
        let held = self.state.lock().slots[slot].items.iter().map(|(held, _)| held.clone()).collect::<Vec<_>>();
        let mut is_open = false;
        for held in &held {
            is_open |= self.queue_of(slot).look_at_promise(held)? == Some(Promise::Open);
        }
        Ok(is_open)
    }

    /// What became of a claim whose report the store has answered. A promised end that was committed meanwhile is not a
    /// lost claim.
    fn learned(&self, queue: usize, held: &ClaimedItem, ending: &Ending, answered: Settled) -> Settled {
        if held.promised().is_none() {
            return answered;
        }
        if answered == Settled::Lost
            && let Ok(Some(Promise::Kept(settled))) = self.queues[queue].look_at_promise(held)
        {
            return settled;
        }
        if answered.took_effect() && matches!(ending, Ending::Done { .. }) {
            held.mark_broken();
        }
        held.forget_promise();
        answered
    }

    fn how(&self, most: u64) -> Claim {
        if self.plan.whole_groups {
            Claim { limit: usize::try_from(most).unwrap_or(usize::MAX), pick: Pick::GroupOrOne, ..Claim::default() }
        } else {
            Claim::default()
        }
    }

    /// How the loop leaves if nothing is left.
    fn closing(&self) -> Closing<'_> {
        Closing { linger_ms: self.plan.linger_ms, registration: self.registration_key() }
    }

    /// Whether a drain without a lease may end.
    fn is_nothing_left(&self) -> Result<bool> {
        let queues = self.queues.iter().map(|queue| &**queue).collect::<Vec<_>>();
        Ok(!is_anything_due(&queues, self.plan.linger_ms)?)
    }

    pub(super) fn is_worth_claiming(&self) -> Result<bool> {
        for queue in &self.queues {
            if queue.work_forecast()?.is_worth_claiming() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Called after the commit: empties the slot, which `close` may already have done.
    fn empty_slot(
        &self,
        slot: usize,
        finishing: &(usize, Vec<(Arc<ClaimedItem>, Ending)>),
        outcome: Vec<Settled>,
    ) -> Vec<Settled> {
        let (number, endings) = finishing;
        for ((held, _), settled) in endings.iter().zip(&outcome) {
            held.mark_settled(*settled);
        }
        if !endings.is_empty() {
            self.state.lock().slots[slot].items.clear();
            self.queues[*number].tend_if_due();
        }
        outcome
    }

    fn start_items(&self, slot: usize, queue: usize, items: Vec<ClaimedItem>) -> Result<Vec<Arc<ClaimedItem>>> {
        let mut entry = Slot { queue, ..Slot::default() };
        for held in items {
            match self.queues[queue].keep_alive(&held, self.plan.max_runtime) {
                Ok(beat) => entry.items.push((Arc::new(held), beat)),
                // The lease expired before handling began; its new holder will handle the item.
                Err(Error::Stale { .. }) => {}
                Err(error) => {
                    self.unreserve(slot, true);
                    let open = entry.items.iter().map(|(held, _)| &**held).chain([&held]).collect::<Vec<_>>();
                    self.queues[queue].release_many(&open)?;
                    return Err(error);
                }
            }
        }
        let items = entry.items.iter().map(|(held, _)| held.clone()).collect::<Vec<_>>();
        let mut state = self.state.lock();
        state.taken = state.taken - 1 + items.len() as u64;
        self.reopen(&mut state, slot);
        if state.over {
            // The loop was closed during the claim, so no handler may start.
            drop(state);
            if !items.is_empty() {
                self.queues[queue].release_many(&items.iter().map(|held| &**held).collect::<Vec<_>>())?;
            }
            return Ok(Vec::new());
        }
        state.slots[slot] = entry;
        // There may be more items: wake one idle slot, which wakes the next if it finds something.
        self.changed.notify_one();
        Ok(items)
    }

    /// Marks a slot as idle. Returns whether all slots are idle now.
    fn rest(&self, slot: usize) -> bool {
        let mut state = self.state.lock();
        state.slots[slot].idle = true;
        state.slots.iter().all(|entry| entry.idle)
    }

    fn leave(&self, slot: usize) {
        self.state.lock().slots[slot].idle = true;
        self.changed.notify_all();
        self.first().wake_all();
    }
}

/// How a claim ends. If its end was promised, the handler's return does not make it done.
fn decided(held: &ClaimedItem, ending: Ending) -> Ending {
    match held.promised() {
        Some(said) => uncommitted(said, ending),
        None => ending,
    }
}
