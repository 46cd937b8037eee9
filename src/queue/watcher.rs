//! The watcher: one thread that waits on behalf of many tasks. Each waiting task has a ticket; the watcher reports
//! which tickets have their turn.
//!
//! Tasks that wait to claim from the same place, or for room, stand in line. A commit gives the first one its turn, and
//! a task that found something passes the turn on. Ends of items are looked up for all tasks at once.
//!
//! The file is longer than most: waiting and notifying share one lock, and are read together.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Weak};
use std::time::{Duration, Instant};

use super::Queue;
use super::wait::WorkForecast;
use crate::error::Result;
use crate::model::{Item, Pick};
use crate::store::Store;
use crate::sync::{Mutex, wait};
use crate::wake::{Awaiting, Call, Changes, Waiter};

/// The thread returns at least this often, so that its owner can end it.
const SLICE: Duration = Duration::from_millis(500);
/// How long the thread stays after the last task has left.
const LINGER: Duration = Duration::from_secs(1);
/// How often each waiting task looks for itself if the file cannot be watched.
const WITHOUT_WATCH: Duration = Duration::from_millis(100);
/// How many tasks of one line may have their turn at the same time.
const TURNS: usize = 4;
/// A task that has not used its turn after this time may never do so. Another task then gets a turn.
const TURN: Duration = Duration::from_secs(2);
/// Lookups take at most 1/`REST` of the watcher's time. Lookups without a notification should be unnecessary; they take
/// at most 1/`REST_WITHOUT_SIGN`.
const REST: u32 = 10;
const REST_WITHOUT_SIGN: u32 = 50;
/// How many items are looked up in one transaction.
const AT_A_TIME: usize = 500;

/// What the tasks of a line wait for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WaitGoal {
    Item(Pick),
    /// Room for this many more items.
    Room(i64),
}

/// Tickets that have their turn. `item` is set if they waited for its end and it has ended; otherwise each task looks
/// for itself.
pub struct Turn {
    pub tickets: Vec<u64>,
    pub item: Option<Item>,
    /// The queue that was asked for the item.
    pub queue: Option<Arc<Queue>>,
}

/// The watcher of one open database, shared by all tasks that wait on it.
pub struct Watcher {
    store: Weak<dyn Store>,
    last_ticket: AtomicU64,
    state: Mutex<State>,
    joined: Condvar,
    /// State that only the serving thread uses.
    watching: Mutex<Watching>,
}

#[derive(Default)]
struct State {
    tickets: HashMap<u64, TicketPlace>,
    endings: HashMap<i64, Vec<u64>>,
    /// Awaited ends that have not been looked up yet.
    fresh: Vec<i64>,
    /// Items that are no longer awaited.
    gone: Vec<i64>,
    lines: HashMap<LineKey, Line>,
    /// Whether a thread is serving, or was requested.
    is_served: bool,
    call: Option<Call>,
}

type LineKey = (usize, WaitGoal);

enum TicketPlace {
    Ending { queue: Arc<Queue>, id: i64, was_seen: bool },
    Line { line: LineKey, has_stood: bool },
}

struct Line {
    queue: Arc<Queue>,
    standing: BTreeSet<u64>,
    /// Which tickets have their turn, and since when.
    at_turn: HashMap<u64, Instant>,
    /// There may be something for the first ticket in line.
    is_due: bool,
}

#[derive(Default)]
struct Watching {
    waiter: Option<Waiter>,
    endings: Pace,
    lines: Pace,
    /// When the next timed event of each queue is due, according to the last lookup.
    until_next_event: HashMap<usize, Instant>,
}

/// When to look next, depending on the cost of a lookup.
#[derive(Default)]
struct Pace {
    is_due: bool,
    not_before: Option<Instant>,
    without_sign: Option<Instant>,
}

impl Pace {
    fn is_time(&self) -> bool {
        let now = Instant::now();
        let is_without_sign = self.without_sign.is_some_and(|time| time <= now);
        (self.is_due || is_without_sign) && self.not_before.is_none_or(|time| time <= now)
    }

    fn looked(&mut self, began: Instant) {
        let cost = began.elapsed();
        self.is_due = false;
        self.not_before = Instant::now().checked_add(cost * (REST - 1));
        self.without_sign = Instant::now().checked_add((cost * (REST_WITHOUT_SIGN - 1)).max(SLICE));
    }

