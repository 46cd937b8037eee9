//! One step of a slot: records what ended and claims the next item, in one transaction.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::claim::{Claim, ClaimedItem, Pick, Taken};
use super::super::reclaim::RENEWAL_PAUSE;
use super::super::run::{Change, Verb};
use super::super::{Queue, lease as leases};
use super::{Next, Slot, Step, WorkerLoop};
use crate::error::{Error, Result};
use crate::rules::lease;
use crate::rules::outcome::{Ending, Settled};
use crate::store::View;

/// What a slot may do in this step.
struct Turn {
    /// How many items the slot may claim.
    most: u64,
    /// Whether all other slots are idle.
    is_last: bool,
}

/// What a transaction found.
enum Found {
    Items(usize, Taken),
    Nothing,
    /// Nothing is left and the lease is released, or the lease was lost.
    End,
}

impl WorkerLoop {
    /// Records how the slot's items ended, and claims the next ones.
    pub fn step(&self, slot: usize, endings: Vec<Ending>) -> Result<Step> {
        if self.is_inherited() {
            return Err(Error::Forked("a drain", "end the child with os._exit, or start a drain of its own"));
        }
        for ending in &endings {
            self.queue_of(slot).check_ending(ending)?;
        }
        let mut finishing = {
            let state = self.state.lock();
            let hand = &state.slots[slot];
            let items = hand.items.iter().map(|(held, _)| held.clone());
            (hand.queue, items.zip(endings).collect::<Vec<_>>())
        };
        let mut settled = Vec::new();
        loop {
            let Turn { most, is_last } = self.prepare(slot);
            let may_take = most > 0;
            if finishing.1.is_empty() && !may_take {
                self.leave(slot);
                return Ok(Step { settled, next: Next::Over });
            }
            let is_closing = is_last && !self.plan.stays;
            // A loop that enqueuers rely upon must find that nothing is left in the same transaction that releases its
            // lease and removes its registration.
            let looks = finishing.1.is_empty() && !(is_closing && self.is_relied_upon());
            let found = if looks && !self.is_worth_claiming().inspect_err(|_| self.unreserve(may_take))? {
                let is_over = is_closing && self.is_nothing_left(slot).inspect_err(|_| self.unreserve(may_take))?;
                if is_over { Found::End } else { Found::Nothing }
            } else {
                let recorded = self.record_and_take(slot, &finishing, most, is_closing);
                let (found, outcome) = recorded.inspect_err(|_| self.unreserve(may_take))?;
                settled.extend(self.note(slot, &finishing, outcome));
                finishing.1.clear();
                found
            };
            match found {
                Found::Items(_, taken) if taken.items.is_empty() && taken.unfinished => self.unreserve(may_take),
                Found::Items(_, taken) if taken.items.is_empty() && taken.awaits_renewal => {
                    self.unreserve(may_take);
                    std::thread::sleep(RENEWAL_PAUSE);
                }
                Found::Items(queue, taken) if !taken.items.is_empty() => {
                    let items = self.take_in_hand(slot, queue, taken.items)?;
                    if items.is_empty() {
                        continue;
                    }
                    return Ok(Step { settled, next: Next::Work(queue, items) });
                }
                Found::End => {
                    self.end();
                    return Ok(Step { settled, next: Next::Over });
                }
                Found::Items(..) | Found::Nothing => {
                    self.unreserve(may_take);
                    // Two slots may go idle at the same moment, each seeing the other as active. The last one then
                    // checks again.
                    if self.rest(slot) && !self.plan.stays && !is_last {
                        continue;
                    }
                    return Ok(Step { settled, next: Next::Wait });
                }
            }
        }
    }

    /// Reserves one item for the slot before a claim.
    fn prepare(&self, slot: usize) -> Turn {
        let mut state = self.state.lock();
        state.slots[slot].idle = false;
        let is_last = state.slots.iter().enumerate().all(|(other, hand)| other == slot || hand.idle);
        let left = self.plan.limit.map_or(u64::MAX, |limit| limit.saturating_sub(state.taken));
        let most = if state.stopped || state.over { 0 } else { left };
        if most > 0 {
            state.taken += 1;
        }
        Turn { most, is_last }
    }

    /// Whether every other slot is idle.
    fn is_last(&self, slot: usize) -> bool {
        let state = self.state.lock();
        state.slots.iter().enumerate().all(|(other, hand)| other == slot || hand.idle)
    }

    fn unreserve(&self, was_reserved: bool) {
        if was_reserved {
            self.state.lock().taken -= 1;
        }
    }

