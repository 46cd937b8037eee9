//! Waiting for commits: notifications within this process, file events for other processes, and when to look again.
//!
//! A notification or an event is only a hint; the file decides. So no thread sleeps longer than [`POLL`] without
//! looking, and a false hint costs at most one needless look.
//!
//! Of all threads that sleep on one file, one watches it and wakes the others. So a thousand waits need one connection
//! and one watch. Waits in asyncio use no thread each: one thread, the watcher, learns which of the awaited items have
//! ended.

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

/// A file event comes before its commit is visible, by the duration of a sync. So the thread looks again after growing
/// pauses.
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
/// From this index on, a pause is long enough that the next event may end it.
const LONG: usize = 4;
/// While other processes keep writing, the pauses start again at most this often.
const STEADY: Duration = Duration::from_millis(2);

/// The time between looks while other processes keep writing and no change concerns this process.
const REST: Duration = Duration::from_millis(24);
/// How many changes in a row must not concern this process before `REST` applies.
const FRUITLESS: u32 = 8;
/// A change that comes this long after the last one starts a new series.
const QUIET: Duration = Duration::from_millis(50);

/// Wakes sleeping threads after each commit of this process that may concern them.
#[derive(Default)]
pub struct Bell {
    state: Mutex<State>,
    /// Held while a waiter begins. No waiter looks before the watch has recorded its first version of the file.
    beginning: Mutex<()>,
}

#[derive(Default)]
struct State {
    count: u64,
    /// Threads that wait for something to claim, including a watcher.
    work: Vec<Arc<Sleeper>>,
    /// Threads that wait for the end of an item, by its id.
    endings: HashMap<i64, Vec<Arc<Sleeper>>>,
    asleep: Vec<Arc<Sleeper>>,
    /// The watch, while no sleeping thread uses it.
    watch: Option<Watch>,
    is_watched: bool,
    /// The events of the last watch, kept for reuse: the system takes up to 20 ms to close them.
    spare: Option<Events>,
    /// How many changes came in quick succession without concerning a sleeping thread.
    fruitless: u32,
}

/// The sleeping thread of one waiter.
struct Sleeper {
    alarm: Alarm,
    /// Only for a watcher, which asks why it was woken.
    news: Option<Mutex<News>>,
}

/// Why a watcher was woken.
#[derive(Debug, Default)]
pub struct News {
    /// Awaited items that have ended.
    pub ended: Vec<i64>,
    /// Something may be claimable.
    pub work: bool,
    /// Anything may have changed.
    pub all: bool,
    /// The watcher was called to do something else.
    is_called: bool,
    /// The items whose ends wake the watcher.
    awaited: HashSet<i64>,
}

impl Bell {
    /// Wakes all threads: anything may have changed.
    pub fn ring(&self) {
        self.state.lock().ring();
    }

    /// Wakes the threads that wait for work. Those that wait for an item's end sleep on.
    pub fn ring_for_work(&self) {
        let mut state = self.state.lock();
        state.count += 1;
        state.work.iter().for_each(|sleeper| sleeper.ring(|news| news.work = true));
    }

    /// Wakes only the threads that wait for the end of this item.
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

    /// Like `ring`, called by a thread that already knows of the change. Its own next sleep is not interrupted.
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

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaiting {
    Work,
    /// The end of the item with this id.
    Ending(i64),
    /// Work and the ends of many items, on behalf of other tasks.
    Many,
}

/// Detects commits of other processes.
struct Watch {
    events: Events,
    changes: Box<dyn ChangeWatch>,
    /// How many pauses have passed since a file event; `hurried_at` is when they began.
    pauses: Option<usize>,
    hurried_at: Option<Instant>,
    changed_at: Option<Instant>,
    /// There were file events during a rest. The next look then assumes a change, without comparing versions first.
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

    /// Records a change; returns whether it came soon after the last one.
    fn note_change(&mut self) -> bool {
        let before = self.changed_at.replace(Instant::now());
        before.is_some_and(|time| time.elapsed() < QUIET)
    }

    /// Returns what is left of the rest after a change, if many changes before it did not concern this process. A look
    /// always follows the rest.
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
            // One more look, without short pauses after it.
            self.pauses = Some(PAUSES.len() - 1);
        }
    }

    fn hurry(&mut self) {
        let is_fresh = self.hurried_at.is_none_or(|time| time.elapsed() >= STEADY);
        self.pauses = Some(if is_fresh { 0 } else { self.pauses.unwrap_or(LONG).min(LONG) });
        self.hurried_at = is_fresh.then(Instant::now).or(self.hurried_at);
    }
}

/// One wait, from its first look to its last. It must begin before the first look, so that no change is missed.
pub struct Waiter {
    store: Arc<dyn Store>,
    sleeper: Arc<Sleeper>,
    awaiting: Awaiting,
    /// The Bell's count at the last look.
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

    /// Whether the waiter was created in this process. A forked child must not touch its parent's Bell or watch.
    pub fn is_of_this_process(&self) -> bool {
        self.store.is_of_this_process()
    }

    /// From now on, the ends of these items wake it too.
    pub fn await_endings(&self, ids: impl IntoIterator<Item = i64>) {
        if let Some(news) = &self.sleeper.news {
            news.lock().awaited.extend(ids);
        }
    }

    /// From now on, the ends of these items no longer wake it.
    pub fn forget_endings(&self, ids: impl IntoIterator<Item = i64>) {
        if let Some(news) = &self.sleeper.news {
            let mut news = news.lock();
            for id in ids {
                news.awaited.remove(&id);
            }
        }
    }

    /// Returns why it was woken since the last call.
    pub fn take_news(&self) -> News {
        let Some(news) = &self.sleeper.news else { return News::default() };
        let mut news = news.lock();
        let awaited = std::mem::take(&mut news.awaited);
        std::mem::replace(&mut *news, News { awaited, ..News::default() })
    }

    /// Returns a handle that ends its sleep.
    pub fn call(&self) -> Call {
        Call(self.sleeper.clone())
    }

    /// The last look found something: the next change is looked at without delay.
    pub fn note_found(&self) {
        self.state().fruitless = 0;
    }

    /// Sleeps until it is worth looking again, and returns `true`; returns `false` after `limit` or a signal.
    /// `by_itself` is the time until the next timed event, which needs no commit.
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
            // The next thread wakes and takes over the watch.
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
            // The version is recorded before the looks that follow, so that no change in between is missed.
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
            // A child never closes its parent's connection, nor anything that holds one.
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
