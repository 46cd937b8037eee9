//! Claim, lease, fence and retry as a state machine: what each step does to two items in the hands of three workers.
//!
//! What becomes of a claim is decided by the queue's own `outcome.rs`, compiled in from its place. Times are kept as ticks
//! from now, so that a moving clock makes no new states. The ghosts are what a checker knows and the queue does not.

#[allow(dead_code)]
#[path = "../../../src/error.rs"]
mod error;
#[allow(dead_code)]
#[path = "../../../src/rules/outcome.rs"]
mod outcome;
#[allow(dead_code)]
#[path = "../../../src/rules/retry.rs"]
mod retry;
#[allow(dead_code)]
#[path = "../../../src/model/time.rs"]
mod time;

mod model {
    pub use crate::time::{LATEST_MS, millis};

    /// The stages of an item are no part of this model.
    #[derive(Clone, Debug, PartialEq)]
    pub struct NextStage;
}

#[cfg(test)]
mod check;

use outcome::{Ending, RetryState, Verdict, decide};
use retry::{Backoff, Retry};

pub const ITEMS: usize = 2;
pub const WORKERS: usize = 3;
/// Ticks of a second.
const LEASE: i8 = 2;
const TICK_MS: i64 = 1_000;
const CEILING: u8 = 2;
/// How often a person brings some item back, and a worker gives one back uncounted.
const REVIVALS: u8 = 1;
const RELEASES: u8 = 1;
/// How often one receipt is presented.
const TRIES: u8 = 2;

