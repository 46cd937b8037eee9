//! Group commit: threads that wait for the writer hand their work to whoever has it, and share one transaction and one
//! sync. Each has a savepoint and an answer of its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;

use super::super::Tx;
use super::Flush;
use super::writer::run;
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
        let error_of = |is_meant: fn(&Error) -> bool| {
            answers.iter().find_map(|answer| answer.as_ref().err().filter(|error| is_meant(error)).cloned())
        };
        // After an I/O error nothing the connection holds can be trusted; and SQLite may have given up the whole transaction:
        // then nothing of it is left, whoever caused it.
        let broken = error_of(|error| matches!(error, Error::Io(_)));
        let gone = connection.is_autocommit().then(|| error_of(|_| true).unwrap_or_else(lost_transaction));
        let is_broken = broken.is_some();
        let committed = match broken.or(gone) {
            Some(error) => Err(error),
            None if answers.iter().all(Result::is_err) => Ok(()),
            None => commit(),
        };
        if let Err(error) = committed {
            // Whoever leads must learn that the connection is to be given up.
            let spoiled = |answer: &&mut Result<()>| answer.is_ok() || is_broken;
            answers.iter_mut().filter(spoiled).for_each(|answer| *answer = Err(error.clone()));
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::super::{Database, Place, Wait};
    use super::*;

    type Job = Box<dyn FnOnce(&Tx) -> Result<i64> + Send>;

    struct File {
        database: Arc<Database>,
        _folder: tempfile::TempDir,
    }

    fn file() -> File {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::resolve(&folder.path().join("app.db")).unwrap();
        File { database: Database::open(place, Duration::from_secs(30)).unwrap(), _folder: folder }
    }

    /// Runs all work while somebody else has the writer, so that it is shared; what each answered.
    fn shared(file: &File, works: Vec<Job>) -> Vec<Option<Result<i64>>> {
        let (clock, wait) = (Clock::system(), Wait::up_to(Duration::from_secs(30)));
        let (database, count) = (&file.database, works.len());
        let (began, has_begun) = mpsc::channel();
        std::thread::scope(|scope| {
            let first = scope.spawn({
                let clock = clock.clone();
                move || {
                    database.write(Flush::Normal, &clock, wait, |_| {
                        began.send(()).unwrap();
                        while database.joint().waiting.lock().len() < count {
                            std::thread::yield_now();
                        }
                        Ok(())
                    })
                }
            });
            has_begun.recv().unwrap();
            let threads: Vec<_> = works
                .into_iter()
                .map(|work| {
                    let clock = clock.clone();
                    scope.spawn(move || database.write(Flush::Normal, &clock, wait, work))
                })
                .collect();
            first.join().unwrap().unwrap();
            threads.into_iter().map(|thread| thread.join().ok()).collect()
        })
    }

    #[test]
    fn a_panic_of_one_takes_nobody_along() {
        let file = file();
        // Whoever comes first leads; often enough it is the one that panics.
        for _ in 0..40 {
            let mut works: Vec<Job> = vec![Box::new(|_| panic!("on purpose"))];
            works.extend((1..5).map(|number| -> Job { Box::new(move |_| Ok(number)) }));
            let answers = shared(&file, works);
            assert!(!matches!(answers[0], Some(Ok(_))));
            for (number, answer) in answers.iter().enumerate().skip(1) {
                assert!(matches!(answer, Some(Ok(value)) if *value == number as i64), "{number}: {answer:?}");
            }
        }
        let wait = Wait::up_to(Duration::from_secs(30));
        assert_eq!(file.database.write(Flush::Normal, &Clock::system(), wait, |_| Ok(7)).unwrap(), 7);
    }

    #[test]
    fn an_io_error_of_one_is_acknowledged_to_nobody() {
        let file = file();
        let stored = |key: &str| file.database.setting(key).unwrap();
        let mut works: Vec<Job> = vec![Box::new(|_| Err(Error::Io("torn".into())))];
        works.extend(
            (1..5).map(|number| -> Job {
                Box::new(move |tx| tx.set_setting(&format!("k{number}"), "x").map(|()| number))
            }),
        );
        for (number, answer) in shared(&file, works).into_iter().enumerate() {
            assert!(matches!(answer, Some(Err(Error::Io(_)))), "{number}");
            assert_eq!(stored(&format!("k{number}")), None);
        }
    }

    #[test]
    fn one_that_is_refused_takes_nobody_along() {
        let file = file();
        let mut works: Vec<Job> = vec![Box::new(|tx| {
            tx.set_setting("refused", "x")?;
            Err(Error::Invalid("no".into()))
        })];
        works.extend(
            (1..5).map(|number| -> Job {
                Box::new(move |tx| tx.set_setting(&format!("k{number}"), "x").map(|()| number))
            }),
        );
        let answers = shared(&file, works);
        assert!(matches!(&answers[0], Some(Err(Error::Invalid(_)))));
        assert_eq!(file.database.setting("refused").unwrap(), None);
        for (number, answer) in answers.iter().enumerate().skip(1) {
            assert!(matches!(answer, Some(Ok(value)) if *value == number as i64), "{number}");
            assert!(file.database.setting(&format!("k{number}")).unwrap().is_some());
        }
    }
}