    /// How long until the lookup that is due may run.
    fn pause(&self) -> Duration {
        match self.not_before {
            Some(time) if self.is_due => time.saturating_duration_since(Instant::now()),
            _ => Duration::MAX,
        }
    }
}

impl State {
    fn call(&self) {
        if let Some(call) = &self.call {
            call.wake();
        }
    }

    /// Returns whether a serving thread must be started, and marks it as requested.
    fn is_thread_wanted(&mut self) -> bool {
        !std::mem::replace(&mut self.is_served, true)
    }
}

impl Line {
    fn turns(&self) -> usize {
        self.at_turn.values().filter(|since| since.elapsed() < TURN).count()
    }

    fn is_wanted(&self) -> bool {
        self.is_due && !self.standing.is_empty() && self.turns() < TURNS
    }
}

impl Queue {
    /// Creates a watcher for this queue's file.
    pub fn watcher(&self) -> Result<Watcher> {
        Ok(Watcher {
            store: Arc::downgrade(&self.session()?.store),
            last_ticket: AtomicU64::default(),
            state: Mutex::default(),
            joined: Condvar::new(),
            watching: Mutex::default(),
        })
    }

    /// Identifies the open database, as long as a watcher on it exists.
    pub fn database_number(&self) -> Result<usize> {
        Ok(Arc::as_ptr(&self.session()?.store).cast::<()>() as usize)
    }

    fn has(&self, want: &WaitGoal, work_forecast: Option<&WorkForecast>) -> Result<bool> {
        self.session()?;
        match want {
            WaitGoal::Room(added) => {
                let limit = self.latest_settings().max_pending;
                let pending = || self.read(|view| view.counts(self.name())).map(|counts| counts.pending);
                limit.map_or(Ok(true), |limit| Ok(pending()? + added <= limit))
            }
            WaitGoal::Item(_) if !work_forecast.is_some_and(|work_forecast| work_forecast.ready) => Ok(false),
            WaitGoal::Item(Pick::Queue | Pick::GroupOrOne) => Ok(true),
            WaitGoal::Item(pick) => self.read(|view| view.is_ready(self.name(), pick)),
        }
    }
}

