//! The one writer of a file in this process: waiting for it and for the write lock, transactions, mending after I/O errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::{Tx, locks};
use super::busy::busy;
use super::group_commit::Work;
use super::open::{Making, open};
use super::readers::abandon;
use super::turns::Turns;
use super::{Database, Place};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::sync::Taken;

/// After so long a wait others get their turn and signals are looked at.
const WAIT_SLICE: Duration = Duration::from_millis(100);
/// How often the lock is asked for before the first sleep.
const SHORT_TRIES: i32 = 2;
/// So soon after a commit whose files were ours they are not looked at again before the next one.
const CHECKED_FOR: Duration = Duration::from_millis(100);

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// The disk: what is acknowledged survives a power cut.
    Full,
    /// The operating system: survives the process, and a power cut rolls back the last commits.
    Normal,
}

impl Flush {
    fn pragma(self) -> &'static str {
        match self {
            Flush::Full => "PRAGMA synchronous = FULL",
            Flush::Normal => "PRAGMA synchronous = NORMAL",
        }
    }

    fn level(self) -> i64 {
        match self {
            Flush::Full => 2,
            Flush::Normal => 1,
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

    /// Short waits that grow and differ, so that writers neither sleep through a free lock nor march in step.
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
            if tries < SHORT_TRIES {
                std::thread::yield_now();
                return true;
            }
            let longest = 2000u64 << (tries - SHORT_TRIES).clamp(0, 2);
            let dice = u64::from(getrandom::u32().unwrap_or(0));
            std::thread::sleep(Duration::from_micros(longest / 2 + dice % (longest / 2 + 1)));
            true
        }
    }
}

pub(super) struct Writer {
    /// `None` after an I/O error: what the connection believes can no longer be trusted.
    pub(super) connection: Option<Connection>,
    pub(super) patience: Patience,
    pub(super) flush: Flush,
    /// When the files were last found to be ours.
    pub(super) checked_at: Option<Instant>,
    pub(super) turns: Box<Turns>,
}

/// How long a call waits for other writers, and what may end the wait.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    pub limit: Duration,
    /// Asked between two slices, without any lock held.
    pub interrupted: fn() -> bool,
    /// Told between two slices what people should know.
    pub warn: fn(&str),
}

impl Wait {
    /// A wait that only time ends.
    pub fn up_to(limit: Duration) -> Self {
        Self { limit, interrupted: || false, warn: |_| {} }
    }
}

impl Writer {
    pub(super) fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("a writer is used only while it is open")
    }

    /// Sets how commits sync, and reads it back: a level that did not take is an error, not a surprise.
    pub(super) fn switch(&mut self, flush: Flush) -> Result<()> {
        let connection = self.connection();
        connection.execute_batch(flush.pragma())?;
        let level: i64 = connection.prepare_cached("PRAGMA synchronous")?.query_row([], |row| row.get(0))?;
        if level != flush.level() {
            return Err(Error::Storage(format!("SQLite did not accept '{}': it says {level}", flush.pragma())));
        }
        self.flush = flush;
        Ok(())
    }
}

impl Database {
    /// Runs `work` in a write transaction. The clock is read once the lock is held, never before.
    pub fn write<T: Send>(
        &self,
        flush: Flush,
        clock: &Clock,
        wait: Wait,
        work: impl FnOnce(&Tx) -> Result<T> + Send,
    ) -> Result<T> {
        let mut work = Some(work);
        let mut value = None;
        let mut own = |tx: &Tx| {
            let work = work.take().ok_or_else(|| Error::Storage("work was asked for twice".into()))?;
            value = Some(work(tx)?);
            Ok(())
        };
        let outcome = match self.begin(flush, clock, wait, &mut own) {
            Ok(Begun::Leading(writer)) => self.lead(writer, flush, clock, &mut own),
            Ok(Begun::Served(answer)) => answer,
            Err(error) => Err(error),
        };
        outcome.map_err(|error| self.about(error))?;
        value.ok_or_else(|| Error::Storage("a transaction gave no value".into()))
    }

    /// Runs our own work, and that of others who wait, in the transaction that was begun.
    fn lead(&self, mut writer: Taken<'_, Writer>, flush: Flush, clock: &Clock, own: &mut Work<'_>) -> Result<()> {
        let (outcome, has_served) = self.transact(&writer, flush, clock, own);
        writer.checked_at = outcome.is_ok().then(Instant::now);
        writer.turns.after_transaction();
        if let Err(Error::Io(_)) = &outcome {
            self.give_up_connections(&mut writer);
        }
        if has_served {
            writer.note_served();
        }
        outcome
    }

