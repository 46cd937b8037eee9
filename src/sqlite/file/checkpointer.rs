//! Folding the log back into the database, beside the callers' way.
//!
//! SQLite by itself lets the commit that makes the log long do it, and that caller waits for two syncs. Here a native thread
//! does it on a connection of its own. While others write it cannot get to the end of the log, so a log that has become
//! long in spite of it is folded by the writer after all: little is left to do then, and the log starts anew.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Weak};
use std::time::Duration;

use rusqlite::Connection;

use super::open::WAL_BYTES_KEPT;
use super::{Database, Flush};
use crate::error::{Error, Result};
use crate::process::{Background, BackgroundThread};
use crate::sync::{Mutex, wait};

/// When the log is folded, in pages.
struct Lengths {
    /// The thread is asked each time the log has grown by so much.
    step: i32,
    /// From here on the writer does it.
    most: i32,
}

/// A short log is written over and over in the same place, which a sync has less to do for (20 % of a put); without syncs
/// a longer one saves more.
const SYNCED: Lengths = Lengths { step: 500, most: 1_000 };
const UNSYNCED: Lengths = Lengths { step: 1_000, most: 4_000 };

/// The log of one database.
pub struct Folding {
    /// Of the log, after the last commit of ours.
    pages: AtomicI32,
    /// What the thread was asked for last.
    asked_at: AtomicI32,
    is_asked: AtomicBool,
    connection: Mutex<Option<Connection>>,
    open: Box<dyn Fn() -> Result<Connection> + Send + Sync>,
    is_over: AtomicBool,
    /// A sync may have failed unseen by the writer.
    has_failed: AtomicBool,
}

impl Folding {
    pub fn new(open: impl Fn() -> Result<Connection> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            pages: AtomicI32::new(0),
            asked_at: AtomicI32::new(0),
            is_asked: AtomicBool::new(false),
            connection: Mutex::default(),
            open: Box::new(open),
            is_over: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        })
    }

    /// Lets the writer say how long the log is, instead of folding it in its commits.
    pub fn watch(self: &Arc<Self>, writer: &mut Connection) -> Result<()> {
        let folding = self.clone();
        writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            folding.pages.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(())
    }

    /// After a commit: asks the thread, or folds the log here if that was not enough.
    pub fn after_commit(self: &Arc<Self>, writer: &Connection, flush: Flush) {
        let Lengths { step, most } = if flush == Flush::Full { SYNCED } else { UNSYNCED };
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < step {
            self.asked_at.store(0, Ordering::Relaxed);
            return;
        }
        if pages >= most {
            // What was committed stays committed; a log that could not be folded is tried again at the next commit.
            let _ = self.fold(writer);
            self.asked_at.store(0, Ordering::Relaxed);
        } else if pages - self.asked_at.load(Ordering::Relaxed) >= step && !self.is_asked.swap(true, Ordering::SeqCst) {
            self.asked_at.store(pages, Ordering::Relaxed);
            if ask(self).is_err() {
                let _ = self.fold(writer);
                self.is_asked.store(false, Ordering::SeqCst);
            }
        }
    }

    /// Keeps the thread from folding until what this returns is dropped.
    pub fn pause(&self) -> impl Drop + '_ {
        let mut connection = self.connection.lock();
        connection.take();
        connection
    }

    /// Ends the thread's part in this database: it must not be the one that closes it.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.connection.lock().take();
    }

    fn run(&self) {
        let mut connection = self.connection.lock();
        self.is_asked.store(false, Ordering::SeqCst);
        if self.is_over.load(Ordering::SeqCst) {
            return;
        }
        if connection.is_none() {
            // The writer folds the log if nobody else can.
            *connection = (self.open)().ok();
        }
        if let Some(open) = &*connection
            && self.fold(open).is_err()
        {
            connection.take();
        }
    }

    fn fold(&self, connection: &Connection) -> Result<()> {
        let folded = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(Error::from);
        self.note(&folded);
        folded
    }

    /// Remembers an I/O error: the system tells a descriptor only once that a sync has failed, so the writer may never
    /// hear of it.
    pub fn note<T>(&self, folded: &Result<T>) {
        if let Err(Error::Io(_)) = folded {
            self.has_failed.store(true, Ordering::SeqCst);
        }
    }

    /// Whether there was such an error since the last question.
    pub fn has_failed(&self) -> bool {
        self.has_failed.swap(false, Ordering::SeqCst)
    }
}

impl Database {
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
}

/// The thread that folds the logs of this process.
#[derive(Default)]
struct Keeper {
    waiting: Mutex<Vec<Weak<Folding>>>,
    asked: Condvar,
}

static KEEPER: BackgroundThread<Keeper> = BackgroundThread::new();

fn ask(folding: &Arc<Folding>) -> Result<()> {
    if let Some(keeper) = KEEPER.get()?.here() {
        keeper.waiting.lock().push(Arc::downgrade(folding));
        keeper.asked.notify_one();
    }
    Ok(())
}

impl Background for Keeper {
    const THREAD_NAME: &'static str = "membox-queue-log";

    fn run(&self) {
        let mut waiting = self.waiting.lock();
        loop {
            match waiting.pop() {
                None => waiting = wait(&self.asked, waiting, None),
                Some(folding) => {
                    drop(waiting);
                    if let Some(folding) = folding.upgrade() {
                        folding.run();
                    }
                    waiting = self.waiting.lock();
                }
            }
        }
    }
}
