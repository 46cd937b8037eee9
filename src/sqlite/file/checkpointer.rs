//! Checkpoints: a background thread copies the WAL back into the database, so that callers do not wait for it.
//!
//! By default SQLite checkpoints in the commit that makes the WAL long, and that caller waits for two syncs. Here a
//! native thread does it on its own connection. While other connections write, it cannot reach the end of the WAL. A
//! WAL that has become long in spite of it is therefore checkpointed by the writer: little is left to copy then, and
//! the WAL restarts.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Weak};
use std::time::Duration;

use rusqlite::Connection;

use super::Database;
use super::open::WAL_BYTES_KEPT;
use crate::error::{Error, Result};
use crate::process::{Background, BackgroundThread};
use crate::store::CommitSync;
use crate::sync::{Mutex, wait};

/// WAL lengths at which a checkpoint runs, in pages.
struct Thresholds {
    /// The thread is asked each time the WAL has grown by this much.
    thread: i32,
    /// At this length the writer does it.
    writer: i32,
}

/// A short WAL is overwritten in the same place, which makes a sync cheaper (20 % of an enqueue). Without syncs a
/// longer one saves more.
const SYNCED: Thresholds = Thresholds { thread: 500, writer: 1_000 };
const UNSYNCED: Thresholds = Thresholds { thread: 1_000, writer: 4_000 };

/// Checkpoints the WAL of one database.
pub struct Checkpointer {
    /// Length of the WAL after our last commit.
    pages: AtomicI32,
    /// Length of the WAL when the thread was asked last.
    asked_at: AtomicI32,
    is_asked: AtomicBool,
    connection: Mutex<Option<Connection>>,
    open: Box<dyn Fn() -> Result<Connection> + Send + Sync>,
    is_closed: AtomicBool,
    /// A sync may have failed without the writer having seen it.
    has_failed: AtomicBool,
}

impl Checkpointer {
    pub fn new(open: impl Fn() -> Result<Connection> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            pages: AtomicI32::new(0),
            asked_at: AtomicI32::new(0),
            is_asked: AtomicBool::new(false),
            connection: Mutex::default(),
            open: Box::new(open),
            is_closed: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        })
    }

    /// Makes each commit of the writer report the length of the WAL, instead of checkpointing it.
    pub fn watch(self: &Arc<Self>, writer: &mut Connection) -> Result<()> {
        let checkpointer = self.clone();
        writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            checkpointer.pages.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(())
    }

    /// After a commit: asks the thread for a checkpoint, or runs one here if the thread did not keep up.
    pub fn after_commit(self: &Arc<Self>, writer: &Connection, commit_sync: CommitSync) {
        let Thresholds { thread, writer: longest } = if commit_sync == CommitSync::Full { SYNCED } else { UNSYNCED };
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < thread {
            self.asked_at.store(0, Ordering::Relaxed);
            return;
        }
        if pages >= longest {
            // An error does not concern the commit, which is done. The next commit tries again.
            let _ = self.run_checkpoint(writer);
            self.asked_at.store(0, Ordering::Relaxed);
        } else if pages - self.asked_at.load(Ordering::Relaxed) >= thread && !self.is_asked.swap(true, Ordering::SeqCst)
        {
            self.asked_at.store(pages, Ordering::Relaxed);
            if ask(self).is_err() {
                let _ = self.run_checkpoint(writer);
                self.is_asked.store(false, Ordering::SeqCst);
            }
        }
    }

    /// Keeps the thread from checkpointing until the returned guard is dropped.
    pub fn pause(&self) -> impl Drop + '_ {
        let mut connection = self.connection.lock();
        connection.take();
        connection
    }

    /// Closes the thread's connection: the thread must not be the last to close the database.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.connection.lock().take();
    }

    fn run(&self) {
        let mut connection = self.connection.lock();
        self.is_asked.store(false, Ordering::SeqCst);
        if self.is_closed.load(Ordering::SeqCst) {
            return;
        }
        if connection.is_none() {
            // If it cannot be opened, the writer runs the checkpoint.
            *connection = (self.open)().ok();
        }
        if let Some(open) = &*connection
            && self.run_checkpoint(open).is_err()
        {
            connection.take();
        }
    }

    fn run_checkpoint(&self, connection: &Connection) -> Result<()> {
        let result = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(Error::from);
        self.mark_failure(&result);
        result
    }

    /// Remembers an I/O error. The system reports a failed sync to a descriptor only once, so the writer may never see
    /// it.
    pub fn mark_failure<T>(&self, result: &Result<T>) {
        if let Err(Error::Io(_)) = result {
            self.has_failed.store(true, Ordering::SeqCst);
        }
    }

    /// Returns whether such an error was remembered since the last call.
    pub fn take_failure(&self) -> bool {
        self.has_failed.swap(false, Ordering::SeqCst)
    }
}

impl Database {
    /// Checkpoints as far as readers allow, without waiting for any connection. A WAL that has grown too long is
    /// truncated: SQLite would truncate it only at a later commit.
    pub fn checkpoint(&self) -> Result<()> {
        let Some(writer) = self.writer.take(Duration::ZERO) else { return Ok(()) };
        if let (Some(wal), Some(connection)) = (self.wal_path(), &writer.connection) {
            let is_long = std::fs::metadata(wal).is_ok_and(|file| file.len() > WAL_BYTES_KEPT.unsigned_abs());
            let how = if is_long { "PRAGMA wal_checkpoint(TRUNCATE)" } else { "PRAGMA wal_checkpoint(PASSIVE)" };
            // While the thread runs a checkpoint, SQLite would report the WAL as busy and do nothing.
            let _alone = self.checkpointer.pause();
            writer.patience.set(Duration::ZERO);
            let result = connection.query_row(how, [], |_| Ok(())).map_err(Error::from);
            self.checkpointer.mark_failure(&result);
            result?;
        }
        Ok(())
    }
}

/// The thread that runs the checkpoints of this process.
#[derive(Default)]
struct CheckpointThread {
    waiting: Mutex<Vec<Weak<Checkpointer>>>,
    asked: Condvar,
}

static THREAD: BackgroundThread<CheckpointThread> = BackgroundThread::new();

fn ask(checkpointer: &Arc<Checkpointer>) -> Result<()> {
    if let Some(thread) = THREAD.get()?.here() {
        thread.waiting.lock().push(Arc::downgrade(checkpointer));
        thread.asked.notify_one();
    }
    Ok(())
}

impl Background for CheckpointThread {
    const THREAD_NAME: &'static str = "membox-queue-log";

    fn run(&self) {
        let mut waiting = self.waiting.lock();
        loop {
            match waiting.pop() {
                None => waiting = wait(&self.asked, waiting, None),
                Some(checkpointer) => {
                    drop(waiting);
                    if let Some(checkpointer) = checkpointer.upgrade() {
                        checkpointer.run();
                    }
                    waiting = self.waiting.lock();
                }
            }
        }
    }
}