impl Watcher {
    /// Draws a unique ticket. The caller then enters it for an item's end or in a line.
    pub fn draw(&self) -> u64 {
        self.last_ticket.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits for the end of an item. Returns whether a serving thread must be started.
    pub fn await_ending(&self, ticket: u64, queue: Arc<Queue>, id: i64) -> bool {
        let mut state = self.state.lock();
        state.tickets.insert(ticket, TicketPlace::Ending { queue, id, was_seen: false });
        state.endings.entry(id).or_default().push(ticket);
        if state.fresh.is_empty() {
            state.call();
            self.joined.notify_one();
        }
        state.fresh.push(id);
        state.is_thread_wanted()
    }

    /// Enters a line. Returns whether the ticket has its turn at once, because no other stands before it.
    pub fn join_line(&self, ticket: u64, queue: Arc<Queue>, want: WaitGoal) -> bool {
        let mut state = self.state.lock();
        let key = (Arc::as_ptr(&queue) as usize, want);
        let new = || Line { queue, standing: BTreeSet::new(), at_turn: HashMap::new(), is_due: false };
        let line = state.lines.entry(key.clone()).or_insert_with(new);
        let has_turn = line.standing.is_empty() && line.turns() < TURNS;
        line.at_turn.extend(has_turn.then(|| (ticket, Instant::now())));
        state.tickets.insert(ticket, TicketPlace::Line { line: key, has_stood: false });
        has_turn
    }

    /// Waits for a turn; a ticket that has had its turn returns to its old place. Returns whether a serving thread must
    /// be started.
    pub fn await_turn(&self, ticket: u64) -> bool {
        let mut state = self.state.lock();
        let Some(TicketPlace::Line { line: key, has_stood }) = state.tickets.get_mut(&ticket) else { return false };
        let is_first_time = !std::mem::replace(has_stood, true);
        let key = key.clone();
        if let Some(line) = state.lines.get_mut(&key) {
            line.at_turn.remove(&ticket);
            line.standing.insert(ticket);
            // Changes made while the line was empty have not been looked at. A ticket that returns waits for the next
            // notification.
            if is_first_time || line.is_due {
                self.is_due_now(&mut state, &key);
            }
        }
        state.is_thread_wanted()
    }

    /// Gives up a ticket; an unused turn goes to the next one. Returns whether an awaited item has been looked up at
    /// least once.
    pub fn leave(&self, ticket: u64) -> bool {
        let mut state = self.state.lock();
        let mut was_looked_at = false;
        match state.tickets.remove(&ticket) {
            None => return true,
            Some(TicketPlace::Ending { id, was_seen, .. }) => {
                was_looked_at = was_seen;
                if let Some(tickets) = state.endings.get_mut(&id) {
                    tickets.retain(|other| *other != ticket);
                    if tickets.is_empty() {
                        state.endings.remove(&id);
                        state.gone.push(id);
                    }
                }
            }
            Some(TicketPlace::Line { line: key, .. }) => {
                let Some(line) = state.lines.get_mut(&key) else { return true };
                line.standing.remove(&ticket);
                let had_turn = line.at_turn.remove(&ticket).is_some();
                if line.standing.is_empty() && line.at_turn.is_empty() {
                    state.lines.remove(&key);
                } else if had_turn {
                    self.is_due_now(&mut state, &key);
                }
            }
        }
        if state.tickets.is_empty() {
            state.call();
        }
        was_looked_at
    }

    fn is_due_now(&self, state: &mut State, key: &LineKey) {
        let Some(line) = state.lines.get_mut(key) else { return };
        line.is_due = true;
        if line.is_wanted() {
            state.call();
            self.joined.notify_one();
        }
    }

    /// Waits for turns, for at most a slice. Returns `None` if no task has waited for a while, so that the thread may
    /// end.
    pub fn turns(&self) -> Option<Vec<Turn>> {
        let mut watching = self.watching.lock();
        let mut state = self.state.lock();
        if state.tickets.is_empty() {
            // The watch on the file is closed while no task waits.
            state.call = None;
            drop(state);
            *watching = Watching::default();
            state = self.state.lock();
            let until = Instant::now() + LINGER;
            while state.tickets.is_empty() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    state.is_served = false;
                    return None;
                }
                state = wait(&self.joined, state, Some(left));
            }
        }
        drop(state);
        let turns = self.watch(&mut watching).unwrap_or_else(|_| {
            // The file is gone, or the system refuses a watch: each task finds the error itself.
            *watching = Watching::default();
            self.state.lock().call = None;
            std::thread::sleep(WITHOUT_WATCH);
            self.all_turns()
        });
        Some(turns)
    }

    /// Closes the watch on the file if no task waits, because the queue is being closed.
    pub fn close_if_idle(&self) {
        let state = self.state.lock();
        if !state.tickets.is_empty() {
            return;
        }
        state.call();
        drop(state);
        let mut watching = self.watching.lock();
        let mut state = self.state.lock();
        if state.tickets.is_empty() {
            state.call = None;
            drop(state);
            *watching = Watching::default();
        }
    }

    /// Gives every ticket its turn, when there is nothing left to wait for.
    pub fn all_turns(&self) -> Vec<Turn> {
        let mut state = self.state.lock();
        let tickets = state.tickets.keys().copied().collect();
        Some(state.give_turns(tickets, None)).into_iter().filter(|turn| !turn.tickets.is_empty()).collect()
    }

    fn watch(&self, watching: &mut Watching) -> Result<Vec<Turn>> {
        if watching.waiter.is_none() {
            let Some(store) = self.store.upgrade() else { return Ok(self.all_turns()) };
            let waiter = Waiter::begin(store, Awaiting::Many)?;
            let mut state = self.state.lock();
            state.call = Some(waiter.call());
            waiter.await_endings(state.endings.keys().copied());
            state.lines.values_mut().for_each(|line| line.is_due = true);
            drop(state);
            watching.endings.is_due = true;
            watching.waiter = Some(waiter);
        }
        let Watching { waiter: Some(waiter), endings, lines, until_next_event } = watching else {
            return Ok(Vec::new());
        };
        let until = Instant::now() + SLICE;
        loop {
            let news = waiter.take_changes();
            let mut turns = Vec::new();
            self.look_at_endings(waiter, &news, endings, &mut turns);
            self.look_at_lines(&news, lines, until_next_event, &mut turns);
            let left = until.saturating_duration_since(Instant::now());
            if !turns.is_empty() {
                waiter.mark_found();
                return Ok(turns);
            }
            if left.is_zero() || self.state.lock().tickets.is_empty() {
                return Ok(turns);
            }
            let next = until_next_event.values().min().map(|at| at.saturating_duration_since(Instant::now()));
            let next = next.unwrap_or(Duration::MAX).min(endings.pause()).min(lines.pause());
            waiter.sleep(Some(next), left)?;
        }
    }

    /// Looks up the ends that were reported and those not looked up yet, and from time to time all of them.
    fn look_at_endings(&self, waiter: &Waiter, news: &Changes, pace: &mut Pace, turns: &mut Vec<Turn>) {
        pace.is_due |= news.all;
        let is_for_all = pace.is_time();
        let mut state = self.state.lock();
        let gone = std::mem::take(&mut state.gone);
        waiter.forget_endings(gone.into_iter().filter(|id| !state.endings.contains_key(id)));
        let fresh = std::mem::take(&mut state.fresh);
        // Registered before the lookup, so that no end in between is missed.
        waiter.await_endings(fresh.iter().copied().filter(|id| state.endings.contains_key(id)));
        let ids: HashSet<i64> = if is_for_all {
            state.endings.keys().copied().collect()
        } else {
            fresh.into_iter().chain(news.ended.iter().copied()).collect()
        };
        let mut awaited: HashMap<usize, (Arc<Queue>, Vec<i64>)> = HashMap::new();
        for id in ids {
            for ticket in state.endings.get(&id).into_iter().flatten() {
                let Some(TicketPlace::Ending { queue, .. }) = state.tickets.get(ticket) else { continue };
                let (_, ids) =
                    awaited.entry(Arc::as_ptr(queue) as usize).or_insert_with(|| (queue.clone(), Vec::new()));
                if ids.last() != Some(&id) {
                    ids.push(id);
                }
            }
        }
        drop(state);
        if awaited.is_empty() {
            pace.is_due &= !is_for_all;
            return;
        }
        let began = Instant::now();
        for (number, (queue, mut ids)) in awaited {
            // Neighbouring ids are stored on the same page.
            ids.sort_unstable();
            for ids in ids.chunks(AT_A_TIME) {
                let outcome = queue.ended_among(ids);
                let mut state = self.state.lock();
                match outcome {
                    Ok(ended) => state.mark_ended(number, ids, ended, turns),
                    // Each task finds the error itself.
                    Err(_) => state.mark_ended(number, &[], ids.iter().map(|id| (*id, None)).collect(), turns),
                }
            }
        }
        if is_for_all {
            pace.looked(began);
        }
    }

    /// Gives the first ticket of each line its turn if there seems to be something for it.
    fn look_at_lines(
        &self,
        news: &Changes,
        pace: &mut Pace,
        until_next_event: &mut HashMap<usize, Instant>,
        turns: &mut Vec<Turn>,
    ) {
        let now = Instant::now();
        let is_without_sign = pace.without_sign.is_none_or(|time| time <= now);
        let mut state = self.state.lock();
        until_next_event.retain(|number, at| {
            let is_over = *at <= now;
            if is_over {
                state.lines.iter_mut().filter(|(key, _)| key.0 == *number).for_each(|(_, line)| line.is_due = true);
            }
            !is_over
        });
        if news.work || news.all || is_without_sign {
            state.lines.values_mut().for_each(|line| line.is_due = true);
        }
        let mut wanted: HashMap<usize, (Arc<Queue>, Vec<LineKey>)> = HashMap::new();
        pace.is_due = false;
        for (key, line) in state.lines.iter_mut().filter(|(_, line)| line.is_wanted()) {
            pace.is_due = true;
            if pace.not_before.is_none_or(|time| time <= now) {
                line.is_due = false;
                wanted.entry(key.0).or_insert_with(|| (line.queue.clone(), Vec::new())).1.push(key.clone());
            }
        }
        drop(state);
        if wanted.is_empty() {
            return;
        }
        let mut looked_at = 0;
        for (number, (queue, lines)) in wanted {
            looked_at += lines.len();
            match self.chosen(&queue, &lines) {
                Ok((chosen, next)) => {
                    let mut state = self.state.lock();
                    let first = chosen.into_iter().filter_map(|key| state.lines.get(key)?.standing.first().copied());
                    let first = first.collect::<Vec<_>>();
                    turns.extend((!first.is_empty()).then(|| state.give_turns(first, None)));
                    match next.and_then(|pause| Instant::now().checked_add(pause)) {
                        Some(at) => until_next_event.insert(number, at),
                        None => until_next_event.remove(&number),
                    };
                }
                // Each task finds the error itself.
                Err(_) => {
                    let mut state = self.state.lock();
                    let standing = lines.iter().filter_map(|key| state.lines.get(key)).flat_map(|line| &line.standing);
                    let standing = standing.copied().collect::<Vec<_>>();
                    turns.push(state.give_turns(standing, None));
                }
            }
        }
        pace.looked(now);
        if looked_at < AT_A_TIME {
            // A few lines are cheap to look up, and a claim should not be delayed needlessly.
            pace.not_before = None;
        }
    }

    /// Returns the lines of a queue for which there is something, and how long until the next timed event.
    fn chosen<'a>(&self, queue: &Queue, lines: &'a [LineKey]) -> Result<(Vec<&'a LineKey>, Option<Duration>)> {
        let is_for_items = lines.iter().any(|(_, want)| matches!(want, WaitGoal::Item(_)));
        let work_forecast = if is_for_items { Some(queue.work_forecast()?) } else { None };
        let mut chosen = Vec::new();
        for key in lines {
            if queue.has(&key.1, work_forecast.as_ref())? {
                chosen.push(key);
            }
        }
        // One claim makes due and lost items claimable for all lines.
        let brings_in = work_forecast.as_ref().is_some_and(|work_forecast| work_forecast.brings_in);
        let mut claims = lines.iter().filter(|(_, want)| matches!(want, WaitGoal::Item(_)));
        if brings_in
            && !chosen.iter().any(|(_, want)| matches!(want, WaitGoal::Item(_)))
            && let Some(first) = claims.next()
        {
            chosen.push(first);
        }
        Ok((chosen, work_forecast.and_then(|work_forecast| work_forecast.until_next_event)))
    }
}

