//! The one writer of a file in this process: waiting for it and for the write lock, and its transactions.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::bookkeeping::Triggers;
use super::super::due::NextDue;
use super::super::settings::KnownSettings;
use super::super::{Transaction, locks};
use super::busy::busy;
use super::group_commit::Work;
use super::turns::Turns;
use super::{Database, Location};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::store::{CommitSync, LockWait};
use crate::sync::ExclusiveGuard;

/// A wait is cut into slices of this length; between two of them other threads get their turn and signals are handled.
const WAIT_SLICE: Duration = Duration::from_millis(100);
/// Tries before the first sleep.
const TRIES_BEFORE_SLEEP: i32 = 2;
/// For this long after a commit that checked the files, the next transaction begins without checking them.
const CHECK_VALID_FOR: Duration = Duration::from_millis(100);

impl CommitSync {
    fn pragma(self) -> &'static str {
        match self {
            CommitSync::Full => "PRAGMA synchronous = FULL",
            CommitSync::Normal => "PRAGMA synchronous = NORMAL",
        }
    }

    fn level(self) -> i64 {
        match self {
            CommitSync::Full => 2,
            CommitSync::Normal => 1,
        }
    }
}

/// How long a call may wait for other writers; shared with the connection's busy handler.
#[derive(Clone)]
pub(super) struct Patience(Arc<AtomicU64>);

impl Patience {
    pub(super) fn new(limit: Duration) -> Self {
        let patience = Self(Arc::default());
        patience.set(limit);
        patience
    }

    pub(super) fn set(&self, limit: Duration) {
        self.0.store(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Short sleeps that grow and vary, so that writers neither sleep while the lock is free nor wake at the same time.
    pub(super) fn handler(&self) -> impl FnMut(i32) -> bool + Send + 'static {
        let limit = self.0.clone();
        let mut started = Instant::now();
        move |tries| {
            if tries == 0 {
                started = Instant::now();
            }
            if started.elapsed() >= Duration::from_millis(limit.load(Ordering::Relaxed)) {
                return false;
            }
            // Most transactions are shorter than the shortest sleep.
            if tries < TRIES_BEFORE_SLEEP {
                std::thread::yield_now();
                return true;
            }
            let longest = 2000u64 << (tries - TRIES_BEFORE_SLEEP).clamp(0, 2);
            let random = u64::from(getrandom::u32().unwrap_or(0));
            std::thread::sleep(Duration::from_micros(longest / 2 + random % (longest / 2 + 1)));
            true
        }
    }
}

pub(super) struct Writer {
    /// `None` after an I/O error, which makes a connection's page cache unreliable.
    pub(super) connection: Option<Connection>,
    pub(super) patience: Patience,
    pub(super) commit_sync: CommitSync,
    /// When the path last led to the file that was opened.
    pub(super) checked_at: Option<Instant>,
    pub(super) turns: Box<Turns>,
    pub(super) state: WriterState,
}

/// What is known of the writing connection, and of the file as of its last transaction.
pub struct WriterState {
    pub triggers: Triggers,
    pub settings: KnownSettings,
    /// Whether any item waits for another.
    pub has_dependencies: Cell<Option<bool>>,
    pub next_due: NextDue,
}

impl WriterState {
    pub(super) fn install(connection: &Connection) -> Result<Self> {
        Ok(Self {
            triggers: Triggers::install(connection)?,
            settings: KnownSettings::default(),
            has_dependencies: Cell::default(),
            next_due: NextDue::default(),
        })
    }

    /// Forgets what other connections may have changed, or a rollback has undone.
    fn forget(&self) {
        self.settings.forget();
        self.has_dependencies.set(None);
        self.next_due.forget();
    }

    fn begin(&self, connection: &Connection) -> Result<()> {
        if self.triggers.begin(connection)? {
            self.forget();
        }
        Ok(())
    }
}

impl Writer {
    pub(super) fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("a writer is used only while it is open")
    }

    /// Sets how commits sync, and reads the level back: one that SQLite did not accept is an error.
    pub(super) fn switch(&mut self, commit_sync: CommitSync) -> Result<()> {
        let connection = self.connection();
        connection.execute_batch(commit_sync.pragma())?;
        let level: i64 = connection.prepare_cached("PRAGMA synchronous")?.query_row([], |row| row.get(0))?;
        if level != commit_sync.level() {
            return Err(Error::Storage(format!("SQLite did not accept '{}': it says {level}", commit_sync.pragma())));
        }
        self.commit_sync = commit_sync;
        Ok(())
    }
}

impl Database {
    /// Runs `work` in a write transaction. The clock is read once the lock is held, never before.
    pub fn run_transaction(
        &self,
        commit_sync: CommitSync,
        clock: &Clock,
        wait: LockWait,
        work: &mut Work<'_>,
    ) -> Result<()> {
        let outcome = match self.begin(commit_sync, clock, wait, work) {
            Ok(Begun::Leading(writer)) => self.lead(writer, commit_sync, clock, work),
            Ok(Begun::Served(answer)) => answer,
            Err(error) => Err(error),
        };
        outcome.map_err(|error| self.about(error))
    }

    /// Runs this call's work, and that of threads that wait for the writer, in the transaction that was begun.
    fn lead(
        &self,
        mut writer: ExclusiveGuard<'_, Writer>,
        commit_sync: CommitSync,
        clock: &Clock,
        own: &mut Work<'_>,
    ) -> Result<()> {
        let (outcome, has_served) = self.transact(&writer, commit_sync, clock, own);
        writer.checked_at = outcome.is_ok().then(Instant::now);
        writer.turns.after_transaction();
        if let Err(Error::Io(_)) = &outcome {
            self.discard_connections(&mut writer);
        }
        if outcome.is_err() {
            writer.state.forget();
        }
        if has_served {
            writer.mark_served();
        }
        outcome
    }

