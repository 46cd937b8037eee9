//! The verbs; the only place where rules meet the store.

mod admin;
mod claim;
mod drain;
mod finish;
mod lock;
mod look;
mod put;
mod worker;

pub use claim::{Claim, From, Held};
pub use drain::{Drain, Step};
pub use lock::Lock;
pub use look::{Filter, Stats};
pub use put::Statements;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use arc_swap::ArcSwapOption;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::outcome::{Allowance, Retry};
use crate::sqlite::{self, Database, Flush, Place, Tx, Wait};
use crate::sync::Mutex;

/// The queue of a plain INSERT, and membox's own.
pub const DEFAULT_NAME: &str = "ingest";

const LONGEST_NAME: usize = 255;
/// What `max_bytes` can be at most.
pub const MOST_BYTES: usize = 512 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Returned means on disk.
    Full,
    /// A power cut may roll back the last commits; nothing else does.
    Normal,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub name: String,
    pub lease_ms: i64,
    pub max_retries: u32,
    pub retry: Option<Retry>,
    pub durability: Durability,
    pub max_bytes: usize,
    /// How long a call waits for other writers.
    pub patience: Duration,
    /// Asked while a call waits: whether to give up the wait.
    pub interrupted: fn() -> bool,
    /// Who claims, for people to read; by default host and process.
    pub worker: Option<String>,
    /// How many items of one group may run at once; `None`: what the file says, else one.
    pub group_limit: Option<u32>,
    /// How many items may wait.
    pub max_pending: Option<i64>,
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: DEFAULT_NAME.into(),
            lease_ms: 60_000,
            max_retries: 3,
            retry: None,
            durability: Durability::Full,
            max_bytes: 64 * 1024 * 1024,
            patience: Duration::from_secs(30),
            interrupted: || false,
            worker: None,
            group_limit: None,
            max_pending: None,
            clock: Clock::system(),
        }
    }
}

impl Options {
    fn check(&self) -> Result<()> {
        let invalid = |text: String| Err(Error::Invalid(text));
        if self.name.is_empty() || self.name.len() > LONGEST_NAME || self.name.contains('\0') {
            return invalid(format!("a queue's name has 1 to {LONGEST_NAME} bytes and no NUL, not {:?}", self.name));
        }
        if self.lease_ms < 1 {
            return invalid("lease must be at least a millisecond".into());
        }
        if self.max_bytes < 1 || self.max_bytes > MOST_BYTES {
            return invalid(format!("max_bytes must be between 1 and {MOST_BYTES}, not {}", self.max_bytes));
        }
        Ok(())
    }
}

/// One named queue of one file. Usable from all threads.
pub struct Queue {
    options: Options,
    place: Place,
    session: ArcSwapOption<Session>,
}

/// A queue's present use of its file.
struct Session {
    database: Arc<Database>,
    /// The owner token of the worker lease this object holds.
    worker_lease: Mutex<Option<worker::Hold>>,
    /// When leases were last compared with a clock that may have gone back.
    looked_ahead_at: AtomicI64,
    /// The process it was opened in; see `sqlite::generation`.
    generation: u64,
}

impl Session {
    fn open(place: &Place, patience: Duration) -> Result<Self> {
        Ok(Self {
            database: Database::open(place.clone(), patience)?,
            worker_lease: Mutex::default(),
            looked_ahead_at: AtomicI64::new(i64::MIN),
            generation: sqlite::generation(),
        })
    }
}

impl Queue {
    pub fn open(path: &Path, options: Options) -> Result<Arc<Self>> {
        options.check()?;
        let place = Place::resolve(path)?;
        let session = Session::open(&place, options.patience)?;
        let queue = Arc::new(Self { options, place, session: ArcSwapOption::from_pointee(session) });
        if let Some(limit) = queue.options.group_limit {
            queue.settle_group_limit(limit)?;
        }
        Ok(queue)
    }

    pub fn name(&self) -> &str {
        &self.options.name
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The file, or `None` in memory.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.place {
            Place::Memory(_) => None,
            Place::File(path) => Some(path.clone()),
        }
    }

    /// Ends this object's use of the file, and gives back a worker lease it holds; closing twice is closing once.
    pub fn close(&self) -> Result<()> {
        let released = match &*self.session.load() {
            Some(session) if session.generation == sqlite::generation() => self.release_worker_lease().map(drop),
            _ => Ok(()),
        };
        self.session.store(None);
        released
    }

    pub fn is_closed(&self) -> bool {
        self.session.load().is_none()
    }

    fn session(&self) -> Result<Arc<Session>> {
        let session = self.session.load_full().ok_or(Error::Closed)?;
        if session.generation == sqlite::generation() { Ok(session) } else { self.reopen_in_child(session) }
    }

    /// After a fork the child works on a session of its own. The parent's is never touched: its locks may be held by
    /// threads that do not exist here.
    fn reopen_in_child(&self, inherited: Arc<Session>) -> Result<Arc<Session>> {
        if let Place::Memory(_) = self.place {
            return Err(Error::Forked("an in-memory queue", "open a new one in the child"));
        }
        let fresh = Arc::new(Session::open(&self.place, self.options.patience)?);
        let before = self.session.compare_and_swap(&inherited, Some(fresh.clone()));
        match &*before {
            Some(before) if Arc::ptr_eq(before, &inherited) => {
                std::mem::forget(inherited);
                Ok(fresh)
            }
            // Another thread of the child was first, or it was closed.
            _ => self.session.load_full().ok_or(Error::Closed),
        }
    }

    /// A transaction whose result is acknowledged to the caller.
    fn write<T>(&self, work: impl FnOnce(&Tx) -> Result<T>) -> Result<T> {
        self.transact(self.acknowledged(), work)
    }

    /// A transaction whose loss only costs a redelivery: it does not wait for the disk.
    fn write_lightly<T>(&self, work: impl FnOnce(&Tx) -> Result<T>) -> Result<T> {
        self.transact(Flush::Normal, work)
    }

    fn transact<T>(&self, flush: Flush, work: impl FnOnce(&Tx) -> Result<T>) -> Result<T> {
        self.session()?.database.write(flush, &self.options.clock, self.wait(), work)
    }

    fn wait(&self) -> Wait {
        Wait { limit: self.options.patience, interrupted: self.options.interrupted }
    }

    fn acknowledged(&self) -> Flush {
        match self.options.durability {
            Durability::Full => Flush::Full,
            Durability::Normal => Flush::Normal,
        }
    }

    fn allowance(&self, retries: u32, max_retries: Option<u32>) -> Allowance<'_> {
        Allowance { retries, max_retries, policy: self.options.retry.as_ref(), queue_max: self.options.max_retries }
    }

    fn ring(&self) {
        if let Some(session) = &*self.session.load() {
            session.database.bell().ring();
        }
    }
}

/// A number nobody else has drawn.
fn random() -> Result<u64> {
    getrandom::u64().map_err(|error| Error::Storage(format!("the operating system gave no random number: {error}")))
}

/// A token: never negative, so that it reads as a plain number in every tool.
fn draw() -> Result<i64> {
    Ok((random()? >> 1) as i64)
}

/// A throw in 0..1 for the back-off's jitter.
fn dice() -> Result<f64> {
    Ok((random()? >> 11) as f64 / (1u64 << 53) as f64)
}