impl State {
    /// Gives turns to the tickets that wait for these ends in this queue, and marks `looked_at` as looked up.
    fn mark_ended(&mut self, number: usize, looked_at: &[i64], ended: Vec<(i64, Option<Item>)>, turns: &mut Vec<Turn>) {
        for (id, item) in ended {
            let is_of_queue = |ticket: &u64| match self.tickets.get(ticket) {
                Some(TicketPlace::Ending { queue, .. }) => Arc::as_ptr(queue) as usize == number,
                _ => false,
            };
            let tickets: Vec<_> = self.endings.get(&id).into_iter().flatten().copied().filter(is_of_queue).collect();
            let queue = tickets.first().and_then(|ticket| match self.tickets.get(ticket) {
                Some(TicketPlace::Ending { queue, .. }) => Some(queue.clone()),
                _ => None,
            });
            turns.push(Turn { queue, ..self.give_turns(tickets, item) });
        }
        for ticket in looked_at.iter().filter_map(|id| self.endings.get(id)).flatten() {
            if let Some(TicketPlace::Ending { was_seen, .. }) = self.tickets.get_mut(ticket) {
                *was_seen = true;
            }
        }
    }

    /// A ticket that waited for an end is removed. A ticket in a line is kept, to wait again or to leave.
    fn give_turns(&mut self, mut tickets: Vec<u64>, item: Option<Item>) -> Turn {
        tickets.retain(|ticket| self.give_turn(*ticket).is_some());
        Turn { tickets, item, queue: None }
    }

    fn give_turn(&mut self, ticket: u64) -> Option<()> {
        match self.tickets.get(&ticket)? {
            TicketPlace::Ending { id, .. } => {
                let id = *id;
                self.tickets.remove(&ticket);
                let tickets = self.endings.get_mut(&id)?;
                tickets.retain(|other| *other != ticket);
                if tickets.is_empty() {
                    self.endings.remove(&id);
                    self.gone.push(id);
                }
            }
            TicketPlace::Line { line, .. } => {
                let line = self.lines.get_mut(line)?;
                if !line.standing.remove(&ticket) {
                    return None;
                }
                line.at_turn.insert(ticket, Instant::now());
            }
        }
        Some(())
    }
}
