//! Waiting for an item to claim, or for one to end. Sleeps are short enough for signals; the file is read only when
//! worthwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::claim::{Claim, ClaimedItem};
use super::{Queue, Session};
use crate::error::{Error, Result};
use crate::model::{Item, Now, Pick};
use crate::store::{LockWait, Store};
use crate::wake::{Awaiting, POLL, Waiter};

/// A signal ends a sleep at once; one that came just before the sleep is noticed after this time.
pub(super) const SLICE: Duration = Duration::from_millis(500);

/// A wait in progress. It is created before the first read of the file, so that no change in between is missed.
pub struct Waiting {
    waiter: Waiter,
    awaiting: Awaiting,
    pub(super) is_worth_looking: bool,
    /// How many forecasts since the last sleep announced something to claim.
    forecasts: usize,
    /// When the next timed event is due, according to the last forecast.
    until_next_event: Option<Instant>,
}

impl Waiting {
    /// Sleeps for at most `limit` and one slice; returns early, with `true`, if it is worth looking again.
    pub(super) fn sleep(&mut self, limit: Duration) -> Result<bool> {
        let until_next_event = self.until_next_event.map(|time| time.saturating_duration_since(Instant::now()));
        self.forecasts = 0;
        self.is_worth_looking = self.waiter.sleep(until_next_event, limit.min(SLICE))?;
        Ok(self.is_worth_looking)
    }

    /// Whether to claim now. After `often` forecasts without a sleep it returns `false`: the items may be gone, or not
    /// claimable by this worker.
    pub(super) fn may_trust_forecast(&mut self, often: usize) -> bool {
        self.forecasts += 1;
        self.forecasts <= often
    }

    /// Lets the next thread that waits for the same look in its place.
    pub(super) fn pass_on(&mut self) {
        self.waiter.pass_on();
    }

    /// The last look found what the wait is for.
    pub(super) fn mark_found(&self) {
        self.waiter.mark_found();
    }

    /// The last look found nothing; the next timed event is due after `until_next_event`.
    pub(super) fn expect(&mut self, until_next_event: Option<Duration>) {
        self.waiter.mark_looked();
        self.until_next_event = until_next_event.and_then(|pause| Instant::now().checked_add(pause));
    }
}

/// What a claim made now could find.
pub(super) struct WorkForecast {
    /// An item is ready and may be started.
    pub ready: bool,
    /// A claim would first make something claimable: due items, expired claims, ticks, freed groups, or claims of dead
    /// processes.
    pub brings_in: bool,
    /// How long until the next timed event.
    pub until_next_event: Option<Duration>,
}

/// Shows, until it is dropped, that a caller waits for the end of an item.
pub struct AwaitedEnd(Arc<dyn Store>);

impl Drop for AwaitedEnd {
    fn drop(&mut self) {
        if self.0.is_of_this_process() {
            self.0.count_awaited_end(false);
        }
    }
}

/// What a wait for an item's end finds.
pub enum Awaited {
    Ended(Box<Item>),
    /// The item was removed.
    Gone,
}

impl WorkForecast {
    /// Whether a claim made now may find something.
    pub fn is_worth_claiming(&self) -> bool {
        self.ready || self.brings_in
    }

    /// Whether another thread must look soon: it may claim, or is to wait for a timed event.
    fn concerns_the_next(&self) -> bool {
        self.is_worth_claiming() || self.until_next_event.is_some_and(|time| time < POLL)
    }
}

impl Queue {
    pub fn wait_to_claim(&self, how: &Claim) -> Result<Waiting> {
        self.begin_waiting(Awaiting::Work(self.line(&how.pick).into()))
    }

    pub fn wait_for_room(&self) -> Result<Waiting> {
        self.begin_waiting(Awaiting::Room)
    }

    /// Names what such a claim could find. All waits with this name find the same, so one of them looks for all.
    pub(super) fn line(&self, pick: &Pick) -> String {
        format!("{} {pick:?}", self.name())
    }

