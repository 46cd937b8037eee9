//! Group commit: threads that wait for the writer hand their work to whoever has it, and share one transaction and one
//! sync. Each has a savepoint and an answer of its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;

use super::Tx;
use super::connection::{Flush, run};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::sync::Mutex;

/// How many share one transaction.
const MOST: usize = 64;

/// What a thread wants done in a transaction; the value it makes is left in the thread's own hands.
pub type Work<'a> = dyn FnMut(&Tx) -> Result<()> + Send + 'a;

/// Work that waits for somebody to do it.
pub struct Ticket {
    /// On the stack of the thread that waits; see [`Joint::offer`].
    work: *mut Work<'static>,
    flush: Flush,
    clock: Clock,
    answer: Mutex<Option<Result<()>>>,
    is_done: AtomicBool,
}

// SAFETY: the work is `Send`, and used by one thread at a time: by whoever took the ticket, while its owner waits.
unsafe impl Send for Ticket {}
unsafe impl Sync for Ticket {}

impl Ticket {
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::SeqCst)
    }

    /// What came of it, once it is done.
    pub fn answer(&self) -> Result<()> {
        self.answer.lock().take().unwrap_or_else(|| Err(Error::Storage("a shared transaction gave no answer".into())))
    }

    fn run(&self, tx: &Tx) -> Result<()> {
        // SAFETY: the owner does not leave before the ticket is done, and nobody else has it.
        let work = unsafe { &mut *self.work };
        // A panic of one must not take the others along.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(tx)));
        done.unwrap_or_else(|_| {
            Err(Error::Storage("a panic in a shared transaction; see the log of the process".into()))
        })
    }

    fn settle(&self, answer: Result<()>) {
        *self.answer.lock() = Some(answer);
        self.is_done.store(true, Ordering::SeqCst);
    }
}

/// The tickets of one database.
#[derive(Default)]
pub struct Joint {
    waiting: Mutex<VecDeque<Arc<Ticket>>>,
}

impl Joint {
    /// Offers work to whoever has the writer.
    ///
    /// # Safety
    /// The caller must not return, nor touch the work, before the ticket is done or `withdraw` said that nobody took it.
    pub unsafe fn offer(&self, flush: Flush, clock: &Clock, work: &mut Work<'_>) -> Arc<Ticket> {
        // SAFETY: only the lifetime is changed; the caller promises to outlive the ticket.
        let work = unsafe { std::mem::transmute::<*mut Work<'_>, *mut Work<'static>>(work) };
        let ticket = Arc::new(Ticket {
            work,
            flush,
            clock: clock.clone(),
            answer: Mutex::default(),
            is_done: AtomicBool::new(false),
        });
        self.waiting.lock().push_back(ticket.clone());
        ticket
    }

    /// Takes an offer back. Says whether nobody had taken it.
    pub fn withdraw(&self, ticket: &Arc<Ticket>) -> bool {
        let mut waiting = self.waiting.lock();
        let before = waiting.len();
        waiting.retain(|other| !Arc::ptr_eq(other, ticket));
        waiting.len() < before
    }

    /// Offers again what was withdrawn; the promise of `offer` holds on.
    pub fn put_back(&self, ticket: &Arc<Ticket>) {
        self.waiting.lock().push_back(ticket.clone());
    }

    /// Takes what may share a transaction: the same clock, and the same wait for the disk.
    fn take(&self, flush: Flush, clock: &Clock) -> Vec<Arc<Ticket>> {
        let mut waiting = self.waiting.lock();
        if waiting.is_empty() {
            return Vec::new();
        }
        let mut taken = Vec::new();
        waiting.retain(|ticket| {
            let fits = taken.len() < MOST && ticket.flush == flush && ticket.clock.is_same(clock);
            if fits {
                taken.push(ticket.clone());
            }
            !fits
        });
        taken
    }

    /// Runs the caller's own work and whatever fits beside it, then commits. Says whether others were served.
    pub fn transact(
        &self,
        tx: &Tx,
        flush: Flush,
        clock: &Clock,
        own: &mut Work<'_>,
        commit: impl FnOnce() -> Result<()>,
    ) -> (Result<()>, bool) {
        let tickets = self.take(flush, clock);
        if tickets.is_empty() {
            return (own(tx).and_then(|()| commit()), false);
        }
        let connection = tx.connection;
        let mut answers = vec![in_savepoint(connection, || own(tx))];
        answers.extend(tickets.iter().map(|ticket| in_savepoint(connection, || ticket.run(tx))));
        // SQLite may have given up the whole transaction: then nothing of it is left, whoever caused it.
        let gone = connection
            .is_autocommit()
            .then(|| answers.iter().find_map(|answer| answer.as_ref().err().cloned()).unwrap_or_else(lost_transaction));
        let committed = match gone {
            Some(error) => Err(error),
            None if answers.iter().all(Result::is_err) => Ok(()),
            None => commit(),
        };
        if let Err(error) = committed {
            answers.iter_mut().filter(|answer| answer.is_ok()).for_each(|answer| *answer = Err(error.clone()));
        }
        let mut answers = answers.into_iter();
        let mine = answers.next().unwrap_or_else(|| Err(lost_transaction()));
        for (ticket, answer) in tickets.iter().zip(answers) {
            ticket.settle(answer);
        }
        (mine, true)
    }
}

fn lost_transaction() -> Error {
    Error::Storage("SQLite ended the transaction by itself; nothing was changed".into())
}

fn in_savepoint(connection: &Connection, work: impl FnOnce() -> Result<()>) -> Result<()> {
    if connection.is_autocommit() {
        return Err(lost_transaction());
    }
    run(connection, "SAVEPOINT joint")?;
    let answer = work();
    if connection.is_autocommit() {
        return answer.and(Err(lost_transaction()));
    }
    if answer.is_err() {
        run(connection, "ROLLBACK TO joint")?;
    }
    run(connection, "RELEASE joint")?;
    answer
}
