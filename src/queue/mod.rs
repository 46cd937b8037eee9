//! The queue's verbs: the only place where the rules and the store meet.

mod advance;
mod answer;
mod child;
mod claim;
mod enlist;
mod enqueue;
mod finish;
mod lease;
mod lock;
mod membox;
mod next_stage;
mod portions;
mod progress;
mod rate;
mod read;
mod reclaim;
mod repair;
mod retention;
mod run;
mod schedule;
mod settings;
mod step;
mod target;
mod tree;
mod wait;
mod watcher;
mod worker_loop;
mod workers;

pub use claim::{Claim, ClaimedItem};
pub use enlist::{Enlistment, Outcome as EnlistmentOutcome, Step as EnlistmentStep};
pub use lock::Lock;
pub use read::{Filter, Stats};
pub use settings::Current;
pub use step::Durable;
pub use target::{Target, Targets};
pub use tree::Node;
pub use wait::{Awaited, AwaitedEnd, Waiting};
pub use watcher::{Turn, Want, Watcher};
pub use worker_loop::{Next, Plan, Step, WorkerLoop};
pub use workers::Worker;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::process;
use crate::rules::name;
use crate::rules::settings::Settings;
use crate::store::{self, Address, Liveness, LockWait, Store, View};
use crate::sync::Mutex;
use run::Verb;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A commit is on disk when the call returns.
    Full,
    /// A power cut may roll back the last commits; nothing else does.
    Normal,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub name: String,
    /// The settings this object was opened with. They are stored in the file, except the lease, which is its own.
    pub settings: Settings,
    pub durability: Durability,
    /// How long a call waits for other writers.
    pub patience: Duration,
    /// Called while a call waits; returns whether to stop waiting.
    pub interrupted: fn() -> bool,
    /// Receives warnings for people while a call waits.
    pub warn: fn(&str),
    /// The worker's name, for people to read; by default host and process id.
    pub worker: Option<String>,
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: name::DEFAULT_QUEUE.into(),
            settings: Settings::default(),
            durability: Durability::Full,
            patience: Duration::from_secs(30),
            interrupted: || false,
            warn: |_| {},
            worker: None,
            clock: Clock::system(),
        }
    }
}

impl Options {
    fn check(&self) -> Result<()> {
        name::check("a queue's name", &self.name)?;
        self.settings.check()
    }
}

/// One named queue of one file. Can be used from all threads.
pub struct Queue {
    options: Options,
    /// The lease given at opening, unless `configure` has stored one since; 0: none.
    own_lease_ms: AtomicI64,
    current: ArcSwap<Current>,
    address: Address,
    session: ArcSwapOption<Session>,
}

/// A queue's current use of its file.
struct Session {
    store: Arc<dyn Store>,
    /// The worker lease this object holds.
    worker_lease: Mutex<Option<lease::LeaseHold>>,
    /// The named locks this object holds.
    locks: Mutex<Vec<Weak<Lock>>>,
    /// When leases were last checked against a clock that may have gone back.
    looked_ahead_at: AtomicI64,
    /// When retention last looked for items to remove.
    tended_at: AtomicI64,
    /// How far retention has come through the finished items.
    cursors: Mutex<retention::SweepCursors>,
    /// Whether the last claim found something.
    has_found: AtomicBool,
    /// When this object last looked for dead processes.
    looked_for_dead_at: Mutex<Option<Instant>>,
    /// When a waiting call last looked for stuck claims.
    looked_for_stuck_at: Mutex<Option<Instant>>,
    /// Claims whose lease expired while their holder waited to renew them.
    renewals: Mutex<HashMap<i64, reclaim::RenewalWait>>,
    /// Warnings for people, told after the transaction that found their cause.
    warnings: Mutex<Vec<String>>,
    /// The worker's name, for people to read.
    worker_name: Arc<str>,
    /// Whether the file records that this process may claim from the queue.
    is_entered: AtomicBool,
    /// The process the session was opened in; see `process::generation`.
    generation: u64,
}

impl Session {
    fn open(address: &Address, options: &Options) -> Result<Self> {
        let worker_name = match &options.worker {
            Some(name) => name.as_str().into(),
            None => format!("{}:{}", process::hostname(), std::process::id()).into(),
        };
        Ok(Self {
            worker_name,
            is_entered: AtomicBool::new(false),
            store: store::open(address, options.patience)?,
            worker_lease: Mutex::default(),
            locks: Mutex::default(),
            looked_ahead_at: AtomicI64::new(i64::MIN),
            tended_at: AtomicI64::new(i64::MIN),
            cursors: Mutex::default(),
            has_found: AtomicBool::new(false),
            looked_for_dead_at: Mutex::default(),
            looked_for_stuck_at: Mutex::default(),
            renewals: Mutex::default(),
            warnings: Mutex::default(),
            generation: process::generation(),
        })
    }
}