/// What is built wrongly, to show that it would be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bug {
    None,
    /// Any claim's end is accepted while the item is in work.
    FenceIsTheIdOnly,
    /// The fence is the attempt alone, and a person's retry starts it anew.
    FenceIsAnAttemptThatResets,
    /// A claim's time is read before the wait for the lock.
    NowIsReadEarly,
    /// A lost lease is not counted, only a reported failure.
    AttemptsAreCountedLate,
    /// Claims that nobody ends are never taken back.
    NothingIsTakenBack,
    /// A lease that reaches further than it was granted, after the clock went back, is believed.
    AClockThatGoesBackIsBelieved,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Due in so many ticks.
    Pending(i8),
    Processing,
    Done,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Item {
    pub status: Status,
    retries: u8,
    attempt: u8,
    token: u8,
    /// Ticks that are left of the lease.
    lease: i8,
    /// The process that holds it is dead, and the system has dropped its lock.
    orphaned: bool,
    revivals: u8,
    releases: u8,
    /// Ghost: how many claims there were.
    claims: u8,
    /// Ghost: ticks since somebody first found it taken, after its claim, its last renewal or the clock's last jump.
    awaited: Option<i8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt {
    item: usize,
    attempt: u8,
    token: u8,
    /// Ghost: which claim it was.
    claim: u8,
    tries: u8,
    accepted: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Worker {
    /// The last one, also after it was used: a late call presents it again.
    receipt: Option<Receipt>,
    /// With the bug: ticks since the clock was read for the next claim.
    looked: Option<i8>,
}

/// What must never happen, noted when it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    pub stale_finish: bool,
    pub second_finish: bool,
    pub stale_renewal: bool,
    pub short_lease: bool,
    pub too_many_attempts: bool,
    pub held_too_long: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub items: [Item; ITEMS],
    pub workers: [Worker; WORKERS],
    pub faults: Faults,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Look(usize),
    Claim(usize),
    Done(usize),
    Fail(usize),
    Release(usize),
    Extend(usize),
    /// The process dies, and another takes its place.
    Crash(usize),
    /// A person brings a failed item back.
    Revive(usize),
    Tick,
    /// The wall clock is set back.
    JumpBack,
}

impl State {
    pub fn new() -> Self {
        let item = Item {
            status: Status::Pending(0),
            retries: 0,
            attempt: 0,
            token: 0,
            lease: 0,
            orphaned: false,
            revivals: 0,
            releases: 0,
            claims: 0,
            awaited: None,
        };
        Self { items: [item; ITEMS], workers: [Worker::default(); WORKERS], faults: Faults::default() }
    }

    pub fn is_at_rest(&self) -> bool {
        self.items.iter().all(|item| matches!(item.status, Status::Done | Status::Failed))
    }

    pub fn actions(&self, bug: Bug) -> Vec<Action> {
        let mut actions = vec![Action::Tick, Action::JumpBack];
        for (number, worker) in self.workers.iter().enumerate() {
            match worker.receipt {
                Some(receipt) => {
                    actions.extend([Action::Done(number), Action::Fail(number), Action::Extend(number)]);
                    actions.push(Action::Crash(number));
                    if self.items.iter().map(|item| item.releases).sum::<u8>() < RELEASES {
                        actions.push(Action::Release(number));
                    }
                }
                None => {}
            }
            let is_free = worker.receipt.is_none_or(|receipt| receipt.tries > 0);
            if is_free && bug == Bug::NowIsReadEarly && worker.looked.is_none() {
                actions.push(Action::Look(number));
            }
            if is_free && (bug != Bug::NowIsReadEarly || worker.looked.is_some()) {
                actions.push(Action::Claim(number));
            }
        }
        for (number, item) in self.items.iter().enumerate() {
            if item.status == Status::Failed && self.items.iter().map(|item| item.revivals).sum::<u8>() < REVIVALS {
                actions.push(Action::Revive(number));
            }
        }
        actions
    }

    /// `None` when nothing changes.
    pub fn after(&self, action: Action, bug: Bug) -> Option<Self> {
        let mut next = self.clone();
        match action {
            Action::Look(worker) => next.workers[worker].looked = Some(0),
            Action::Claim(worker) => next.claim(worker, bug),
            Action::Done(worker) => next.finish(worker, Ending::Done { result: None }, bug),
            Action::Fail(worker) => {
                next.finish(worker, Ending::Failed { error: "no".into(), retry_in: None, give_up: false }, bug);
            }
            Action::Release(worker) => next.finish(worker, Ending::released_now(), bug),
            Action::Extend(worker) => next.extend(worker, bug),
            Action::Crash(worker) => next.crash(worker),
            Action::Revive(item) => next.revive(item, bug),
            Action::Tick => next.pass(1),
            Action::JumpBack => next.pass(-LEASE),
        }
        // Workers are alike: their order makes no new states.
        next.workers.sort();
        (next != *self).then_some(next)
    }

    /// The clock moves by so many ticks; backwards only when somebody sets it.
    fn pass(&mut self, clock: i8) {
        for item in &mut self.items {
            match &mut item.status {
                // Waiting for a time that moved away is allowed; it is bounded by how far the clock jumps.
                Status::Pending(due) if *due > 0 => *due = (*due - clock).clamp(0, LEASE),
                Status::Processing => {
                    item.lease = (item.lease - clock).clamp(0, 2 * LEASE);
                    item.awaited = item.awaited.filter(|_| clock > 0).map(|ticks| (ticks + clock).min(2 * LEASE));
                }
                _ => {}
            }
        }
        for worker in &mut self.workers {
            worker.looked = worker.looked.map(|age| (age + clock).clamp(0, LEASE));
        }
    }

    fn claim(&mut self, worker: usize, bug: Bug) {
        for number in 0..ITEMS {
            let item = self.items[number];
            let is_ahead = item.lease > LEASE && bug != Bug::AClockThatGoesBackIsBelieved;
            let is_over = item.lease <= 0 || is_ahead || item.orphaned;
            if item.status == Status::Processing && is_over && bug != Bug::NothingIsTakenBack {
                self.record(number, Ending::Lost { worker: None }, bug);
            }
        }
        for item in self.items.iter_mut().filter(|item| item.status == Status::Processing) {
            // What is not taken back by now is held longer than was granted.
            self.faults.held_too_long |= *item.awaited.get_or_insert(0) > LEASE;
        }
        let early = self.workers[worker].looked.take().unwrap_or(0);
        let Some(number) = self.items.iter().position(|item| item.status == Status::Pending(0)) else { return };
        let item = &mut self.items[number];
        item.status = Status::Processing;
        item.attempt += 1;
        item.claims += 1;
        // Random, so never the same twice; the ghost's number stands for it.
        item.token = item.claims;
        item.lease = LEASE - early;
        item.awaited = None;
        item.orphaned = false;
        self.faults.short_lease |= item.lease < LEASE;
        self.faults.too_many_attempts |=
            item.attempt > (CEILING + item.releases) * (1 + item.revivals) && bug != Bug::FenceIsAnAttemptThatResets;
        let Item { attempt, token, claims: claim, .. } = *item;
        self.workers[worker].receipt = Some(Receipt { item: number, attempt, token, claim, tries: 0, accepted: false });
    }

    fn accepts(&self, receipt: &Receipt, bug: Bug) -> bool {
        let item = &self.items[receipt.item];
        let fits = match bug {
            Bug::FenceIsTheIdOnly => true,
            Bug::FenceIsAnAttemptThatResets => item.attempt == receipt.attempt,
            _ => item.attempt == receipt.attempt && item.token == receipt.token,
        };
        item.status == Status::Processing && fits
    }

    fn finish(&mut self, worker: usize, ending: Ending, bug: Bug) {
        let Some(mut receipt) = self.workers[worker].receipt else { return };
        receipt.tries += 1;
        if self.accepts(&receipt, bug) {
            self.faults.stale_finish |= self.items[receipt.item].claims != receipt.claim;
            self.faults.second_finish |= receipt.accepted;
            receipt.accepted = true;
            if let Ending::Released { .. } = ending {
                self.items[receipt.item].releases += 1;
            }
            self.record(receipt.item, ending, bug);
        }
        self.workers[worker].receipt = (receipt.tries < TRIES).then_some(receipt);
    }

    fn extend(&mut self, worker: usize, bug: Bug) {
        let Some(receipt) = self.workers[worker].receipt else { return };
        if self.accepts(&receipt, bug) {
            let item = &mut self.items[receipt.item];
            self.faults.stale_renewal |= item.claims != receipt.claim;
            item.lease = LEASE;
            item.awaited = None;
        }
    }

    fn crash(&mut self, worker: usize) {
        if let Some(receipt) = self.workers[worker].receipt {
            let item = &mut self.items[receipt.item];
            item.orphaned |= item.status == Status::Processing && item.claims == receipt.claim;
        }
        self.workers[worker] = Worker::default();
    }

    fn revive(&mut self, number: usize, bug: Bug) {
        let item = &mut self.items[number];
        item.status = Status::Pending(0);
        item.retries = 0;
        item.revivals += 1;
        if bug == Bug::FenceIsAnAttemptThatResets {
            item.attempt = 0;
        }
    }

    /// Writes what the rule says.
    fn record(&mut self, number: usize, ending: Ending, bug: Bug) {
        let policy = Retry::new(u32::from(CEILING), 1.0, 2.0, 60.0, 0.0, Backoff::Exponential).expect("a policy");
        let was_lost = matches!(ending, Ending::Lost { .. });
        let item = &mut self.items[number];
        let left =
            RetryState { retries: u32::from(item.retries), max_retries: None, policy: Some(&policy), queue_max: 9 };
        let (verdict, _) = decide(ending, &left, 0.5);
        let before = item.retries;
        match verdict {
            Verdict::Done { .. } | Verdict::Moved { .. } | Verdict::Blocked => item.status = Status::Done,
            Verdict::Pending { delay_ms, retries, .. } => {
                let due = delay_ms.map_or(0, |delay| delay.div_euclid(TICK_MS) as i8);
                item.status = Status::Pending(due.min(LEASE));
                item.retries = retries as u8;
            }
            Verdict::Failed { retries, .. } => {
                item.status = Status::Failed;
                item.retries = retries as u8;
            }
        }
        if was_lost && bug == Bug::AttemptsAreCountedLate {
            item.retries = before;
            item.status = Status::Pending(0);
        }
        item.token = 0;
        item.lease = 0;
        item.awaited = None;
        item.orphaned = false;
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}