    /// Records what ended and claims the next items, or releases the lease, in one transaction.
    #[allow(clippy::type_complexity)]
    fn record_and_take(
        &self,
        slot: usize,
        finishing: &(usize, Vec<(Arc<ClaimedItem>, Ending)>),
        most: u64,
        is_closing: bool,
    ) -> Result<(Found, Vec<Settled>)> {
        let (number, endings) = finishing;
        let may_take = most > 0;
        let queue = &self.queues[*number];
        let hold = self.state.lock().lease.as_ref().map(|(hold, _)| hold.clone());
        // The next item may come from any queue. Each one must record this process's liveness before the claim.
        let mut liveness = None;
        if may_take {
            for queue in &self.queues {
                liveness = queue.liveness(queue.wait())?;
            }
        }
        let verb = Verb::Step { finishes: !endings.is_empty(), claims: may_take };
        queue.run(verb, |tx| {
            let outcome = self.record(tx, queue, endings)?;
            // The transaction may have waited long for the write lock. A loop that was stopped meanwhile must not
            // claim.
            if !may_take || self.stopping.load(Ordering::SeqCst) {
                return Ok((Found::Nothing, outcome));
            }
            if self.plan.exclusive {
                let is_ours = match &hold {
                    Some(hold) => leases::is_ours(tx, &lease::key(self.first().name()), hold)?,
                    None => false,
                };
                if !is_ours {
                    return Ok((Found::End, outcome));
                }
            }
            let mut unfinished = None;
            let turn = self.state.lock().turn;
            for offset in 0..self.queues.len() {
                let number = (turn + offset) % self.queues.len();
                let taken = self.queues[number].take(tx, &self.how(most), &liveness)?;
                if !taken.items.is_empty() {
                    self.state.lock().turn = number + 1;
                    return Ok((Found::Items(number, taken), outcome));
                }
                if taken.unfinished || taken.awaits_renewal {
                    unfinished = Some((number, taken));
                }
            }
            if let Some((number, taken)) = unfinished {
                return Ok((Found::Items(number, taken), outcome));
            }
            // A slot that has woken meanwhile works under this lease, so it is not released.
            if !is_closing || !self.is_last(slot) || self.is_something_due_soon(tx.view())? {
                return Ok((Found::Nothing, outcome));
            }
            if let Some(hold) = &hold {
                self.first().drop_worker_lease(tx, hold)?;
            }
            self.unregister_in(tx)?;
            Ok((Found::End, outcome))
        })
    }

    fn record(&self, tx: &Change, queue: &Queue, endings: &[(Arc<ClaimedItem>, Ending)]) -> Result<Vec<Settled>> {
        if !endings.is_empty() {
            queue.refresh_settings_if_readable(tx)?;
        }
        // A batch is recorded last item first. An item that fails releases the later ones, which have their own
        // endings.
        let mut outcome = Vec::with_capacity(endings.len());
        for (held, ending) in endings.iter().rev() {
            // The handler may have recorded the end itself.
            outcome.push(match held.settled() {
                Some(settled) => settled,
                None => queue.settle(tx, held, ending.clone())?,
            });
        }
        outcome.reverse();
        Ok(outcome)
    }

    fn how(&self, most: u64) -> Claim {
        if self.plan.whole_groups {
            Claim { limit: usize::try_from(most).unwrap_or(usize::MAX), pick: Pick::GroupOrOne, ..Claim::default() }
        } else {
            Claim::default()
        }
    }

    fn is_something_due_soon(&self, view: &dyn View) -> Result<bool> {
        if self.plan.linger_ms <= 0 {
            return Ok(false);
        }
        let latest = view.now().plus(self.plan.linger_ms);
        for queue in &self.queues {
            let next = view.next_due(queue.name(), true)?.into_iter().chain(queue.next_start_if_wanted(view)?).min();
            if next.is_some_and(|due| due <= latest) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a drain without a lease may end.
    fn is_nothing_left(&self, slot: usize) -> Result<bool> {
        Ok(self.is_last(slot) && !self.first().view(|view| self.is_something_due_soon(view))?)
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
    fn note(
        &self,
        slot: usize,
        finishing: &(usize, Vec<(Arc<ClaimedItem>, Ending)>),
        outcome: Vec<Settled>,
    ) -> Vec<Settled> {
        let (number, endings) = finishing;
        for ((held, _), settled) in endings.iter().zip(&outcome) {
            held.note_settled(*settled);
        }
        if !endings.is_empty() {
            self.state.lock().slots[slot].items.clear();
            self.queues[*number].tend_beside();
        }
        outcome
    }

    fn take_in_hand(&self, slot: usize, queue: usize, items: Vec<ClaimedItem>) -> Result<Vec<Arc<ClaimedItem>>> {
        let mut hand = Slot { queue, ..Slot::default() };
        for held in items {
            match self.queues[queue].keep_alive(&held, self.plan.max_runtime) {
                Ok(beat) => hand.items.push((Arc::new(held), beat)),
                // The lease expired before handling began; its new holder will handle the item.
                Err(Error::Stale { .. }) => {}
                Err(error) => {
                    self.unreserve(true);
                    let open = hand.items.iter().map(|(held, _)| &**held).chain([&held]).collect::<Vec<_>>();
                    self.queues[queue].release_many(&open)?;
                    return Err(error);
                }
            }
        }
        let items = hand.items.iter().map(|(held, _)| held.clone()).collect::<Vec<_>>();
        let mut state = self.state.lock();
        state.taken = state.taken - 1 + items.len() as u64;
        if state.over {
            // The loop was closed during the claim, so no handler may start.
            drop(state);
            if !items.is_empty() {
                self.queues[queue].release_many(&items.iter().map(|held| &**held).collect::<Vec<_>>())?;
            }
            return Ok(Vec::new());
        }
        state.slots[slot] = hand;
        // There may be more items: wake one idle slot, which wakes the next if it finds something.
        self.changed.notify_one();
        Ok(items)
    }

    /// Marks a slot as idle. Returns whether all slots are idle now.
    fn rest(&self, slot: usize) -> bool {
        let mut state = self.state.lock();
        state.slots[slot].idle = true;
        state.slots.iter().all(|hand| hand.idle)
    }

    fn leave(&self, slot: usize) {
        self.state.lock().slots[slot].idle = true;
        self.changed.notify_all();
        self.first().wake_all();
    }
}
