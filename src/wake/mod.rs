//! Waiting for work: a bell for commits of this process, file events for those of others, and when to look again.
//!
//! A bell or an event is a hint; what a look at the file finds is the truth. So nobody sleeps longer than [`POLL`] without
//! looking, and a hint costs at most a look too many.
//!
//! Of all who sleep over one file, one keeps watch over it and rings the others: a thousand waits cost one connection and
//! one watch. Waits in asyncio do not even sleep: one sleeper, the watcher, is told which of the awaited items have ended.

#[cfg_attr(not(target_os = "linux"), path = "alarm_elsewhere.rs")]
mod alarm;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::store::{ChangeWatch, Store};
use crate::sync::Mutex;
use alarm::{Alarm, Events, Woken};

/// The longest time without a look: a hint may have been missed, or a worker killed.
const POLL: Duration = Duration::from_millis(500);

/// A file event comes before its commit can be seen, by the time of a sync, so we look again after growing pauses.
const PAUSES: [Duration; 9] = [
    Duration::from_micros(100),
    Duration::from_micros(200),
    Duration::from_micros(400),
    Duration::from_micros(800),
    Duration::from_micros(1_600),
    Duration::from_micros(3_200),
    Duration::from_micros(6_400),
    Duration::from_micros(12_800),
    Duration::from_micros(25_600),
];
/// From here on a pause is long enough to be ended by the next event.
const LONG: usize = 4;
/// While others go on writing, the pauses do not begin anew more often than this.
const STEADY: Duration = Duration::from_millis(2);

/// While others go on writing and nothing of it is for us, the looks are this far apart.
const REST: Duration = Duration::from_millis(24);
/// After so many changes that were not for us.
const FRUITLESS: u32 = 8;
/// A change that comes so long after the one before is the first of its kind again.
const QUIET: Duration = Duration::from_millis(50);

/// Rung after each commit of this process that a sleeper may be waiting for.
#[derive(Default)]
pub struct Bell {
    state: Mutex<State>,
    /// Held while a waiter begins: nobody has a first look before the watch has its first version.
    beginning: Mutex<()>,
}

#[derive(Default)]
struct State {
    count: u64,
    /// Those who wait for something to claim; a watcher is one of them.
    work: Vec<Arc<Sleeper>>,
    /// Those who wait for the end of an item, by its id.
    endings: HashMap<i64, Vec<Arc<Sleeper>>>,
    asleep: Vec<Arc<Sleeper>>,
    /// Where it is while nobody who sleeps has it in hand.
    watch: Option<Watch>,
    is_watched: bool,
    /// Of the watch before: the system takes up to 20 ms to close it.
    spare: Option<Events>,
    /// How many changes came one soon after the other without anything for a sleeper.
    fruitless: u32,
}

/// What is rung for one waiter.
struct Sleeper {
    alarm: Alarm,
    /// Kept for a watcher, who asks what it was rung for.
    news: Option<Mutex<News>>,
}

/// What a watcher was rung for.
#[derive(Debug, Default)]
pub struct News {
    /// Awaited items that have ended.
    pub ended: Vec<i64>,
    /// Something may be claimable.
    pub work: bool,
    /// Anything may have changed.
    pub all: bool,
    /// The watcher has something else to do.
    is_called: bool,
    /// Whose ends it is rung for.
    awaited: HashSet<i64>,
}

impl Bell {
    /// Anything may have changed.
    pub fn ring(&self) {
        self.state.lock().ring();
    }

    /// Something may be claimable; who waits for an item's end need not know.
    pub fn ring_for_work(&self) {
        let mut state = self.state.lock();
        state.count += 1;
        state.work.iter().for_each(|sleeper| sleeper.ring(|news| news.work = true));
    }

    /// An item has ended; most sleepers need not know.
    pub fn ring_for_ending(&self, id: i64) {
        let mut state = self.state.lock();
        let watchers = state.work.iter().filter(|sleeper| sleeper.awaits(id));
        let mut rung = 0;
        for sleeper in watchers.chain(state.endings.get(&id).into_iter().flatten()) {
            sleeper.ring(|news| news.ended.push(id));
            rung += 1;
        }
        if rung > 0 {
            state.count += 1;
        }
    }
}

impl State {
    fn ring(&mut self) {
        self.count += 1;
        self.everybody().for_each(|sleeper| sleeper.ring(|news| news.all = true));
    }

    /// The same by one of the sleepers, who knows already and is not to be woken from its next sleep.
    fn ring_others(&mut self, own: &Arc<Sleeper>) -> u64 {
        self.count += 1;
        own.note(|news| news.all = true);
        let others = self.everybody().filter(|sleeper| !Arc::ptr_eq(sleeper, own));
        others.for_each(|sleeper| sleeper.ring(|news| news.all = true));
        self.count
    }

    fn everybody(&self) -> impl Iterator<Item = &Arc<Sleeper>> {
        self.work.iter().chain(self.endings.values().flatten())
    }
}

