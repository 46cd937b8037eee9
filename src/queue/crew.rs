//! A crew: the slots of one loop. Each slot records what it did, claims the next item in the same transaction, and waits
//! or leaves when there is none.
//!
//! Of the slots that find nothing, one keeps watch over the file and the others sleep behind it. When the last slot of a
//! drain finds nothing, "nothing is left" and "the worker lease is free" are one transaction, so that an enqueuer who sees
//! a live worker can trust that it will look again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant};

use super::claim::{Claim, From, Held, Taken};
use super::reclaim::RENEWAL_PAUSE;
use super::run::{Change, Verb};
use super::wait::Waiting;
use super::{Queue, worker};
use crate::error::{Error, Result};
use crate::heartbeat::Beat;
use crate::process;
use crate::rules::lease;
use crate::rules::outcome::{Ending, Settled};
use crate::store::{Kept, View};
use crate::sync::{Mutex, wait};

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

pub struct Crew {
    /// All in one file.
    queues: Vec<Arc<Queue>>,
    plan: Plan,
    state: Mutex<State>,
    changed: Condvar,
    /// In the hands of the slot that keeps watch.
    watch: Mutex<Option<Waiting>>,
    /// For those who handle an item, who must not wait for a transaction to learn it.
    stopping: Arc<AtomicBool>,
    generation: u64,
}

#[derive(Default)]
struct State {
    lease: Option<(worker::Hold, Beat)>,
    hands: Vec<Hand>,
    taken: u64,
    /// The queue after the one that was served last: where the next claim begins, so that no queue starves another.
    turn: usize,
    watching: Option<usize>,
    stopped: bool,
    over: bool,
}

/// What a slot holds.
#[derive(Default)]
struct Hand {
    items: Vec<(Arc<Held>, Beat)>,
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
    Work(usize, Vec<Arc<Held>>),
    Wait,
    Over,
}

/// What a slot may do.
struct Turn {
    /// How many items it may take.
    most: u64,
    /// All others are idle.
    is_last: bool,
}

/// More would be a mistake, and cost memory before the first item is claimed.
const MOST_SLOTS: usize = 10_000;

/// What a transaction found.
enum Found {
    Items(usize, Taken),
    Nothing,
    /// Nothing is left, and the lease was given back.
    End,
}

impl Crew {
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
        let hands = (0..plan.slots).map(|_| Hand::default()).collect();
        let state = Mutex::new(State { hands, ..State::default() });
        let crew = Self {
            queues,
            plan,
            state,
            changed: Condvar::new(),
            watch: Mutex::default(),
            stopping: Arc::default(),
            generation: process::generation(),
        };
        if crew.plan.exclusive
            && let Err(error) = crew.keep_lease()
        {
            crew.first().release_worker_lease()?;
            return Err(error);
        }
        Ok(Some(crew))
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
        let number = self.state.lock().hands[slot].queue;
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

    /// Set once the crew was asked to stop; outlives it.
    pub fn stopping(&self) -> Arc<AtomicBool> {
        self.stopping.clone()
    }

    /// Whether a connection of this process that is not ours keeps the file locked.
    pub fn is_held_up_by_this_process(&self) -> Result<bool> {
        Ok(self.first().session()?.store.is_held_up_by_this_process())
    }

    pub fn is_stopped(&self) -> bool {
        self.is_inherited() || self.state.lock().stopped
    }

