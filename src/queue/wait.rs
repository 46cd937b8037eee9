//! Waiting: for an item to claim, or for one to end. Sleeps are short enough for signals; looks come only when worth it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::claim::{Claim, From, Held};
use super::{Queue, Session};
use crate::clock::Now;
use crate::error::{Error, Result};
use crate::item::{Item, Status};
use crate::sqlite::{Attention, Wait};
use crate::wake::{Awaiting, Vigil};

/// A signal ends a sleep at once; one that came just before it is seen after this time.
const SLICE: Duration = Duration::from_millis(500);

/// A wait under way: created before the first look, so that nothing falls in between.
pub struct Waiting {
    vigil: Vigil,
    awaiting: Awaiting,
    pub(super) is_worth_looking: bool,
    /// How often a look was promised something since the last sleep.
    promises: usize,
    /// When something happens by itself, as the last look saw it.
    by_itself: Option<Instant>,
}

impl Waiting {
    /// Sleeps for a slice of `limit`, less if it is worth looking again.
    pub(super) fn sleep(&mut self, limit: Duration) -> Result<bool> {
        let by_itself = self.by_itself.map(|time| time.saturating_duration_since(Instant::now()));
        self.promises = 0;
        self.is_worth_looking = self.vigil.sleep(by_itself, limit.min(SLICE))?;
        Ok(self.is_worth_looking)
    }

    /// Whether a promise is to be followed at once. After so many in a row it is not believed any more: what could be
    /// claimed may be gone, or not for us.
    pub(super) fn believe(&mut self, often: usize) -> bool {
        self.promises += 1;
        self.promises <= often
    }

    pub(super) fn expect(&mut self, by_itself: Option<Duration>) {
        self.by_itself = by_itself.and_then(|pause| Instant::now().checked_add(pause));
    }
}

/// What a look at a queue says about a claim.
pub(super) struct Outlook {
    /// A claim made now may find something.
    pub promising: bool,
    /// How long until something happens by itself.
    pub by_itself: Option<Duration>,
}

impl Queue {
    pub fn wait_for_work(&self) -> Result<Waiting> {
        self.begin_waiting(Awaiting::Work)
    }

    pub fn wait_for_ending(&self, id: i64) -> Result<Waiting> {
        self.begin_waiting(Awaiting::Ending(id))
    }

    fn begin_waiting(&self, awaiting: Awaiting) -> Result<Waiting> {
        let vigil = Vigil::begin(self.session()?.database.clone(), awaiting)?;
        Ok(Waiting { vigil, awaiting, is_worth_looking: true, promises: 0, by_itself: None })
    }

    /// A signal handler may have forked while it waited: the child goes on in a wait of its own.
    fn keep_waiting(&self, waiting: &mut Waiting) -> Result<()> {
        self.session()?;
        if !waiting.vigil.is_of_this_process() {
            *waiting = self.begin_waiting(waiting.awaiting)?;
        }
        Ok(())
    }

    /// One turn of a wait for work: claims if there seems to be something, else sleeps for a slice.
    pub fn claim_or_sleep(&self, waiting: &mut Waiting, how: &Claim, limit: Duration) -> Result<Vec<Held>> {
        self.keep_waiting(waiting)?;
        if waiting.is_worth_looking {
            let outlook = self.outlook()?;
            if outlook.promising {
                let wait = Wait { limit: limit.min(self.options.patience), ..self.wait() };
                match self.claim_within(how, wait) {
                    Ok(items) if items.is_empty() => {}
                    // Other writers were busy for all of the wait: nothing was found in it.
                    Err(Error::Busy(_)) if limit < self.options.patience => return Ok(Vec::new()),
                    claimed => return claimed,
                }
            }
            waiting.expect(outlook.by_itself);
        }
        waiting.sleep(limit)?;
        Ok(Vec::new())
    }