impl Sleeper {
    fn ring(&self, what: impl FnOnce(&mut News)) {
        self.note(what);
        self.alarm.ring();
    }

    fn note(&self, what: impl FnOnce(&mut News)) {
        if let Some(news) = &self.news {
            what(&mut news.lock());
        }
    }

    fn is_called(&self) -> bool {
        self.news.as_ref().is_some_and(|news| news.lock().is_called)
    }

    fn awaits(&self, id: i64) -> bool {
        self.news.as_ref().is_some_and(|news| news.lock().awaited.contains(&id))
    }
}

/// Ends the sleep of a watcher.
#[derive(Clone)]
pub struct Call(Arc<Sleeper>);

impl Call {
    pub fn ring(&self) {
        self.0.ring(|news| news.is_called = true);
    }
}

/// What a waiter is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaiting {
    Work,
    /// The end of the item with this id.
    Ending(i64),
    /// Work and the ends of many items, for others.
    Many,
}

/// What tells of commits by other processes.
struct Watch {
    events: Events,
    changes: Box<dyn ChangeWatch>,
    /// How many pauses have passed since a file event, and when they began.
    pauses: Option<usize>,
    hurried_at: Option<Instant>,
    changed_at: Option<Instant>,
    /// There were file events in a rest: the look that follows it asks the file itself, not first for its version.
    is_presumed: bool,
}

impl Watch {
    fn begin(store: Arc<dyn Store>, spare: Option<Events>) -> Result<Self> {
        let events = spare.unwrap_or_else(|| Events::new(store.event_file()));
        events.reset();
        let mut changes = store.change_watch()?;
        changes.has_changed()?;
        Ok(Self { events, changes, pauses: None, hurried_at: None, changed_at: None, is_presumed: false })
    }

    /// Notes a change, and returns whether it came soon after the one before.
    fn note_change(&mut self) -> bool {
        let before = self.changed_at.replace(Instant::now());
        before.is_some_and(|time| time.elapsed() < QUIET)
    }

    /// What is left of the rest after a change, when many before it were not for us; the look that follows is not left out.
    fn rest(&mut self, fruitless: u32) -> Option<Duration> {
        let since = self.changed_at.filter(|_| fruitless >= FRUITLESS)?.elapsed();
        let left = REST.checked_sub(since).filter(|left| !left.is_zero())?;
        self.pauses = Some(PAUSES.len() - 1);
        Some(left)
    }

    fn is_in_haste(&self) -> bool {
        self.pauses.is_some_and(|passed| passed < LONG)
    }

    /// The pause before the next look after a file event.
    fn next_pause(&mut self) -> Duration {
        let Some(passed) = self.pauses else { return Duration::MAX };
        self.pauses = (passed + 1 < PAUSES.len()).then_some(passed + 1);
        PAUSES[passed]
    }

    fn note(&mut self, woken: Woken) {
        if woken.touched {
            self.hurry();
        } else if woken.is_blind {
            // The next look, and no haste after it.
            self.pauses = Some(PAUSES.len() - 1);
        }
    }

    fn hurry(&mut self) {
        let is_fresh = self.hurried_at.is_none_or(|time| time.elapsed() >= STEADY);
        self.pauses = Some(if is_fresh { 0 } else { self.pauses.unwrap_or(LONG).min(LONG) });
        self.hurried_at = is_fresh.then(Instant::now).or(self.hurried_at);
    }
}

/// Somebody's wait, from its first look to its last. It must begin before the first look.
pub struct Waiter {
    store: Arc<dyn Store>,
    sleeper: Arc<Sleeper>,
    awaiting: Awaiting,
    /// What the bell's count was at the last look.
    seen: u64,
    looked_at: Instant,
}

impl Waiter {
    pub fn begin(store: Arc<dyn Store>, awaiting: Awaiting) -> Result<Self> {
        let news = (awaiting == Awaiting::Many).then(Mutex::default);
        let sleeper = Arc::new(Sleeper { alarm: Alarm::new()?, news });
        let bell = store.bell();
        let beginning = bell.beginning.lock();
        let mut state = bell.state.lock();
        match awaiting {
            Awaiting::Work | Awaiting::Many => state.work.push(sleeper.clone()),
            Awaiting::Ending(id) => state.endings.entry(id).or_default().push(sleeper.clone()),
        }
        let (seen, is_watched, spare) = (state.count, state.is_watched, state.spare.take());
        drop(state);
        let waiter = Self { store: store.clone(), sleeper, awaiting, seen, looked_at: Instant::now() };
        if is_watched {
            bell.state.lock().spare = spare;
        } else {
            let watch = Watch::begin(store.clone(), spare)?;
            let mut state = bell.state.lock();
            state.watch = Some(watch);
            state.is_watched = true;
        }
        drop(beginning);
        Ok(waiter)
    }

    /// A forked child has nothing of its parent's: neither the bell nor the watch may be touched there.
    pub fn is_of_this_process(&self) -> bool {
        self.store.is_of_this_process()
    }