    /// Waits for the writer and for the write lock, in slices. Between two slices neither is held, other threads get
    /// their turn, and the wait can be interrupted. The thread that has the writer may run this call's work with its
    /// own.
    fn begin(&self, commit_sync: CommitSync, clock: &Clock, wait: LockWait, work: &mut Work<'_>) -> Result<Begun<'_>> {
        let started = Instant::now();
        if let Some(writer) = self.writer.take(Duration::ZERO) {
            match self.try_to_begin(writer, commit_sync, wait.limit.min(WAIT_SLICE)) {
                Err(Error::Busy(_)) if !wait.limit.is_zero() => {}
                begun => return begun.map(Begun::Leading),
            }
        }
        // SAFETY: every return below has withdrawn the offer, or waited until it was done.
        let offer = unsafe { self.group_commit.offer(commit_sync, clock, work) };
        let mut is_taken = false;
        let mut has_warned = false;
        loop {
            let left = wait.limit.saturating_sub(started.elapsed());
            let slice = if is_taken { WAIT_SLICE } else { left.min(WAIT_SLICE) };
            let waited = Instant::now();
            let writer = self.writer.take_unless(slice, || offer.is_done());
            if offer.is_done() {
                return Ok(Begun::Served(offer.answer()));
            }
            let Some(writer) = writer else {
                // The leader that took the offer is about to run the work: neither the limit nor a signal can stop it.
                if !self.group_commit.withdraw(&offer) {
                    is_taken = true;
                    continue;
                }
                if left.is_zero() {
                    return Err(busy(&self.location, wait.limit));
                }
                self.warn_of_own_transaction(wait, started, &mut has_warned);
                self.check_can_continue(wait)?;
                self.group_commit.offer_again(&offer);
                continue;
            };
            // No other thread has the writer, so none has the offer. A leader that took it and panicked did not run it.
            self.group_commit.withdraw(&offer);
            match self.try_to_begin(writer, commit_sync, slice.saturating_sub(waited.elapsed())) {
                Err(Error::Busy(_)) if left.is_zero() => return Err(busy(&self.location, wait.limit)),
                Err(Error::Busy(_)) => {
                    self.warn_of_own_transaction(wait, started, &mut has_warned);
                    self.check_can_continue(wait)?;
                    self.group_commit.offer_again(&offer);
                }
                begun => return begun.map(Begun::Leading),
            }
        }
    }

    /// Between two slices: a signal handler may have raised, or forked. A forked child cannot use this database.
    pub(super) fn check_can_continue(&self, wait: LockWait) -> Result<()> {
        if (wait.interrupted)() {
            return Err(Error::Interrupted);
        }
        if self.is_of_this_process() {
            return Ok(());
        }
        Err(Error::Forked("a call that waits for other writers", "make it again in the child"))
    }

    fn try_to_begin<'a>(
        &self,
        mut writer: ExclusiveGuard<'a, Writer>,
        commit_sync: CommitSync,
        left: Duration,
    ) -> Result<ExclusiveGuard<'a, Writer>> {
        let started = Instant::now();
        writer.patience.set(left);
        // The commit checks in any case; this check avoids writing into a file that was removed.
        if let Location::File(path) = &self.location
            && writer.checked_at.is_none_or(|time| started.duration_since(time) > CHECK_VALID_FOR)
        {
            locks::check_file(path, self.identity.0, self.identity.1)?;
        }
        self.recover(&mut writer, left)?;
        if writer.commit_sync != commit_sync {
            writer.switch(commit_sync)?;
        }
        writer.patience.set(Duration::ZERO);
        let Writer { connection, turns, .. } = &mut *writer;
        let connection = connection.as_ref().expect("opened above");
        let file = matches!(self.location, Location::File(_)).then_some((self.identity.0, self.identity.1));
        let left = left.saturating_sub(started.elapsed());
        let begun = turns.wait(file, left, || run(connection, "BEGIN IMMEDIATE"));
        if let Err(Error::Io(_)) = &begun {
            self.discard_connections(&mut writer);
        }
        begun.map(|()| writer)
    }

    fn transact(
        &self,
        writer: &Writer,
        commit_sync: CommitSync,
        clock: &Clock,
        own: &mut Work<'_>,
    ) -> (Result<()>, bool) {
        let connection = writer.connection();
        let _guard = Rollback(connection);
        if let Err(error) = writer.state.begin(connection) {
            return (Err(error), false);
        }
        let tx = Transaction::writing(connection, self, clock.now(), &writer.state);
        self.group_commit.transact(&tx, commit_sync, clock, own, || {
            run(connection, "COMMIT").map_err(|error| match error {
                Error::Io(text) => {
                    Error::Io(format!("{text}; whether this change was written is unknown, look before you repeat it"))
                }
                other => other,
            })?;
            writer.state.triggers.committed(connection)?;
            self.check_files()?;
            self.checkpointer.after_commit(connection, commit_sync);
            Ok(())
        })
    }
}

/// How a write began.
enum Begun<'a> {
    /// This thread has the writer, and the transaction is open.
    Leading(ExclusiveGuard<'a, Writer>),
    /// Another thread has run the work, with this result.
    Served(Result<()>),
}

/// Rolls back an unfinished transaction, including after a panic.
pub(super) struct Rollback<'a>(pub(super) &'a Connection);

impl Drop for Rollback<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            // A rollback fails only when SQLite has already rolled back by itself.
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}

pub(super) fn run(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