    /// After a claim: wakes the next thread that waits for the same, if there is one, or `is_any_idle` says so, and if
    /// the claim left something.
    pub(super) fn wake_next(&self, line: &str, queues: &[Arc<Queue>], is_any_idle: bool) {
        let Some(session) = &*self.session.load() else { return };
        let wake_signal = session.store.wake_signal();
        let is_left = |queue: &Queue| queue.work_forecast().map_or(true, |forecast| forecast.concerns_the_next());
        if (is_any_idle || wake_signal.has_next(line))
            && (queues.iter().any(|queue| is_left(queue)) || (queues.is_empty() && is_left(self)))
        {
            wake_signal.ring_line(line);
        }
    }

    pub fn wait_for_ending(&self, id: i64) -> Result<Waiting> {
        self.begin_waiting(Awaiting::Ending(id))
    }

    pub(super) fn begin_waiting(&self, awaiting: Awaiting) -> Result<Waiting> {
        let waiter = Waiter::begin(self.session()?.store.clone(), awaiting.clone())?;
        Ok(Waiting { waiter, awaiting, is_worth_looking: true, forecasts: 0, until_next_event: None })
    }

    /// A signal handler may have forked during the wait. The child then starts its own wait.
    fn keep_waiting(&self, waiting: &mut Waiting) -> Result<()> {
        self.session()?;
        if !waiting.waiter.is_of_this_process() {
            *waiting = self.begin_waiting(waiting.awaiting.clone())?;
        }
        Ok(())
    }

    /// One turn of a wait for work: claims if there seems to be an item, else sleeps for a slice.
    pub fn claim_or_sleep(&self, waiting: &mut Waiting, how: &Claim, limit: Duration) -> Result<Vec<ClaimedItem>> {
        self.keep_waiting(waiting)?;
        if waiting.is_worth_looking {
            let work_forecast = self.work_forecast()?;
            if work_forecast.is_worth_claiming() {
                let claimed = self.claim_if_free(how, limit)?;
                if claimed.as_ref().is_none_or(|items| !items.is_empty()) {
                    waiting.mark_found();
                    if let Awaiting::Work(line) = &waiting.awaiting {
                        self.wake_next(line, &[], false);
                    }
                    waiting.waiter.mark_looked();
                    return Ok(claimed.unwrap_or_default());
                }
            }
            waiting.expect(work_forecast.until_next_event);
        }
        waiting.sleep(limit)?;
        Ok(Vec::new())
    }

    /// Claims if there seems to be an item; waits at most `limit` for other writers.
    pub fn claim_if_worth_it(&self, how: &Claim, limit: Duration) -> Result<Vec<ClaimedItem>> {
        self.session()?.store.check_is_there()?;
        if !self.work_forecast()?.is_worth_claiming() {
            return Ok(Vec::new());
        }
        Ok(self.claim_if_free(how, limit)?.unwrap_or_default())
    }

    /// Claims; returns `None` if other writers held the lock for all of `limit`.
    fn claim_if_free(&self, how: &Claim, limit: Duration) -> Result<Option<Vec<ClaimedItem>>> {
        let wait = LockWait { limit: limit.min(self.options.patience), ..self.wait() };
        match self.claim_within(how, wait) {
            Err(Error::Busy(_)) if limit < self.options.patience => Ok(None),
            claimed => claimed.map(Some),
        }
    }

    /// Shows that a caller waits for the end of an item. Items that are removed as they end then stay a little longer, so
    /// that the caller sees the end.
    pub fn await_end(&self) -> Result<AwaitedEnd> {
        let store = self.session()?.store.clone();
        store.count_awaited_end(true);
        Ok(AwaitedEnd(store))
    }

    /// One turn of a wait for an item's end: returns the end, or sleeps for a slice.
    pub fn ended_or_sleep(&self, waiting: &mut Waiting, id: i64, limit: Duration) -> Result<Option<Awaited>> {
        self.keep_waiting(waiting)?;
        if waiting.is_worth_looking
            && let Some(end) = self.ended(id)?
        {
            waiting.mark_found();
            return Ok(Some(end));
        }
        waiting.sleep(limit)?;
        Ok(None)
    }

    /// Returns the item if it has ended; for callers that do not watch the file.
    pub fn ended_by_now(&self, id: i64) -> Result<Option<Awaited>> {
        self.session()?.store.check_is_there()?;
        self.ended(id)
    }