impl Queue {
    pub fn open(path: &Path, options: Options) -> Result<Arc<Self>> {
        options.check()?;
        let address = Address::resolve(path)?;
        let session = Session::open(&address, &options)?;
        let queue = Arc::new(Self {
            own_lease_ms: AtomicI64::new(options.settings.lease_ms.unwrap_or(0)),
            current: ArcSwap::default(),
            options,
            address,
            session: ArcSwapOption::from_pointee(session),
        });
        queue.settle_settings()?;
        Ok(queue)
    }

    pub fn name(&self) -> &str {
        &self.options.name
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the file's path, or `None` in memory.
    pub fn path(&self) -> Option<PathBuf> {
        self.address.path()
    }

    /// Returns whether both queues are in one database.
    pub fn is_beside(&self, other: &Queue) -> bool {
        self.address == other.address
    }

    /// Ends this object's use of the file, and releases its worker lease and locks. Closing twice is harmless.
    pub fn close(&self) -> Result<()> {
        let released = match &*self.session.load() {
            Some(session) if session.generation == process::generation() => {
                let locks = self.unlock_all();
                self.release_worker_lease().and(locks)
            }
            _ => Ok(()),
        };
        let session = self.session.swap(None);
        // Waiting threads wake and learn that the queue is closed.
        if let Some(session) = session.filter(|session| session.generation == process::generation()) {
            session.store.wake_signal().wake();
        }
        released
    }

    pub fn is_closed(&self) -> bool {
        self.session.load().is_none()
    }

    fn session(&self) -> Result<Arc<Session>> {
        let session = self.session.load_full().ok_or(Error::Closed)?;
        if session.generation == process::generation() { Ok(session) } else { self.reopen_in_child(session) }
    }

    /// After a fork, the child opens its own session. The parent's session is never touched: threads that do not exist
    /// in the child may hold its locks.
    fn reopen_in_child(&self, inherited: Arc<Session>) -> Result<Arc<Session>> {
        if !self.address.outlives_process() {
            return Err(Error::Forked("an in-memory queue", "open a new one in the child"));
        }
        let fresh = Arc::new(Session::open(&self.address, &self.options)?);
        let before = self.session.compare_and_swap(&inherited, Some(fresh.clone()));
        match &*before {
            Some(before) if Arc::ptr_eq(before, &inherited) => {
                std::mem::forget(inherited);
                Ok(fresh)
            }
            // Another thread of the child was first, or the queue was closed.
            _ => self.session.load_full().ok_or(Error::Closed),
        }
    }

    fn wait(&self) -> LockWait {
        LockWait { limit: self.options.patience, interrupted: self.options.interrupted, warn: self.options.warn }
    }

    /// Returns this process's liveness lock. It is recorded in the file before any claim uses its number.
    fn liveness(&self, wait: LockWait) -> Result<Option<Arc<dyn Liveness>>> {
        let session = self.session()?;
        let liveness = session.store.liveness();
        if let Some(liveness) = &liveness
            && !session.is_entered.load(Ordering::Acquire)
        {
            session.store.tidy_liveness();
            self.run_within(Verb::Enter, wait, |tx| tx.add_holder(self.name(), liveness.number()))?;
            session.is_entered.store(true, Ordering::Release);
        }
        Ok(liveness)
    }

    /// Runs one query without taking the write lock.
    fn read<T>(&self, look: impl FnOnce(&dyn View) -> Result<T>) -> Result<T> {
        self.session()?.store.read(self.options.clock.now(), look)
    }

    /// Runs several queries on one snapshot.
    fn view<T>(&self, look: impl FnOnce(&dyn View) -> Result<T>) -> Result<T> {
        self.session()?.store.view(self.options.clock.now(), look)
    }

    /// Passes on the warnings of transactions; called while no lock is held.
    fn tell_warnings(&self) {
        if let Some(session) = &*self.session.load() {
            let warnings = std::mem::take(&mut *session.warnings.lock());
            warnings.iter().for_each(|text| (self.options.warn)(text));
        }
    }

    /// Wakes every waiting thread of this process without a commit, so that each checks its own state again.
    fn wake_all(&self) {
        if let Some(session) = &*self.session.load() {
            session.store.wake_signal().wake();
        }
    }
}
