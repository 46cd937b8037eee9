//! Waiting for commits: notifications within this process, file events for other processes, and when to look again.
//!
//! A notification or an event is only a hint; the file decides. So no thread sleeps longer than [`POLL`] without
//! looking, and a false hint costs at most one needless look.
//!
//! Of all threads that sleep on one file, one watches it and wakes the others. So a thousand waits need one connection
//! and one watch. Waits in asyncio use no thread each: one thread, the watcher, learns which of the awaited items have
//! ended.
//!
//! Threads that wait to claim the same form a line. A commit wakes one thread of each line. A thread that found nothing
//! has looked for all of its line. One that found something, or leaves without having looked, wakes the next.

#[cfg_attr(not(target_os = "linux"), path = "alarm_elsewhere.rs")]
mod alarm;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::store::Store;
use crate::sync::Mutex;
use alarm::{Alarm, Events};
use watch::Watch;

/// The longest time without a look of a line: a hint may have been missed, or a worker killed.
pub const POLL: Duration = Duration::from_millis(500);

/// Wakes sleeping threads after each commit of this process that may concern them.
#[derive(Default)]
pub struct WakeSignal {
    state: Mutex<State>,
    /// Held while a waiter begins. No waiter looks before the watch has recorded its first version of the file.
    beginning: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// How many hints there have been.
    count: u64,
    /// Threads that wait for something to claim, including a watcher.
    work: Vec<Arc<Sleeper>>,
    /// When a thread of each line looked last.
    looked_at: HashMap<Arc<str>, Instant>,
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
    news: Option<Mutex<Changes>>,
    /// The line of a thread that waits to claim; a thread without a line is always woken.
    line: Option<Arc<str>>,
    /// It was woken, and has not begun to look. Written under the WakeSignal's lock, as are the next three.
    has_turn: AtomicBool,
    is_asleep: AtomicBool,
    is_watching: AtomicBool,
    /// The WakeSignal's count when it looked last.
    seen: AtomicU64,
}

/// Why a watcher was woken.
#[derive(Debug, Default)]
pub struct Changes {
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

impl WakeSignal {
    /// Wakes all threads: anything may have changed.
    pub fn wake(&self) {
        self.state.lock().wake();
    }

    /// Wakes one thread of each line that waits for work. Those that wait for an item's end sleep on.
    pub fn wake_for_work(&self) {
        let mut state = self.state.lock();
        state.count += 1;
        state.ring_lines(None, |news| news.work = true);
    }

    /// Whether a thread of this line has not looked since the last hint.
    pub fn has_next(&self, line: &str) -> bool {
        self.state.lock().next(line).is_some()
    }

    /// Wakes a thread of a line, because another one found something and there is more.
    pub fn ring_line(&self, line: &str) {
        let mut state = self.state.lock();
        state.count += 1;
        state.wake_next(line);
    }

    /// Wakes only the threads that wait for the end of this item.
    pub fn wake_for_end(&self, id: i64) {
        let state = self.state.lock();
        let watchers = state.work.iter().filter(|sleeper| sleeper.awaits(id));
        for sleeper in watchers.chain(state.endings.get(&id).into_iter().flatten()) {
            sleeper.wake(|news| news.ended.push(id));
        }
    }
}

impl State {
    fn wake(&mut self) {
        self.count += 1;
        self.all_sleepers().for_each(|sleeper| sleeper.wake(|news| news.all = true));
    }

    /// Like `wake`, called by a thread that already knows of the change. Its own next sleep is not interrupted.
    fn wake_others(&mut self, own: &Arc<Sleeper>) {
        self.count += 1;
        own.change(|news| news.all = true);
        own.has_turn.store(true, Ordering::SeqCst);
        self.ring_lines(Some(own), |news| news.all = true);
        let endings = self.endings.values().flatten().filter(|sleeper| !Arc::ptr_eq(sleeper, own));
        endings.for_each(|sleeper| sleeper.wake(|news| news.all = true));
    }

    /// Wakes one thread of each line, and all threads without a line; `own` is awake, and looks for its line.
    fn ring_lines(&self, own: Option<&Arc<Sleeper>>, what: impl Fn(&mut Changes)) {
        let mut lines: Vec<&str> = own.and_then(|own| own.line.as_deref()).into_iter().collect();
        for sleeper in self.work.iter().filter(|sleeper| own.is_none_or(|own| !Arc::ptr_eq(own, sleeper))) {
            match sleeper.line.as_deref() {
                None => sleeper.wake(&what),
                Some(line) if lines.contains(&line) => {}
                Some(line) => {
                    lines.push(line);
                    self.wake_next(line);
                }
            }
        }
    }