    /// Waits for the writer and for the write lock, in slices: between two of them neither is held, others get their
    /// turn, and the wait can be interrupted. Whoever has the writer meanwhile may do our work along with its own.
    fn begin(&self, flush: Flush, clock: &Clock, wait: Wait, work: &mut Work<'_>) -> Result<Begun<'_>> {
        let started = Instant::now();
        if let Some(writer) = self.writer.take(Duration::ZERO) {
            match self.try_to_begin(writer, flush, wait.limit.min(WAIT_SLICE)) {
                Err(Error::Busy(_)) if !wait.limit.is_zero() => {}
                begun => return begun.map(Begun::Leading),
            }
        }
        // SAFETY: every way out of here has withdrawn the ticket, or waited until it was done.
        let ticket = unsafe { self.joint.offer(flush, clock, work) };
        let mut is_taken = false;
        let mut has_warned = false;
        loop {
            let left = wait.limit.saturating_sub(started.elapsed());
            let slice = if is_taken { WAIT_SLICE } else { left.min(WAIT_SLICE) };
            let waited = Instant::now();
            let writer = self.writer.take_unless(slice, || ticket.is_done());
            if ticket.is_done() {
                return Ok(Begun::Served(ticket.answer()));
            }
            let Some(writer) = writer else {
                // Who has taken the ticket is about to do the work: then neither time nor a signal can stop it.
                if !self.joint.withdraw(&ticket) {
                    is_taken = true;
                    continue;
                }
                if left.is_zero() {
                    return Err(busy(&self.place, wait.limit));
                }
                self.warn_of_own_transaction(wait, started, &mut has_warned);
                self.may_go_on(wait)?;
                self.joint.put_back(&ticket);
                continue;
            };
            // Nobody else has the writer, so nobody has the ticket; one who took it and panicked has not come to it.
            self.joint.withdraw(&ticket);
            match self.try_to_begin(writer, flush, slice.saturating_sub(waited.elapsed())) {
                Err(Error::Busy(_)) if left.is_zero() => return Err(busy(&self.place, wait.limit)),
                Err(Error::Busy(_)) => {
                    self.warn_of_own_transaction(wait, started, &mut has_warned);
                    self.may_go_on(wait)?;
                    self.joint.put_back(&ticket);
                }
                begun => return begun.map(Begun::Leading),
            }
        }
    }

    /// Between two slices. A signal handler may have raised, or forked: in the child nothing of this database is left.
    pub(super) fn may_go_on(&self, wait: Wait) -> Result<()> {
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
        mut writer: Taken<'a, Writer>,
        flush: Flush,
        left: Duration,
    ) -> Result<Taken<'a, Writer>> {
        let started = Instant::now();
        writer.patience.set(left);
        // The commit is checked in any case; this only keeps us from writing into a file that nobody will read.
        if let Place::File(path) = &self.place
            && writer.checked_at.is_none_or(|time| started.duration_since(time) > CHECKED_FOR)
        {
            locks::check_file(path, self.identity.0, self.identity.1)?;
        }
        self.mend(&mut writer, left)?;
        if writer.flush != flush {
            writer.switch(flush)?;
        }
        writer.patience.set(Duration::ZERO);
        let Writer { connection, turns, .. } = &mut *writer;
        let connection = connection.as_ref().expect("opened above");
        let file = matches!(self.place, Place::File(_)).then_some((self.identity.0, self.identity.1));
        let left = left.saturating_sub(started.elapsed());
        let begun = turns.wait(file, left, || run(connection, "BEGIN IMMEDIATE"));
        if let Err(Error::Io(_)) = &begun {
            self.give_up_connections(&mut writer);
        }
        begun.map(|()| writer)
    }

    /// After an I/O error: a fresh connection, and a log that can be trusted.
    pub(super) fn mend(&self, writer: &mut Writer, left: Duration) -> Result<()> {
        if self.folding.has_failed() {
            self.give_up_connections(writer);
        }
        if writer.connection.is_none() {
            let (mut connection, _) = open(&self.place, Making::Existing, &writer.patience, left)?;
            self.write_log_again(&connection)?;
            self.folding.watch(&mut connection)?;
            writer.connection = Some(connection);
            writer.flush = Flush::Full;
        }
        Ok(())
    }

    /// After an I/O error the log may have a hole that only the page cache hides: the system takes pages for written whose
    /// sync failed. What is acknowledged next must not stand behind one, so the log is written over itself and synced.
    ///
    /// That is enough, and the log need not start anew, which a reader could prevent for ever. A power cut leaves the file
    /// as of the last time the log started, synced then, with any of the pages that were folded since; recovery takes all
    /// of these from the log, which is whole. What the failed call wrote behind the last commit is written over by the
    /// next. A fold whose sync failed does not count as done, and is done again.
    fn write_log_again(&self, connection: &Connection) -> Result<()> {
        let Some(log) = self.log_path() else { return Ok(()) };
        run(connection, "BEGIN IMMEDIATE")?;
        // No other connection writes to the log, or cuts it, while the lock is ours.
        let _guard = Rollback(connection);
        locks::write_log_again(&log)
    }

    fn transact(&self, writer: &Writer, flush: Flush, clock: &Clock, own: &mut Work<'_>) -> (Result<()>, bool) {
        let connection = writer.connection();
        let _guard = Rollback(connection);
        let tx = Tx::new(connection, clock.now(), self.shape, &self.references);
        self.joint.transact(&tx, flush, clock, own, || {
            run(connection, "COMMIT").map_err(|error| match error {
                Error::Io(text) => {
                    Error::Io(format!("{text}; whether this change was written is unknown, look before you repeat it"))
                }
                other => other,
            })?;
            self.check_files()?;
            self.folding.after_commit(connection, flush);
            Ok(())
        })
    }

    /// After an I/O error pages in memory and on disk may differ, and a log that was replaced is nobody's: the next
    /// call opens fresh connections.
    fn give_up_connections(&self, writer: &mut Writer) {
        if let Place::File(_) = self.place {
            let mut readers = self.readers.lock();
            readers.epoch += 1;
            drop(self.folding.pause());
            writer.connection.take().into_iter().chain(readers.idle.drain(..)).for_each(abandon);
        }
    }
}

/// How a write began.
enum Begun<'a> {
    /// The writer is ours, and the transaction is open.
    Leading(Taken<'a, Writer>),
    /// Somebody else has done our work.
    Served(Result<()>),
}

/// Undoes an unfinished transaction, also when the work panicked.
struct Rollback<'a>(&'a Connection);

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