    /// One turn of a wait for an item's end: the finished item, or a slice of sleep.
    pub fn ended_or_sleep(&self, waiting: &mut Waiting, id: i64, limit: Duration) -> Result<Option<Item>> {
        self.keep_waiting(waiting)?;
        if waiting.is_worth_looking {
            let mut found = self.get(id)?;
            if found.as_ref().is_some_and(|item| item.status == Status::Processing.as_str()) {
                self.reclaim_stuck(Duration::ZERO)?;
                found = self.get(id)?;
            }
            let Some(item) = found else {
                return Err(Error::Invalid(format!("there is no item {id} in the queue '{}'", self.name())));
            };
            let ended = [Status::Done, Status::Failed, Status::Cancelled].map(Status::as_str);
            if ended.contains(&item.status.as_str()) {
                return Ok(Some(item));
            }
        }
        waiting.sleep(limit)?;
        Ok(None)
    }

    /// One turn of a wait for room: a slice of sleep.
    pub fn sleep(&self, waiting: &mut Waiting, limit: Duration) -> Result<()> {
        self.keep_waiting(waiting)?;
        waiting.sleep(limit).map(drop)
    }

    /// Whether something is held that a clock which went back would hold too long; asked about once a second.
    pub(super) fn seems_ahead(&self, session: &Session, now: Now) -> Result<bool> {
        if !self.is_time_to_look_ahead(session) {
            return Ok(false);
        }
        let last = session.looked_ahead_at.load(Ordering::Relaxed);
        let settings = &self.settings().settings;
        let went_back = now.ms() < last || last == i64::MIN;
        let is_any_ahead = session.database.is_any_ahead(self.name(), now, settings.lease_ms())?
            || (went_back && (self.is_any_tick_ahead(now)? || self.is_any_hold_ahead(now)?));
        if !is_any_ahead {
            session.looked_ahead_at.store(now.ms(), Ordering::Relaxed);
        }
        Ok(is_any_ahead)
    }

    pub(super) fn outlook(&self) -> Result<Outlook> {
        let session = self.session()?;
        let now = self.options.clock.now();
        let Promise { attention, slot, is_good, .. } = self.promise(&session, now)?;
        if attention.paused {
            return Ok(Outlook { promising: false, by_itself: None });
        }
        let event = session.database.next_event(self.name(), now)?;
        // A slot matters only if something is there to fill it.
        let next = event.into_iter().chain(slot.filter(|_| attention.ready.is_some())).min();
        let by_itself = next.map(|at| Duration::from_millis(at.saturating_sub(now.ms()).max(0).unsigned_abs()));
        Ok(Outlook { promising: is_good, by_itself })
    }

    /// Whether a claim made now may find something. It is a look beside the writers: an empty claim takes no lock.
    pub(super) fn may_find(&self, from: &From) -> Result<bool> {
        let session = self.session()?;
        let now = self.options.clock.now();
        let promise = self.promise(&session, now)?;
        if !promise.is_good || promise.brings_in {
            return Ok(promise.is_good);
        }
        let database = &session.database;
        let is_there = match from {
            From::Queue | From::GroupOrOne => true,
            From::Group(group) => database.has_in_group(self.name(), group)?,
            From::WholeGroup(Some(group)) => database.has_free_group(self.name(), group)?,
            From::WholeGroup(None) => database.has_any_free_group(self.name())?,
        };
        Ok(is_there || database.has_anyone_died(self.name())?)
    }

    fn promise(&self, session: &Session, now: Now) -> Result<Promise> {
        let mut attention = session.database.attention(self.name(), now, self.settings().settings.lease_ms())?;
        self.take_over(std::mem::take(&mut attention.settings))?;
        if attention.paused {
            return Ok(Promise { attention, slot: None, brings_in: false, is_good: false });
        }
        let slot = self.next_start(now)?;
        let is_ready = attention.ready.is_some() && slot.is_none();
        let brings_in = attention.due
            || attention.expired
            || attention.ticking
            || attention.freed
            || self.seems_ahead(session, now)?
            || (!is_ready && session.database.has_anyone_died(self.name())?);
        Ok(Promise { attention, slot, brings_in, is_good: brings_in || is_ready })
    }
}

/// What a look at a queue promises a claim.
struct Promise {
    attention: Attention,
    /// When its rate allows the next claim, if it does not now.
    slot: Option<i64>,
    /// There is something to be brought in first.
    brings_in: bool,
    is_good: bool,
}
