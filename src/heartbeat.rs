//! The native thread that keeps claims and the worker lease alive. It never touches Python.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use once_cell::sync::Lazy;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::clock::Clock;
use crate::error::Result;
use crate::sqlite::{Database, Sync, Tx};

/// A lease is renewed this many times before it would run out.
const BEATS_PER_LEASE: u32 = 3;

/// Renews what is held; `false` when it is no longer ours.
type Renew = Box<dyn Fn(&Tx) -> Result<bool> + Send + std::marker::Sync>;

/// Keeps something alive until it is dropped.
pub struct Beat {
    entry: Arc<Entry>,
}

struct Entry {
    database: Arc<Database>,
    clock: Clock,
    renew: Renew,
    every: Duration,
    next: Mutex<Instant>,
    lost: Arc<AtomicBool>,
}

#[derive(Default)]
struct Heart {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    entries: Vec<Arc<Entry>>,
    /// When the thread will look by itself; a beat that is due later need not wake it.
    looks_at: Option<Instant>,
}

static HEART: Lazy<&'static Heart> = Lazy::new(|| {
    let heart: &'static Heart = Box::leak(Box::default());
    std::thread::Builder::new()
        .name("membox-queue-heartbeat".into())
        .spawn(move || heart.run())
        .expect("the operating system refused a thread");
    heart
});

impl Beat {
    /// Starts renewing well before `lease_ms` is over. `lost` is set when `renew` says that it is no longer ours.
    pub fn start(database: Arc<Database>, clock: Clock, lease_ms: i64, lost: Arc<AtomicBool>, renew: Renew) -> Self {
        let every = Duration::from_millis(u64::try_from(lease_ms).unwrap_or(1).max(1)) / BEATS_PER_LEASE;
        let next = Instant::now() + every;
        let entry = Arc::new(Entry { database, clock, renew, every, next: Mutex::new(next), lost });
        let mut state = HEART.state.lock();
        state.entries.push(entry.clone());
        if state.looks_at.is_none_or(|looks_at| looks_at > next) {
            HEART.changed.notify_one();
        }
        Self { entry }
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        HEART.state.lock().entries.retain(|entry| !Arc::ptr_eq(entry, &self.entry));
    }
}

impl Heart {
    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            state.looks_at = state.entries.iter().map(|entry| *entry.next.lock()).min();
            match state.looks_at {
                None => self.changed.wait(&mut state),
                Some(next) if next > Instant::now() => {
                    self.changed.wait_until(&mut state, next);
                }
                Some(_) => {
                    let due = state.entries.iter().filter(|entry| entry.is_nearly_due()).cloned().collect::<Vec<_>>();
                    MutexGuard::unlocked(&mut state, || renew_all(due));
                }
            }
        }
    }
}

impl Entry {
    /// What falls due a little later is renewed in the same write.
    fn is_nearly_due(&self) -> bool {
        *self.next.lock() <= Instant::now() + self.every / 4
    }
}

/// One short write per database.
fn renew_all(mut due: Vec<Arc<Entry>>) {
    while let Some(first) = due.first().cloned() {
        let (together, rest): (Vec<_>, Vec<_>) =
            due.into_iter().partition(|entry| Arc::ptr_eq(&entry.database, &first.database));
        due = rest;
        let patience = together.iter().map(|entry| entry.every).min().unwrap_or_default();
        let renewed = first.database.write(Sync::Normal, &first.clock, patience, |tx| {
            together.iter().map(|entry| (entry.renew)(tx)).collect::<Result<Vec<bool>>>()
        });
        for (index, entry) in together.iter().enumerate() {
            let pause = match &renewed {
                Ok(held) => {
                    if !held[index] {
                        entry.lost.store(true, Ordering::SeqCst);
                    }
                    entry.every
                }
                // Busy or out of space: the lease is not over yet, try again soon.
                Err(_) => entry.every / 4,
            };
            *entry.next.lock() = Instant::now() + pause;
        }
    }
}