    /// Records how the items in a slot's hand ended, and claims the next.
    pub fn step(&self, slot: usize, endings: Vec<Ending>) -> Result<Step> {
        if self.is_inherited() {
            return Err(Error::Forked("a drain", "end the child with os._exit, or start a drain of its own"));
        }
        for ending in &endings {
            self.queue_of(slot).check_ending(ending)?;
        }
        let mut finishing = {
            let state = self.state.lock();
            let hand = &state.hands[slot];
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
            // Where a lease is to be given back, "nothing is left" must be found by the transaction that does.
            let looks = finishing.1.is_empty() && !(is_closing && self.plan.exclusive);
            let found = if looks && !self.is_promising().inspect_err(|_| self.unreserve(may_take))? {
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
                    // Two slots may have gone idle at the same moment, each believing in the other.
                    if self.rest(slot) && !self.plan.stays && !is_last {
                        continue;
                    }
                    return Ok(Step { settled, next: Next::Wait });
                }
            }
        }
    }

    /// Before a claim.
    fn prepare(&self, slot: usize) -> Turn {
        let mut state = self.state.lock();
        state.hands[slot].idle = false;
        let is_last = state.hands.iter().enumerate().all(|(other, hand)| other == slot || hand.idle);
        let left = self.plan.limit.map_or(u64::MAX, |limit| limit.saturating_sub(state.taken));
        let most = if state.stopped || state.over { 0 } else { left };
        if most > 0 {
            state.taken += 1;
        }
        Turn { most, is_last }
    }

    /// Whether no slot but this one is at work or about to look.
    fn is_last(&self, slot: usize) -> bool {
        let state = self.state.lock();
        state.hands.iter().enumerate().all(|(other, hand)| other == slot || hand.idle)
    }

    fn unreserve(&self, was_reserved: bool) {
        if was_reserved {
            self.state.lock().taken -= 1;
        }
    }

    /// One transaction: what ended is recorded, the next is claimed, or the lease given back.
    #[allow(clippy::type_complexity)]
    fn record_and_take(
        &self,
        slot: usize,
        finishing: &(usize, Vec<(Arc<Held>, Ending)>),
        most: u64,
        is_closing: bool,
    ) -> Result<(Found, Vec<Settled>)> {
        let (number, endings) = finishing;
        let may_take = most > 0;
        let queue = &self.queues[*number];
        let hold = self.state.lock().lease.as_ref().map(|(hold, _)| hold.clone());
        // Whatever queue the next item comes from, the file knows that this process may hold it.
        let mut liveness = None;
        if may_take {
            for queue in &self.queues {
                liveness = queue.liveness(queue.wait())?;
            }
        }
        let verb = Verb::Step { finishes: !endings.is_empty(), claims: may_take };
        queue.run(verb, |tx| {
            let outcome = self.record(tx, queue, endings)?;
            // It may have waited long for its turn to write: what was given back meanwhile is not for a crew that stops.
            if !may_take || self.stopping.load(Ordering::SeqCst) {
                return Ok((Found::Nothing, outcome));
            }
            if self.plan.exclusive {
                let is_ours = match &hold {
                    Some(hold) => worker::is_ours(tx, &lease::key(self.first().name()), hold)?,
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
            // A slot that has woken meanwhile works under this lease.
            if !is_closing || !self.is_last(slot) || self.is_something_due_soon(tx.view())? {
                return Ok((Found::Nothing, outcome));
            }
            if let Some(hold) = &hold {
                self.first().drop_worker_lease(tx, hold)?;
            }
            Ok((Found::End, outcome))
        })
    }

    fn record(&self, tx: &Change, queue: &Queue, endings: &[(Arc<Held>, Ending)]) -> Result<Vec<Settled>> {
        if !endings.is_empty() {
            queue.refresh_settings_if_readable(tx)?;
        }
        // The last of a batch first: one that fails gives the later ones back, and these have endings of their own.
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
            Claim { limit: usize::try_from(most).unwrap_or(usize::MAX), from: From::GroupOrOne, ..Claim::default() }
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

    fn is_promising(&self) -> Result<bool> {
        for queue in &self.queues {
            if queue.outlook()?.is_promising() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// After the commit: the slot's hand is empty, unless it was emptied meanwhile by `close`.
    fn note(&self, slot: usize, finishing: &(usize, Vec<(Arc<Held>, Ending)>), outcome: Vec<Settled>) -> Vec<Settled> {
        let (number, endings) = finishing;
        for ((held, _), settled) in endings.iter().zip(&outcome) {
            held.note_settled(*settled);
        }
        if !endings.is_empty() {
            self.state.lock().hands[slot].items.clear();
            self.queues[*number].tend_beside();
        }
        outcome
    }

    fn take_in_hand(&self, slot: usize, queue: usize, items: Vec<Held>) -> Result<Vec<Arc<Held>>> {
        let mut hand = Hand { queue, ..Hand::default() };
        for held in items {
            match self.queues[queue].keep_alive(&held, self.plan.max_runtime) {
                Ok(beat) => hand.items.push((Arc::new(held), beat)),
                // Its lease was over before it began; whoever has it now will handle it.
                Err(Error::Stale { .. }) => {}
                Err(error) => {
                    self.unreserve(true);
                    for held in hand.items.iter().map(|(held, _)| &**held).chain([&held]) {
                        self.queues[queue].release(held, 0)?;
                    }
                    return Err(error);
                }
            }
        }
        let items = hand.items.iter().map(|(held, _)| held.clone()).collect::<Vec<_>>();
        let mut state = self.state.lock();
        state.taken = state.taken - 1 + items.len() as u64;
        if state.over {
            // Closed while the claim was under way: nobody is to handle it any more.
            drop(state);
            for held in items.iter().rev() {
                self.queues[queue].release(held, 0)?;
            }
            return Ok(Vec::new());
        }
        state.hands[slot] = hand;
        // There may be more: one that is idle looks, and wakes the next if it finds something.
        self.changed.notify_one();
        Ok(items)
    }

    /// A slot that found nothing. Says whether all are idle now.
    fn rest(&self, slot: usize) -> bool {
        let mut state = self.state.lock();
        state.hands[slot].idle = true;
        state.hands.iter().all(|hand| hand.idle)
    }

    fn leave(&self, slot: usize) {
        self.state.lock().hands[slot].idle = true;
        self.changed.notify_all();
        self.first().wake_all();
    }

    /// Nobody takes anything any more, so there is nothing to wait for.
    fn is_done(&self, state: &State) -> bool {
        state.stopped || state.over || self.plan.limit.is_some_and(|limit| state.taken >= limit)
    }

    fn end(&self) {
        let mut state = self.state.lock();
        state.over = true;
        state.lease = None;
        state.hands.iter_mut().for_each(|hand| hand.idle |= hand.items.is_empty());
        drop(state);
        if self.plan.exclusive {
            self.first().forget_worker_lease();
        }
        self.changed.notify_all();
        self.first().wake_all();
    }

    /// One slice of a wait. Says whether it is worth stepping again.
    pub fn wait(&self, slot: usize, limit: Duration) -> Result<bool> {
        if self.is_inherited() {
            return Ok(true);
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
                    // While this slot does something else, another one watches.
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

    /// Watches the file for a while, after a look of its own: what came before the watch began is seen too.
    fn watch(&self, limit: Duration) -> Result<bool> {
        let mut watch = self.watch.lock();
        let waiting = match &mut *watch {
            Some(waiting) => waiting,
            None => watch.insert(self.first().wait_for_work()?),
        };
        let started = Instant::now();
        loop {
            if waiting.is_worth_looking {
                let mut by_itself = None;
                for queue in &self.queues {
                    let outlook = queue.outlook()?;
                    if outlook.is_promising() && waiting.believe(self.plan.slots) {
                        waiting.note_found();
                        return Ok(true);
                    }
                    by_itself = [by_itself, outlook.by_itself].into_iter().flatten().min();
                }
                waiting.expect(by_itself);
            }
            let left = limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let is_worth_looking = waiting.sleep(left)?;
            if self.is_done(&self.state.lock()) {
                return Ok(true);
            }
            // A signal came, or the time is over.
            if !is_worth_looking {
                return Ok(false);
            }
        }
    }

    /// Does for all queues what is done about once a minute; somebody else watches meanwhile. Returns one of the items that
    /// only foreign keys have kept.
    pub fn tend(&self) -> Result<Option<Kept>> {
        self.changed.notify_one();
        self.queues.iter().try_fold(None, |kept: Option<Kept>, queue| {
            Ok(kept.or(queue.tend(|| self.stopping.load(Ordering::SeqCst))?))
        })
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
        state.hands.iter_mut().for_each(|hand| hand.items.clear());
    }

    /// Gives back what is still held: items uncounted, and the lease. Says how many items were given back.
    pub fn close(&self) -> Result<usize> {
        if self.is_inherited() {
            return Ok(0);
        }
        self.stop();
        let hands = {
            let mut state = self.state.lock();
            state.over = true;
            state.hands.iter_mut().map(|hand| (hand.queue, std::mem::take(&mut hand.items))).collect::<Vec<_>>()
        };
        let mut released = 0;
        let mut failure = None;
        for (slot, (queue, items)) in hands.into_iter().enumerate() {
            // The last of a batch first, so that each is given back by itself.
            for (held, beat) in items.into_iter().rev().filter(|(held, _)| !held.is_settled()) {
                match self.queues[queue].release(&held, 0) {
                    Ok(given_back) => {
                        held.withdraw();
                        released += usize::from(given_back);
                    }
                    Err(error) => {
                        // What could not be given back is kept, so that closing can be tried again.
                        self.state.lock().hands[slot].items.push((held, beat));
                        failure = Some(error);
                    }
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