    /// The thread of a line that looks next. The one that watches the file is awake after a commit anyway.
    fn next(&self, line: &str) -> Option<&Arc<Sleeper>> {
        let is_open = |sleeper: &&Arc<Sleeper>| {
            sleeper.line.as_deref() == Some(line)
                && sleeper.seen.load(Ordering::SeqCst) < self.count
                && !sleeper.has_turn.load(Ordering::SeqCst)
        };
        self.work.iter().filter(is_open).min_by_key(|sleeper| {
            let [asleep, watching] = [&sleeper.is_asleep, &sleeper.is_watching].map(|flag| flag.load(Ordering::SeqCst));
            (!(asleep && watching), !asleep)
        })
    }

    fn wake_next(&self, line: &str) {
        if let Some(sleeper) = self.next(line) {
            sleeper.wake(|_| {});
        }
    }

    /// A thread begins to look.
    fn begin_look(&mut self, sleeper: &Sleeper) {
        sleeper.has_turn.store(false, Ordering::SeqCst);
        sleeper.seen.store(self.count, Ordering::SeqCst);
        if let Some(line) = &sleeper.line {
            self.looked_at.insert(line.clone(), Instant::now());
        }
    }

    fn all_sleepers(&self) -> impl Iterator<Item = &Arc<Sleeper>> {
        self.work.iter().chain(self.endings.values().flatten())
    }
}

impl Sleeper {
    fn wake(&self, what: impl FnOnce(&mut Changes)) {
        self.change(what);
        self.has_turn.store(true, Ordering::SeqCst);
        self.alarm.wake();
    }

    fn change(&self, what: impl FnOnce(&mut Changes)) {
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
    pub fn wake(&self) {
        self.0.wake(|news| news.is_called = true);
    }
}

/// What a waiter waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaiting {
    /// Something to claim, which all threads of the line could claim as well.
    Work(Arc<str>),
    /// Room for items.
    Room,
    /// The end of the item with this id.
    Ending(i64),
    /// Work and the ends of many items, on behalf of other tasks.
    Many,
}

/// One wait, from its first look to its last. It must begin before the first look, so that no change is missed.
pub struct Waiter {
    store: Arc<dyn Store>,
    sleeper: Arc<Sleeper>,
    awaiting: Awaiting,
    looked_at: Instant,
    /// When the next timed event is due, which perhaps only this waiter knows.
    due: Option<Instant>,
    /// It was woken, and has not said what its look found.
    owes_a_look: bool,
}

impl Waiter {
    pub fn begin(store: Arc<dyn Store>, awaiting: Awaiting) -> Result<Self> {
        let news = (awaiting == Awaiting::Many).then(Mutex::default);
        let line = if let Awaiting::Work(line) = &awaiting { Some(line.clone()) } else { None };
        let [has_turn, is_asleep, is_watching] = [(); 3].map(|()| AtomicBool::default());
        let (alarm, seen) = (Alarm::new()?, AtomicU64::default());
        let sleeper = Arc::new(Sleeper { alarm, news, line, has_turn, is_asleep, is_watching, seen });
        let wake_signal = store.wake_signal();
        let beginning = wake_signal.beginning.lock();
        let mut state = wake_signal.state.lock();
        match awaiting {
            Awaiting::Work(_) | Awaiting::Room | Awaiting::Many => state.work.push(sleeper.clone()),
            Awaiting::Ending(id) => state.endings.entry(id).or_default().push(sleeper.clone()),
        }
        // Its first look follows.
        state.begin_look(&sleeper);
        let (is_watched, spare) = (state.is_watched, state.spare.take());
        drop(state);
        let looked_at = Instant::now();
        let waiter = Self { store: store.clone(), sleeper, awaiting, looked_at, due: None, owes_a_look: true };
        if is_watched {
            wake_signal.state.lock().spare = spare;
        } else {
            let watch = Watch::begin(store.clone(), spare)?;
            let mut state = wake_signal.state.lock();
            state.watch = Some(watch);
            state.is_watched = true;
        }
        drop(beginning);
        Ok(waiter)
    }

    /// Whether the waiter was created in this process. A forked child must not touch its parent's WakeSignal or watch.
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
    pub fn take_changes(&self) -> Changes {
        let Some(news) = &self.sleeper.news else { return Changes::default() };
        let mut news = news.lock();
        let awaited = std::mem::take(&mut news.awaited);
        std::mem::replace(&mut *news, Changes { awaited, ..Changes::default() })
    }

    /// Returns a handle that ends its sleep.
    pub fn call(&self) -> Call {
        Call(self.sleeper.clone())
    }

    /// The last look found something: the next change is looked at without delay.
    pub fn mark_found(&self) {
        self.state().fruitless = 0;
    }

    /// The last look is over: it found nothing, or the next thread of the line was woken if there was more.
    pub fn mark_looked(&mut self) {
        self.owes_a_look = false;
    }

    /// Wakes the next thread of its line to look in its place.
    pub fn pass_on(&mut self) {
        self.owes_a_look = false;
        if let Some(line) = &self.sleeper.line {
            self.state().wake_next(line);
        }
    }