    /// Is rung for the ends of these items too, from now on.
    pub fn await_endings(&self, ids: impl IntoIterator<Item = i64>) {
        if let Some(news) = &self.sleeper.news {
            news.lock().awaited.extend(ids);
        }
    }

    /// Is not rung for the ends of these items any more.
    pub fn forget_endings(&self, ids: impl IntoIterator<Item = i64>) {
        if let Some(news) = &self.sleeper.news {
            let mut news = news.lock();
            for id in ids {
                news.awaited.remove(&id);
            }
        }
    }

    /// What it was rung for since it was asked last.
    pub fn take_news(&self) -> News {
        let Some(news) = &self.sleeper.news else { return News::default() };
        let mut news = news.lock();
        let awaited = std::mem::take(&mut news.awaited);
        std::mem::replace(&mut *news, News { awaited, ..News::default() })
    }

    /// What ends its sleep.
    pub fn call(&self) -> Call {
        Call(self.sleeper.clone())
    }

    /// The last look found something: the next change is looked at without delay.
    pub fn note_found(&self) {
        self.state().fruitless = 0;
    }

    /// Sleeps until it is worth looking again, and says so; `false` when `limit` was over or a signal came. `by_itself` is
    /// when something happens without anybody's commit.
    pub fn sleep(&mut self, by_itself: Option<Duration>, limit: Duration) -> Result<bool> {
        self.state().asleep.push(self.sleeper.clone());
        let mut watch = None;
        let slept = self.sleep_or_watch(by_itself, limit, &mut watch);
        let mut state = self.store.bell().state.lock();
        state.asleep.retain(|sleeper| !Arc::ptr_eq(sleeper, &self.sleeper));
        if watch.is_some() {
            state.watch = watch;
        }
        if state.watch.is_some()
            && let Some(next) = state.asleep.last()
        {
            // It wakes, and takes the watch.
            next.alarm.ring();
        }
        drop(state);
        slept
    }

    fn sleep_or_watch(
        &mut self,
        by_itself: Option<Duration>,
        limit: Duration,
        in_hand: &mut Option<Watch>,
    ) -> Result<bool> {
        let started = Instant::now();
        loop {
            let mut state = self.state();
            if in_hand.is_none() {
                *in_hand = state.watch.take();
            }
            let (mut count, fruitless) = (state.count, state.fruitless);
            drop(state);
            let rest = in_hand.as_mut().and_then(|watch| watch.rest(fruitless));
            // The version is noted before the looks that follow, so that nothing falls in between.
            if let Some(watch) = in_hand
                && rest.is_none()
                && watch.pauses.is_some()
                && (std::mem::take(&mut watch.is_presumed) || watch.changes.has_changed()?)
            {
                let is_one_of_many = watch.note_change();
                let mut state = self.state();
                state.fruitless = if is_one_of_many { state.fruitless.saturating_add(1) } else { 0 };
                count = state.ring_others(&self.sleeper);
            }
            let is_late = self.looked_at.elapsed() >= POLL;
            if is_late {
                self.store.check_is_there()?;
            }
            let is_time = is_late || by_itself.is_some_and(|time| started.elapsed() >= time);
            if count != self.seen || is_time || self.sleeper.is_called() {
                self.seen = count;
                self.looked_at = Instant::now();
                return Ok(true);
            }
            let left = limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let until_poll = POLL.saturating_sub(self.looked_at.elapsed());
            let mut pause =
                left.min(until_poll).min(by_itself.map_or(Duration::MAX, |time| time - started.elapsed().min(time)));
            let mut in_haste = in_hand.as_ref().is_some_and(Watch::is_in_haste);
            if let Some(watch) = in_hand {
                in_haste |= rest.is_some();
                pause = pause.min(rest.unwrap_or_else(|| watch.next_pause()));
            }
            let woken = self.sleeper.alarm.sleep(pause, in_hand.as_ref().map(|watch| &watch.events), in_haste);
            if let Some(watch) = in_hand {
                watch.is_presumed |= rest.is_some() && woken.touched;
                watch.note(woken);
            }
            if woken.interrupted {
                return Ok(false);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.store.bell().state.lock()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            // A child never closes its parent's connection, nor what holds one.
            std::mem::forget(self.store.clone());
            return;
        }
        let mut state = self.store.bell().state.lock();
        state.work.retain(|sleeper| !Arc::ptr_eq(sleeper, &self.sleeper));
        if let Awaiting::Ending(id) = self.awaiting
            && let Entry::Occupied(mut awaited) = state.endings.entry(id)
        {
            awaited.get_mut().retain(|sleeper| !Arc::ptr_eq(sleeper, &self.sleeper));
            if awaited.get().is_empty() {
                awaited.remove();
            }
        }
        if !state.work.is_empty() || !state.endings.is_empty() {
            return;
        }
        state.is_watched = false;
        let Some(watch) = state.watch.take() else { return };
        let Watch { events, changes, .. } = watch;
        state.spare = Some(events);
        drop(state);
        drop(changes);
    }
}
