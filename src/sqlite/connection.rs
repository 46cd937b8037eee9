//! Connections: how a file is opened, one writer and its readers per file and process, transactions, waiting for locks.

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, Weak};
use std::time::{Duration, Instant};

use once_cell::sync::Lazy;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::checkpoint::Folding;
use super::joint::{Joint, Work};
use super::locks::{Holder, Kind, Obstacle, SignOfLife};
use super::place::Place;
use super::references::References;
use super::turns::Turns;
use super::{Transaction, locks, migrate};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::process;
use crate::store::{Flush, Wait};
use crate::sync::{Mutex, Seat, Taken};
use crate::wake::Bell;

/// Readers kept open beside the writer; more are opened when needed and closed after use.
const IDLE_READERS: usize = 4;
const KEPT_STATEMENTS: usize = 64;
/// After so long a wait others get their turn and signals are looked at.
const WAIT_SLICE: Duration = Duration::from_millis(100);
/// A call that has waited so long for another connection of its own process warns: it may well wait for its own caller.
const WARN_AFTER: Duration = Duration::from_secs(1);
/// Between two tries to empty the log.
const EMPTYING_PAUSE: Duration = Duration::from_millis(10);
/// How often the lock is asked for before the first sleep.
const SHORT_TRIES: i32 = 2;
/// So soon after a commit whose files were ours they are not looked at again before the next one.
const CHECKED_FOR: Duration = Duration::from_millis(100);
/// What a checkpointed WAL may keep of its size.
const WAL_BYTES_KEPT: i64 = 16 * 1024 * 1024;

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
struct Patience(Arc<AtomicU64>);

impl Patience {
    fn new(limit: Duration) -> Self {
        let patience = Self(Arc::default());
        patience.set(limit);
        patience
    }

    fn set(&self, limit: Duration) {
        self.0.store(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Short waits that grow and differ, so that writers neither sleep through a free lock nor march in step.
    fn handler(&self) -> impl FnMut(i32) -> bool + Send + 'static {
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

struct Writer {
    /// `None` after an I/O error: what the connection believes can no longer be trusted.
    connection: Option<Connection>,
    patience: Patience,
    flush: Flush,
    /// When the files were last found to be ours.
    checked_at: Option<Instant>,
    turns: Box<Turns>,
}

/// One file as this process has it open. All queues of the file share it.
pub struct Database {
    place: Place,
    writer: ManuallyDrop<Seat<Writer>>,
    readers: ManuallyDrop<Mutex<Readers>>,
    bell: Bell,
    folding: Arc<Folding>,
    joint: Joint,
    /// The heartbeat could not renew what this process holds, and tries again.
    waits_to_renew: AtomicBool,
    /// `Some(None)` where a dead process cannot be told from a silent one.
    sign: Mutex<Option<Option<Arc<SignOfLife>>>>,
    shape: migrate::Shape,
    mended: Vec<String>,
    references: References,
    identity: Identity,
    generation: u64,
}

#[derive(Default)]
struct Readers {
    idle: Vec<Connection>,
    /// Rises when all connections are given up: one that was in use then is not put back.
    epoch: u64,
}

impl Drop for Database {
    fn drop(&mut self) {
        // A child must not close what its parent has open: closing would write, and act on the parent's locks.
        if self.generation != process::generation() {
            return;
        }
        self.folding.end();
        // First, so that the file is really closed after its last connection.
        self.sign.lock().take();
        // SAFETY: dropped once, here. The writer goes last, so that it folds the WAL back.
        unsafe {
            ManuallyDrop::drop(&mut self.readers);
            ManuallyDrop::drop(&mut self.writer);
        }
        locks::sweep();
    }
}

/// Which file a path led to when it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity(u64, u64);

impl Identity {
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).ok().map(|file| Self(file.dev(), file.ino()))
    }

    #[cfg(not(unix))]
    fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|_| Self(0, 0))
    }
}

type Registry = HashMap<PathBuf, Weak<Database>>;
static OPEN: Lazy<Mutex<Registry>> = Lazy::new(Mutex::default);