    /// Returns the item if it has ended. An id that no item ever had is an error.
    fn ended(&self, id: i64) -> Result<Option<Awaited>> {
        match self.ended_among(&[id])?.pop() {
            None => Ok(None),
            Some((_, None)) if self.view(|view| view.is_gone(id))? => Ok(Some(Awaited::Gone)),
            Some((_, Some(item))) => Ok(Some(Awaited::Ended(Box::new(item)))),
            Some((_, None)) => Err(Error::Invalid(format!("there is no item {id} in the queue '{}'", self.name()))),
        }
    }

    /// Returns those of the awaited items that have ended, with `None` for those that were removed. Every wait for an
    /// end calls this at least about every half second. It also ends an item whose last worker died if no claim does.
    pub(super) fn ended_among(&self, ids: &[i64]) -> Result<Vec<(i64, Option<Item>)>> {
        let session = self.session()?;
        let ended = self.view(|view| view.ended_among(self.name(), ids))?;
        if ended.len() == ids.len()
            || !self.is_time_to_look_for_stuck(&session)
            || !self.reclaim_stuck(Duration::ZERO)?
        {
            return Ok(ended);
        }
        self.view(|view| view.ended_among(self.name(), ids))
    }

    /// One turn of a wait for room: sleeps for a slice.
    pub fn sleep(&self, waiting: &mut Waiting, limit: Duration) -> Result<()> {
        self.keep_waiting(waiting)?;
        waiting.sleep(limit).map(drop)
    }

    /// Whether a clock that went back would delay anything too long; checked about once a second.
    pub(super) fn seems_ahead(&self, session: &Session, now: Now) -> Result<bool> {
        if !self.is_time_to_look_ahead(session) {
            return Ok(false);
        }
        let last = session.looked_ahead_at.load(Ordering::Relaxed);
        let lease_ms = self.settings().settings.lease_ms();
        let went_back = now.ms() < last || last == i64::MIN;
        let is_any_ahead = self.read(|view| view.is_any_ahead(self.name(), lease_ms))?
            || (went_back && (self.is_any_tick_ahead(now)? || self.is_any_hold_ahead(now)?));
        if !is_any_ahead {
            session.looked_ahead_at.store(now.ms(), Ordering::Relaxed);
        }
        Ok(is_any_ahead)
    }

    /// Whether a claim made now may find something. This only reads, so an empty claim takes no write lock.
    pub(super) fn may_find(&self, pick: &Pick) -> Result<bool> {
        let work_forecast = self.work_forecast()?;
        if !work_forecast.ready || work_forecast.brings_in {
            return Ok(work_forecast.brings_in);
        }
        if matches!(pick, Pick::Queue | Pick::GroupOrOne) {
            return Ok(true);
        }
        self.view(|view| Ok(view.is_ready(self.name(), pick)? || view.has_anyone_died(self.name())?))
    }

    pub(super) fn work_forecast(&self) -> Result<WorkForecast> {
        let session = self.session()?;
        let lease_ms = self.settings().settings.lease_ms();
        let (forecast, now, slot) = self.view(|view| {
            let mut forecast = view.forecast(self.name(), lease_ms)?;
            self.adopt_settings(std::mem::take(&mut forecast.scout.settings))?;
            let slot = if forecast.scout.paused { None } else { self.next_start(view)? };
            Ok((forecast, view.now(), slot))
        })?;
        let scout = forecast.scout;
        if scout.paused {
            // Dependencies and deadlines do not pause.
            let until_next_event = forecast.next_event.map(|at| pause_until(at, now));
            return Ok(WorkForecast { ready: false, brings_in: scout.flow, until_next_event });
        }
        let ready = scout.ready.is_some() && slot.is_none();
        let brings_in = scout.due
            || scout.expired
            || scout.ticking
            || scout.freed
            || scout.flow
            || (!ready && self.seems_ahead(&session, now)?)
            || forecast.has_anyone_died;
        // A free rate slot matters only if an item is ready to use it.
        let next = forecast.next_event.into_iter().chain(slot.filter(|_| scout.ready.is_some())).min();
        let until_next_event = next.map(|at| pause_until(at, now));
        Ok(WorkForecast { ready, brings_in, until_next_event })
    }
}

fn pause_until(at: i64, now: Now) -> Duration {
    Duration::from_millis(at.saturating_sub(now.ms()).max(0).unsigned_abs())
}
