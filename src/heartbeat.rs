//! The native thread that renews claims, worker leases and named locks. It never touches Python.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Weak};
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::error::Result;
use crate::model::Now;
use crate::process::{Background, BackgroundThread, Started};
use crate::store::{LockWait, Renewal, Store};
use crate::sync::{Mutex, wait};

/// How many renewals fit into one lease.
pub const BEATS_PER_LEASE: u32 = 3;

/// A renewed lease is granted longer by this fraction of its length: one renewal interval.
pub const GRACE: i64 = BEATS_PER_LEASE as i64;

/// How long busy databases may delay the renewals of the others.
const PATIENCE: Duration = Duration::from_millis(200);

/// A failed renewal is tried again after at most this time.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A requested renewal comes after this time.
const SOON: Duration = Duration::from_millis(50);

/// Builds the renewal when it is due.
type MakeRenewal = Box<dyn Fn(Now) -> Renewal + Send + Sync>;

/// Renews a claim or lease until it is dropped.
pub struct Heartbeat {
    entry: Arc<Entry>,
    heart: Arc<Started<Heartbeats>>,
}

/// Requests a renewal before it is due.
#[derive(Clone)]
pub struct Nudge {
    entry: Weak<Entry>,
    heart: Arc<Started<Heartbeats>>,
}

struct Entry {
    store: Arc<dyn Store>,
    clock: Clock,
    renewal: MakeRenewal,
    every: Duration,
    next: Mutex<Instant>,
    /// After this time the claim is no longer renewed: its handler is assumed to hang.
    until: Option<Instant>,
    lost: Arc<AtomicBool>,
}

#[derive(Default)]
struct Heartbeats {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    entries: Vec<Arc<Entry>>,
    /// When the thread wakes next; a renewal due later need not wake it.
    looks_at: Option<Instant>,
}

static HEART: BackgroundThread<Heartbeats> = BackgroundThread::new();

impl Heartbeat {
    /// Starts renewing before `lease_ms` has passed, of which `spent` is already over, for at most `longest`. Sets
    /// `lost` when the lease is no longer ours.
    pub fn start(
        store: Arc<dyn Store>,
        clock: Clock,
        lease_ms: i64,
        spent: Duration,
        longest: Option<Duration>,
        lost: Arc<AtomicBool>,
        renewal: MakeRenewal,
    ) -> Result<Self> {
        let every = Duration::from_millis(u64::try_from(lease_ms).unwrap_or(1).max(1)) / BEATS_PER_LEASE;
        let next = Instant::now() + every.saturating_sub(spent);
        let until = longest.and_then(|longest| Instant::now().checked_add(longest));
        let entry = Arc::new(Entry { store, clock, renewal, every, next: Mutex::new(next), until, lost });
        let heart = HEART.get()?;
        if let Some(heart) = heart.here() {
            let mut state = heart.state.lock();
            state.entries.push(entry.clone());
            if state.looks_at.is_none_or(|looks_at| looks_at > next) {
                heart.changed.notify_one();
            }
        }
        Ok(Self { entry, heart })
    }

    pub fn nudge(&self) -> Nudge {
        Nudge { entry: Arc::downgrade(&self.entry), heart: self.heart.clone() }
    }
}

impl Nudge {
    /// Schedules the renewal soon, if the heartbeat still exists.
    pub fn soon(&self) {
        let (Some(heart), Some(entry)) = (self.heart.here(), self.entry.upgrade()) else { return };
        let state = heart.state.lock();
        let mut next = entry.next.lock();
        *next = (*next).min(Instant::now() + SOON);
        drop(next);
        drop(state);
        heart.changed.notify_one();
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        if let Some(heart) = self.heart.here() {
            let mut state = heart.state.lock();
            state.entries.retain(|entry| !Arc::ptr_eq(entry, &self.entry));
            let store = &self.entry.store;
            if store.is_showing_renewal_wait() && !state.entries.iter().any(|entry| Arc::ptr_eq(&entry.store, store)) {
                store.show_renewal_wait(false);
            }
        }
    }
}

impl Background for Heartbeats {
    const THREAD_NAME: &'static str = "membox-queue-beat";

    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            state.entries.retain(|entry| entry.until.is_none_or(|until| until > Instant::now()));
            state.looks_at = state.entries.iter().map(|entry| *entry.next.lock()).min();
            let pause = state.looks_at.map(|next| next.saturating_duration_since(Instant::now()));
            if pause != Some(Duration::ZERO) {
                state = wait(&self.changed, state, pause);
                continue;
            }
            let due = state.entries.iter().filter(|entry| entry.is_nearly_due()).cloned().collect::<Vec<_>>();
            drop(state);
            renew_all(due);
            state = self.state.lock();
        }
    }
}

impl Entry {
    /// Renewals that are due a little later share the same write.
    fn is_nearly_due(&self) -> bool {
        *self.next.lock() <= Instant::now() + self.every / 4
    }

    fn beat_in(&self, pause: Duration) {
        *self.next.lock() = Instant::now() + pause;
    }
}

/// Makes one short write per database. Databases that are free come first; the others share `PATIENCE`, however many
/// they are.
fn renew_all(mut due: Vec<Arc<Entry>>) {
    let mut by_database = Vec::new();
    while let Some(first) = due.first().cloned() {
        let (together, rest): (Vec<_>, Vec<_>) =
            due.into_iter().partition(|entry| Arc::ptr_eq(&entry.store, &first.store));
        due = rest;
        by_database.push(together);
    }
    by_database.retain(|together| !renew(together, Duration::ZERO));
    let patience = PATIENCE / u32::try_from(by_database.len().max(1)).unwrap_or(u32::MAX);
    for together in by_database {
        if !renew(&together, patience) {
            // The file is busy or the disk is full, but the lease has not expired: try again soon.
            together.iter().for_each(|entry| entry.beat_in((entry.every / 4).min(LONGEST_PAUSE)));
        }
    }
}

/// Renews the leases of one database. Returns whether it could.
fn renew(together: &[Arc<Entry>], patience: Duration) -> bool {
    let Some(first) = together.first() else { return true };
    let renewals = together.iter().map(|entry| (entry.renewal)(entry.clock.now())).collect::<Vec<_>>();
    let renewed = first.store.renew(&first.clock, LockWait::up_to(patience), &renewals);
    // Other processes see that a renewal is waiting, and do not reclaim these claims yet.
    first.store.show_renewal_wait(renewed.is_err());
    let Ok(held) = renewed else { return false };
    for (entry, is_held) in together.iter().zip(held) {
        if !is_held {
            entry.lost.store(true, Ordering::SeqCst);
        }
        entry.beat_in(entry.every);
    }
    true
}