/// Wakes everybody who waits in this process: time was changed, or it is time to leave.
#[cfg(feature = "python")]
pub fn ring_all() {
    let open = OPEN.lock().values().filter_map(Weak::upgrade).collect::<Vec<_>>();
    open.iter().for_each(|database| database.bell().ring());
}

/// The open databases, held over a fork.
pub struct OpenHold(MutexGuard<'static, Registry>);

impl OpenHold {
    pub fn take() -> Self {
        Self(OPEN.lock())
    }

    /// In the child none of them is open.
    pub fn leave_parents_databases(&mut self) {
        std::mem::forget(std::mem::take(&mut *self.0));
    }
}

impl Database {
    /// Opens a file, or joins this process's open one.
    pub fn open(place: Place, patience: Duration) -> Result<Arc<Self>> {
        let Place::File(path) = &place else {
            return Ok(Arc::new(Self::create(place, patience)?));
        };
        if let Some(database) = find(path) {
            return Ok(database);
        }
        let created = Self::create(place.clone(), patience).inspect_err(|_| locks::sweep());
        let database = Arc::new(created.map_err(|error| error.about(path))?);
        let mut open = OPEN.lock();
        // Another thread may have opened it meanwhile: one writer per file, so the second one goes.
        if let Some(first) = open.get(path).and_then(Weak::upgrade).filter(|first| first.is_current()) {
            drop(open);
            return Ok(first);
        }
        open.retain(|_, known| known.strong_count() > 0);
        open.insert(path.clone(), Arc::downgrade(&database));
        Ok(database)
    }

    fn create(place: Place, limit: Duration) -> Result<Self> {
        let patience = Patience::new(limit);
        let (mut connection, prepared) = open(&place, Making::IfMissing, &patience, limit)?;
        let identity = match &place {
            Place::Memory(_) => Identity(0, 0),
            Place::File(path) => {
                Identity::of(path).ok_or_else(|| Error::Storage("the file vanished while it was opened".into()))?
            }
        };
        let folding = folding(&place);
        folding.watch(&mut connection)?;
        let mut writer = Writer {
            connection: Some(connection),
            patience,
            flush: Flush::Full,
            checked_at: None,
            turns: Box::default(),
        };
        for flush in [Flush::Normal, Flush::Full] {
            writer.switch(flush)?;
        }
        Ok(Self {
            place,
            writer: ManuallyDrop::new(Seat::new(writer)),
            readers: ManuallyDrop::default(),
            bell: Bell::default(),
            folding,
            joint: Joint::default(),
            waits_to_renew: AtomicBool::new(false),
            sign: Mutex::default(),
            shape: prepared.shape,
            mended: prepared.mended,
            references: References::default(),
            identity,
            generation: process::generation(),
        })
    }

    #[cfg(test)]
    pub(super) fn joint(&self) -> &Joint {
        &self.joint
    }

    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// The file that commits are written to; `None` in memory.
    pub fn log_path(&self) -> Option<PathBuf> {
        match &self.place {
            Place::Memory(_) => None,
            Place::File(path) => {
                let mut log = path.clone().into_os_string();
                log.push("-wal");
                Some(log.into())
            }
        }
    }

    pub fn is_of_this_process(&self) -> bool {
        self.generation == process::generation()
    }

    /// What shows other processes that this one lives.
    pub fn sign_of_life(&self) -> Option<Arc<SignOfLife>> {
        if let Place::Memory(_) = &self.place {
            return None;
        }
        let mut sign = self.sign.lock();
        if let Some(given) = &*sign {
            return given.clone();
        }
        let given = self.new_sign();
        *sign = Some(given.clone());
        given
    }

    /// A sign that ends with its last owner, before the process does.
    pub fn new_sign(&self) -> Option<Arc<SignOfLife>> {
        if let Place::Memory(_) = &self.place {
            return None;
        }
        // Six bytes in SQLite's format, whatever is drawn.
        let number = (1 << 40) + (getrandom::u64().ok()? >> 24) as i64;
        SignOfLife::give(self.identity.0, self.identity.1, number).map(Arc::new)
    }

    /// Whether the process with this number lives, as far as can be told.
    pub fn is_alive(&self, holder: i64) -> bool {
        match &self.place {
            Place::Memory(_) => true,
            Place::File(_) => SignOfLife::is_seen(self.identity.0, self.identity.1, holder),
        }
    }

    /// Shows other processes that the heartbeat waits for another writer, or has done so.
    pub fn show_wait_to_renew(&self, waits: bool) {
        if self.waits_to_renew.swap(waits, Ordering::SeqCst) != waits
            && let Some(sign) = self.sign_of_life()
        {
            sign.show_wait_to_renew(waits);
        }
    }

    pub fn waits_to_renew_here(&self) -> bool {
        self.waits_to_renew.load(Ordering::SeqCst)
    }

    /// Whether the process with this number waits to renew what it holds.
    pub fn waits_to_renew(&self, holder: i64) -> bool {
        match &self.place {
            Place::Memory(_) => false,
            Place::File(_) => SignOfLife::waits_to_renew(self.identity.0, self.identity.1, holder),
        }
    }

    pub(super) fn shape(&self) -> migrate::Shape {
        self.shape
    }

    pub(super) fn references(&self) -> &References {
        &self.references
    }

    /// What was missing or altered in the file when it was opened, and was made anew.
    pub(super) fn mended(&self) -> &[String] {
        &self.mended
    }

    /// Whether the path still leads to the file that was opened.
    fn is_current(&self) -> bool {
        match &self.place {
            Place::Memory(_) => true,
            Place::File(path) => Identity::of(path) == Some(self.identity),
        }
    }

    /// Whoever waits for a file that was removed or replaced would wait for ever.
    pub fn check_is_there(&self) -> Result<()> {
        if self.is_current() {
            return Ok(());
        }
        let text = "the file was removed or replaced by somebody else while the queue was open, so there is nothing to \
                    wait for. Close the queue, and look at the file before you go on";
        Err(self.about(Error::Io(text.into())))
    }

    /// Runs `work` in a write transaction. The clock is read once the lock is held, never before.
    pub(super) fn run_transaction(&self, flush: Flush, clock: &Clock, wait: Wait, work: &mut Work<'_>) -> Result<()> {
        let outcome = match self.begin(flush, clock, wait, work) {
            Ok(Begun::Leading(writer)) => self.lead(writer, flush, clock, work),
            Ok(Begun::Served(answer)) => answer,
            Err(error) => Err(error),
        };
        outcome.map_err(|error| self.about(error))
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

    /// Warns once if the call has waited long for another connection of its own process: perhaps for its own caller.
    fn warn_of_own_transaction(&self, wait: Wait, started: Instant, has_warned: &mut bool) {
        if !*has_warned && started.elapsed() >= WARN_AFTER && self.is_held_up_by_this_process() {
            *has_warned = true;
            let why = why_busy(&self.place);
            let text = format!("has waited {WARN_AFTER:?} for the write lock, and goes on waiting: {why}");
            (wait.warn)(&self.about(Error::Busy(text)).to_string());
        }
    }

    /// Between two slices. A signal handler may have raised, or forked: in the child nothing of this database is left.
    fn may_go_on(&self, wait: Wait) -> Result<()> {
        if (wait.interrupted)() {
            return Err(Error::Interrupted);
        }
        if self.is_of_this_process() {
            return Ok(());
        }
        Err(Error::Forked("a call that waits for other writers", "make it again in the child"))
    }

    /// Whether a connection of this process that is not ours has an open write transaction.
    pub fn is_held_up_by_this_process(&self) -> bool {
        let Place::File(path) = &self.place else { return false };
        let own = Obstacle { holder: Holder::ThisProcess, kind: Kind::Writes };
        locks::obstacle(path) == Some(own)
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
    fn mend(&self, writer: &mut Writer, left: Duration) -> Result<()> {
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
        let tx = Transaction::new(connection, self, clock.now());
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

    /// What went to a file or a log that nobody will read is not acknowledged.
    fn check_files(&self) -> Result<()> {
        match &self.place {
            Place::File(path) => locks::check_files(path, self.identity.0, self.identity.1),
            Place::Memory(_) => Ok(()),
        }
    }

    /// Rewrites the file without the space that removed rows left, and empties the log. A reader can keep the log from
    /// being emptied, and the file from shrinking: it is waited for, with no lock in hand, and then left to later folds.
    pub fn compact(&self, wait: Wait) -> Result<()> {
        let started = Instant::now();
        self.vacuum(wait).map_err(|error| self.about(error))?;
        while !self.try_to_empty_log().map_err(|error| self.about(error))? && started.elapsed() < wait.limit {
            self.may_go_on(wait)?;
            std::thread::sleep(EMPTYING_PAUSE.min(wait.limit));
        }
        Ok(())
    }

    fn vacuum(&self, wait: Wait) -> Result<()> {
        let Some(mut writer) = self.writer.take(wait.limit) else { return Err(busy(&self.place, wait.limit)) };
        writer.patience.set(wait.limit);
        self.mend(&mut writer, wait.limit)?;
        let _alone = self.folding.pause();
        let vacuumed = writer.connection().execute_batch("VACUUM").map_err(Error::from);
        self.folding.note(&vacuumed);
        vacuumed.map_err(|error| match error {
            Error::Busy(_) => busy(&self.place, wait.limit),
            other => other,
        })
    }

    /// Says whether the log is empty now. Most is folded before the write lock is taken, and no reader is waited for with
    /// the lock in hand.
    fn try_to_empty_log(&self) -> Result<bool> {
        let Some(writer) = self.writer.take(Duration::ZERO) else { return Ok(false) };
        let Some(connection) = &writer.connection else { return Ok(false) };
        let _alone = self.folding.pause();
        writer.patience.set(Duration::ZERO);
        let is_busy = |how| connection.query_row(how, [], |row| row.get::<_, bool>(0)).map_err(Error::from);
        let folded = is_busy("PRAGMA wal_checkpoint(PASSIVE)").and_then(|_| is_busy("PRAGMA wal_checkpoint(TRUNCATE)"));
        self.folding.note(&folded);
        match folded {
            Err(Error::Busy(_)) => Ok(false),
            folded => folded.map(|is_busy| !is_busy),
        }
    }

    /// Folds the log back as far as readers allow, without waiting for anybody. One that has grown too long is cut: by
    /// itself it would be only when the next commits come.
    pub fn checkpoint(&self) -> Result<()> {
        let Some(writer) = self.writer.take(Duration::ZERO) else { return Ok(()) };
        if let (Some(log), Some(connection)) = (self.log_path(), &writer.connection) {
            let is_long = std::fs::metadata(log).is_ok_and(|file| file.len() > WAL_BYTES_KEPT.unsigned_abs());
            let how = if is_long { "PRAGMA wal_checkpoint(TRUNCATE)" } else { "PRAGMA wal_checkpoint(PASSIVE)" };
            // While the thread folds, SQLite would call the log busy and leave it as it is.
            let _alone = self.folding.pause();
            writer.patience.set(Duration::ZERO);
            let folded = connection.query_row(how, [], |_| Ok(())).map_err(Error::from);
            self.folding.note(&folded);
            folded?;
        }
        Ok(())
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

    /// Runs `look` on a connection beside the writer; it sees everything committed before the call.
    pub fn read<T>(&self, look: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        if let Place::Memory(_) = self.place {
            let writer = self.writer.take(Duration::MAX).expect("a wait without end ends with the writer");
            return look(writer.connection());
        }
        let lent = self.borrow_reader().map_err(|error| self.about(error))?;
        let value = look(&lent.connection).map_err(|error| self.about(error))?;
        self.take_back(lent);
        Ok(value)
    }

    /// A connection beside the writer for somebody who watches; `None` in memory, where nobody else writes.
    pub fn lend(&self) -> Result<Option<Lent>> {
        match &self.place {
            Place::Memory(_) => Ok(None),
            Place::File(_) => self.borrow_reader().map(Some).map_err(|error| self.about(error)),
        }
    }

    fn borrow_reader(&self) -> Result<Lent> {
        let (idle, epoch) = {
            let mut readers = self.readers.lock();
            (readers.idle.pop(), readers.epoch)
        };
        let connection = idle.map_or_else(|| self.reader(), Ok)?;
        Ok(Lent { connection, epoch })
    }

    pub fn take_back(&self, lent: Lent) {
        let mut readers = self.readers.lock();
        if readers.epoch != lent.epoch {
            abandon(lent.connection);
        } else if readers.idle.len() < IDLE_READERS {
            readers.idle.push(lent.connection);
        }
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    fn reader(&self) -> Result<Connection> {
        let reader = connect(&self.place, Making::Existing, &Patience::new(Duration::from_secs(30)))?;
        reader.execute_batch("PRAGMA query_only = ON")?;
        Ok(reader)
    }

    pub(super) fn about(&self, error: Error) -> Error {
        match &self.place {
            Place::Memory(_) => error,
            Place::File(path) => error.about(path),
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

/// A connection in somebody's hands.
pub struct Lent {
    connection: Connection,
    epoch: u64,
}

impl Lent {
    /// Changes whenever another connection has committed.
    pub fn data_version(&self) -> Result<i64> {
        let mut statement = self.connection.prepare_cached("PRAGMA data_version")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }
}

impl Writer {
    fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("a writer is used only while it is open")
    }

    /// Sets how commits sync, and reads it back: a level that did not take is an error, not a surprise.
    fn switch(&mut self, flush: Flush) -> Result<()> {
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

/// Closes a connection without the checkpoint that could write what it only believes.
fn abandon(connection: Connection) {
    // Only makes the close gentler; the connection is dropped either way.
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
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

fn busy(place: &Place, limit: Duration) -> Error {
    Error::Busy(format!("waited {limit:?} for the write lock, and nothing was changed: {}", why_busy(place)))
}

/// What keeps us waiting, as far as the system tells.
fn why_busy(place: &Place) -> String {
    let obstacle = match place {
        Place::File(path) => locks::obstacle(path),
        Place::Memory(_) => None,
    };
    match obstacle {
        None | Some(Obstacle { holder: Holder::Unknown, kind: Kind::Writes }) => {
            "another connection or thread has an open transaction; if it is yours, commit it or roll it back before \
             calling the queue"
                .to_owned()
        }
        Some(Obstacle { holder, kind }) => {
            let is_here = holder == Holder::ThisProcess;
            let who = match holder {
                Holder::ThisProcess => {
                    "another connection of this very process (your own sqlite3, SQLAlchemy, …)".into()
                }
                Holder::Process(pid) => format!("process {pid}"),
                Holder::Unknown => "another connection".into(),
            };
            let what = match kind {
                Kind::Writes if is_here => {
                    "has an open write transaction; commit it or roll it back before calling the queue, which would \
                     otherwise wait for you"
                }
                Kind::Writes => "has an open write transaction",
                Kind::Reads => {
                    "reads the file, which is not in WAL mode yet and can be switched to it only while no other \
                     connection reads; finish its cursor or transaction, and open the queue again"
                }
                Kind::Excludes => {
                    "keeps the file for itself alone (PRAGMA locking_mode=EXCLUSIVE, or an exclusive transaction); close \
                     it, or let it use the normal locking mode"
                }
            };
            format!("{who} {what}")
        }
    }
}

/// This process's open database of that path, if the path still leads to the same file.
fn find(path: &Path) -> Option<Arc<Database>> {
    let known = OPEN.lock().get(path)?.upgrade();
    known.filter(|database| database.is_current())
}

/// What folds the log of a database back.
fn folding(place: &Place) -> Arc<Folding> {
    let place = place.clone();
    Folding::new(move || connect(&place, Making::Existing, &Patience::new(Duration::ZERO)))
}

/// A connection to a file that is known to have our tables.
fn open(
    place: &Place,
    making: Making,
    patience: &Patience,
    limit: Duration,
) -> Result<(Connection, migrate::Prepared)> {
    // Told while the connection is open: without it the locks of others cannot be asked for.
    let tell = |error| match error {
        Error::Busy(_) => busy(place, limit),
        other => other,
    };
    let mut connection = connect(place, making, patience).map_err(tell)?;
    let prepared = migrate::prepare(&mut connection, place, limit).map_err(tell)?;
    Ok((connection, prepared))
}

/// Whether a file that is not there may be made. Only the first open of a queue makes one: a file that vanished under
/// an open queue is an error, not an empty queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Making {
    IfMissing,
    Existing,
}

/// Whether a file that exists has a queue in it, ours or membox's. Nothing is written.
pub fn has_queue(path: &Path) -> Result<bool> {
    let place = Place::resolve(path)?;
    let found = connect(&place, Making::Existing, &Patience::new(Duration::from_secs(30)));
    let found = found.and_then(|connection| migrate::has_queue(&connection));
    locks::sweep();
    found.map_err(|error| error.about(path))
}

/// Every connection of this crate is opened here, but for the target of a backup.
fn connect(place: &Place, making: Making, patience: &Patience) -> Result<Connection> {
    let mut flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, making == Making::IfMissing);
    locks::install()?;
    let mut connection = match place {
        Place::Memory(_) => Connection::open_in_memory_with_flags(flags)?,
        Place::File(path) => {
            // SQLite treats a one-byte file as empty and would overwrite it.
            if std::fs::metadata(path).is_ok_and(|file| file.len() == 1) {
                return Err(Error::NotADatabase(
                    "the file has one byte and is not a database; it was left as it is".into(),
                ));
            }
            check_log_has_file(path, making)?;
            if locks::is_hard_linked(path) {
                return Err(Error::Storage(
                    "the file has several names (hard links), and each would have a log of its own; use one name, or a \
                     symbolic link"
                        .into(),
                ));
            }
            if locks::is_mounted(path) {
                return Err(Error::Storage(
                    "the file itself is mounted here (a bind mount, as `docker -v FILE:FILE` makes one), so it has \
                     another name elsewhere, and each would have a log of its own; mount its directory instead"
                        .into(),
                ));
            }
            let connection = Connection::open_with_flags(path, flags).map_err(|error| cannot_open(path, error))?;
            locks::check_shareable(path)?;
            if connection.is_readonly("main")? {
                return Err(Error::ReadOnly("the file cannot be written; check its permissions".into()));
            }
            connection
        }
    };
    connection.busy_handler(Some(patience.handler()))?;
    // The log is folded back by `checkpoint.rs`, not by whoever happens to commit.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
    // Without it SQLite plans a cached statement anew whenever a value is bound: 100 µs a claim.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A damaged or hostile file: pages are looked over when they are read, and its schema is not trusted.
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    // As SQLite has it by default: a delete of ours must not reach into other tables. See `references.rs`.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
    Ok(connection)
}

/// A database is there, and not empty, once it has a log; SQLite would take it for a new one and remove the log. The log
/// is looked at first: another process may be making both right now, and makes the file before its log.
fn check_log_has_file(path: &Path, making: Making) -> Result<()> {
    let mut log = path.to_owned().into_os_string();
    log.push("-wal");
    if !std::fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return Ok(());
    }
    match std::fs::metadata(path) {
        Ok(file) if file.len() == 0 => Err(Error::Corrupt(
            "the file is empty, but its log (-wal) is not; restore a backup, nothing was changed".into(),
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && making == Making::IfMissing => {
            Err(Error::Storage(
                "the file is missing, but its log (-wal) is there and may hold acknowledged items: the file was moved or \
                 removed alone. Put it back beside its log; to begin anew, move the log away. Nothing was changed"
                    .into(),
            ))
        }
        _ => Ok(()),
    }
}

/// A file that cannot be opened because its directory cannot be written is a matter of permissions.
fn cannot_open(path: &Path, error: rusqlite::Error) -> Error {
    let directory = path.parent().unwrap_or(Path::new("/"));
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::CannotOpen)
            if !path.exists() && directory.exists() && locks::is_writable(directory) =>
        {
            Error::Storage("the file is gone: it was moved or deleted while the queue was open".into())
        }
        Some(rusqlite::ErrorCode::CannotOpen) if path.exists() && !locks::is_writable(path) => {
            Error::ReadOnly(format!("the file cannot be written ({error}); check its permissions"))
        }
        Some(rusqlite::ErrorCode::CannotOpen) if !locks::is_writable(directory) => {
            Error::ReadOnly(format!("the directory cannot be written ({error}); check its permissions"))
        }
        _ => error.into(),
    }
}
