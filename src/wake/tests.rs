//! Lines: a hint wakes one thread of each, and a thread that leaves without a look lets the next one look.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Awaiting, Waiter};
use crate::store::{self, Address, Store};

/// Waiters of lines on a database in memory, which have all looked and found nothing.
struct Threads {
    store: Arc<dyn Store>,
    waiters: Vec<Waiter>,
}

impl Threads {
    fn of(lines: &[&str]) -> Self {
        let address = Address::resolve(Path::new(":memory:")).expect("an address");
        let store = store::open(&address, Duration::from_secs(1)).expect("a database in memory");
        let begin = |line: &&str| {
            let mut waiter = Waiter::begin(store.clone(), Awaiting::Work((*line).into())).expect("a waiter");
            waiter.mark_looked();
            waiter
        };
        let waiters = lines.iter().map(begin).collect();
        Self { store, waiters }
    }

    /// Which of them were woken.
    fn woken(&self) -> Vec<usize> {
        let is_woken = |waiter: &Waiter| waiter.sleeper.has_turn.load(Ordering::SeqCst);
        self.waiters.iter().enumerate().filter(|(_, waiter)| is_woken(waiter)).map(|(place, _)| place).collect()
    }

    /// The thread wakes up and begins its look.
    fn look(&mut self, place: usize) {
        assert!(self.waiters[place].sleep(None, Duration::ZERO).expect("a sleep"), "it was woken");
    }
}

#[test]
fn a_hint_wakes_one_thread_of_each_line() {
    let threads = Threads::of(&["a", "a", "b", "a", "b"]);
    threads.store.wake_signal().wake_for_work();
    assert_eq!(threads.woken(), [0, 2]);
    threads.store.wake_signal().wake_for_work();
    assert_eq!(threads.woken(), [0, 1, 2, 4]);
}

#[test]
fn one_that_sleeps_is_woken_before_one_that_is_busy() {
    let threads = Threads::of(&["a", "a", "a"]);
    threads.waiters[1].sleeper.is_asleep.store(true, Ordering::SeqCst);
    threads.store.wake_signal().wake_for_work();
    assert_eq!(threads.woken(), [1]);
}

#[test]
fn a_look_that_finds_nothing_wakes_no_other() {
    let mut threads = Threads::of(&["a", "a"]);
    threads.store.wake_signal().wake_for_work();
    threads.look(0);
    threads.waiters[0].mark_looked();
    threads.waiters.remove(0);
    assert_eq!(threads.woken(), [0; 0]);
}

#[test]
fn whoever_leaves_without_having_looked_wakes_the_next() {
    let mut threads = Threads::of(&["a", "a", "a"]);
    threads.store.wake_signal().wake_for_work();
    // Its time is over before it wakes up.
    threads.waiters.remove(0);
    assert_eq!(threads.woken(), [0]);
    // It wakes up, and fails before its look is over.
    threads.look(0);
    threads.waiters.remove(0);
    assert_eq!(threads.woken(), [0]);
}

#[test]
fn whoever_alone_knew_of_a_time_lets_the_next_find_out() {
    let mut threads = Threads::of(&["a", "a"]);
    threads.store.wake_signal().wake_for_work();
    threads.look(0);
    threads.waiters[0].mark_looked();
    threads.waiters[0].sleep(Some(Duration::from_millis(400)), Duration::ZERO).expect("a sleep");
    threads.waiters.remove(0);
    assert_eq!(threads.woken(), [0]);
}

#[test]
fn each_that_finds_something_lets_another_look() {
    let mut threads = Threads::of(&["a", "a", "b"]);
    let store = threads.store.clone();
    store.wake_signal().wake_for_work();
    assert_eq!(threads.woken(), [0, 2]);
    threads.look(0);
    assert!(store.wake_signal().has_next("a"));
    store.wake_signal().ring_line("a");
    threads.waiters.remove(0).mark_looked();
    assert_eq!(threads.woken(), [0, 1]);
    threads.look(0);
    assert!(!store.wake_signal().has_next("a"));
}

#[test]
fn a_turn_that_is_passed_on_ends_when_all_have_looked() {
    let mut threads = Threads::of(&["a", "a", "a"]);
    threads.store.wake_signal().wake_for_work();
    for place in [0, 1, 2] {
        assert_eq!(threads.woken(), [place]);
        threads.look(place);
        threads.waiters[place].pass_on();
    }
    assert_eq!(threads.woken(), [0; 0]);
}

#[test]
fn anything_that_may_concern_all_wakes_all() {
    let threads = Threads::of(&["a", "a", "b"]);
    threads.store.wake_signal().wake();
    assert_eq!(threads.woken(), [0, 1, 2]);
}

#[test]
fn the_thread_that_notices_a_change_looks_for_its_own_line() {
    let threads = Threads::of(&["a", "a", "b", "b"]);
    threads.store.wake_signal().state.lock().wake_others(&threads.waiters[1].sleeper);
    assert_eq!(threads.woken(), [1, 2]);
}