    /// Sleeps until it is worth looking again, and returns `true`; returns `false` after `limit` or a signal.
    /// `until_next_event` is the time until the next timed event, which needs no commit.
    pub fn sleep(&mut self, until_next_event: Option<Duration>, limit: Duration) -> Result<bool> {
        self.due = until_next_event.and_then(|pause| Instant::now().checked_add(pause));
        let mut state = self.state();
        state.asleep.push(self.sleeper.clone());
        self.sleeper.is_asleep.store(true, Ordering::SeqCst);
        drop(state);
        let mut watch = None;
        let slept = self.sleep_or_watch(limit, &mut watch);
        self.owes_a_look = matches!(slept, Ok(true));
        let mut state = self.store.wake_signal().state.lock();
        self.sleeper.is_asleep.store(false, Ordering::SeqCst);
        self.sleeper.is_watching.store(false, Ordering::SeqCst);
        state.asleep.retain(|sleeper| !Arc::ptr_eq(sleeper, &self.sleeper));
        if watch.is_some() {
            state.watch = watch;
        }
        if state.watch.is_some()
            && let Some(next) = state.asleep.last()
        {
            // The next thread wakes and takes over the watch.
            next.alarm.wake();
        }
        drop(state);
        slept
    }

    fn sleep_or_watch(&mut self, limit: Duration, in_hand: &mut Option<Watch>) -> Result<bool> {
        let started = Instant::now();
        loop {
            let mut state = self.state();
            if in_hand.is_none() {
                *in_hand = state.watch.take();
                self.sleeper.is_watching.store(in_hand.is_some(), Ordering::SeqCst);
            }
            let fruitless = state.fruitless;
            drop(state);
            let rest = in_hand.as_mut().and_then(|watch| watch.rest(fruitless));
            // The version is recorded before the looks that follow, so that no change in between is missed.
            if let Some(watch) = in_hand
                && rest.is_none()
                && watch.pauses.is_some()
                && (std::mem::take(&mut watch.is_presumed) || watch.changes.has_changed()?)
            {
                let is_one_of_many = watch.mark_change();
                let mut state = self.state();
                state.fruitless = if is_one_of_many { state.fruitless.saturating_add(1) } else { 0 };
                state.wake_others(&self.sleeper);
            }
            let mut state = self.state();
            // A look of another thread of the line counts as its own.
            let line = self.sleeper.line.as_ref();
            let looked_at = line.and_then(|line| state.looked_at.get(line).copied()).unwrap_or(self.looked_at);
            let due = self.due.filter(|due| looked_at < *due);
            let is_late = looked_at.elapsed() >= POLL;
            let is_time = is_late || due.is_some_and(|due| due <= Instant::now());
            if is_time {
                // The others of the line have not looked since.
                state.count += 1;
            }
            if is_time || self.sleeper.has_turn.load(Ordering::SeqCst) || self.sleeper.is_called() {
                state.begin_look(&self.sleeper);
                drop(state);
                self.looked_at = Instant::now();
                if is_late {
                    self.store.check_is_there()?;
                }
                return Ok(true);
            }
            drop(state);
            let left = limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let until_poll = POLL.saturating_sub(looked_at.elapsed());
            let until_due = due.map_or(Duration::MAX, |due| due.saturating_duration_since(Instant::now()));
            let mut pause = left.min(until_poll).min(until_due);
            let mut in_haste = in_hand.as_ref().is_some_and(Watch::is_in_haste);
            if let Some(watch) = in_hand {
                in_haste |= rest.is_some();
                pause = pause.min(rest.unwrap_or_else(|| watch.next_pause()));
            }
            let woken = self.sleeper.alarm.sleep(pause, in_hand.as_ref().map(|watch| &watch.events), in_haste);
            if let Some(watch) = in_hand {
                watch.is_presumed |= rest.is_some() && woken.touched;
                watch.woke(woken);
            }
            if woken.interrupted {
                return Ok(false);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.store.wake_signal().state.lock()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            // A child never closes its parent's connection, nor anything that holds one.
            std::mem::forget(self.store.clone());
            return;
        }
        let mut state = self.store.wake_signal().state.lock();
        state.work.retain(|sleeper| !Arc::ptr_eq(sleeper, &self.sleeper));
        if let Some(line) = &self.sleeper.line {
            // What it was woken for, and the time that it would have waited for, are the next one's.
            let is_due_soon = self.due.is_some_and(|due| due.saturating_duration_since(Instant::now()) < POLL);
            if self.owes_a_look || is_due_soon || self.sleeper.has_turn.load(Ordering::SeqCst) {
                state.wake_next(line);
            }
            if !state.work.iter().any(|sleeper| sleeper.line.as_ref() == Some(line)) {
                state.looked_at.remove(line);
            }
        }
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
