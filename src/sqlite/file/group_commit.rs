//! Group commit: threads that wait for the writer offer their work to the thread that has it, the leader. All share one
//! transaction and one sync; each has its own savepoint and its own result.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::Transaction;
use super::writer::run;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::store::CommitSync;
use crate::sync::Mutex;

/// At most this many offers share one transaction.
const MOST_SHARING: usize = 64;

/// What a thread wants done in a transaction. The value it makes is stored by the work itself, in the thread's own
/// memory.
pub type Work<'a> = dyn FnMut(&Transaction) -> Result<()> + Send + 'a;

/// Work that waits for a leader to run it.
pub struct Offer {
    /// On the stack of the thread that waits; see [`GroupCommit::offer`].
    work: *mut Work<'static>,
    commit_sync: CommitSync,
    clock: Clock,
    answer: Mutex<Option<Result<()>>>,
    is_done: AtomicBool,
}

// SAFETY: the work is `Send`, and used by one thread at a time: by the leader that took the offer, while the owner
// waits.
unsafe impl Send for Offer {}
unsafe impl Sync for Offer {}

impl Offer {
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::SeqCst)
    }

    /// The result, once it is done.
    pub fn answer(&self) -> Result<()> {
        self.answer.lock().take().unwrap_or_else(|| Err(Error::Storage("a shared transaction gave no answer".into())))
    }

    fn run(&self, tx: &Transaction) -> Result<()> {
        // SAFETY: the owner does not return before the offer is done, and no other thread has it.
        let work = unsafe { &mut *self.work };
        // A panic of one must not fail the others.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(tx)));
        done.unwrap_or_else(|_| {
            Err(Error::Storage("a panic in a shared transaction; see the log of the process".into()))
        })
    }

    fn resolve(&self, answer: Result<()>) {
        *self.answer.lock() = Some(answer);
        self.is_done.store(true, Ordering::SeqCst);
    }
}

/// The work offered to the writer of one database.
#[derive(Default)]
pub struct GroupCommit {
    waiting: Mutex<VecDeque<Arc<Offer>>>,
}

impl GroupCommit {
    /// Offers work to the thread that has the writer.
    ///
    /// # Safety
    /// The caller must not return, nor touch the work, before the offer is done or `withdraw` returned true.
    pub unsafe fn offer(&self, commit_sync: CommitSync, clock: &Clock, work: &mut Work<'_>) -> Arc<Offer> {
        // SAFETY: only the lifetime is changed; the caller promises to outlive the offer.
        let work = unsafe { std::mem::transmute::<*mut Work<'_>, *mut Work<'static>>(work) };
        let offer = Arc::new(Offer {
            work,
            commit_sync,
            clock: clock.clone(),
            answer: Mutex::default(),
            is_done: AtomicBool::new(false),
        });
        self.waiting.lock().push_back(offer.clone());
        offer
    }

    /// Withdraws an offer. Returns whether no leader had taken it.
    pub fn withdraw(&self, offer: &Arc<Offer>) -> bool {
        let mut waiting = self.waiting.lock();
        let before = waiting.len();
        waiting.retain(|other| !Arc::ptr_eq(other, offer));
        waiting.len() < before
    }

    /// Renews an offer that was withdrawn; the caller's promise to `offer` still holds.
    pub fn offer_again(&self, offer: &Arc<Offer>) {
        self.waiting.lock().push_back(offer.clone());
    }

    /// Takes the offers that may share a transaction: same clock, same durability.
    fn take(&self, commit_sync: CommitSync, clock: &Clock) -> Vec<Arc<Offer>> {
        let mut waiting = self.waiting.lock();
        if waiting.is_empty() {
            return Vec::new();
        }
        let mut taken = Vec::new();
        waiting.retain(|offer| {
            let fits = taken.len() < MOST_SHARING && offer.commit_sync == commit_sync && offer.clock.is_same(clock);
            if fits {
                taken.push(offer.clone());
            }
            !fits
        });
        taken
    }

    /// Runs the leader's own work and the offers that fit, then commits. Returns whether there were any offers.
    pub fn transact(
        &self,
        tx: &Transaction,
        commit_sync: CommitSync,
        clock: &Clock,
        own: &mut Work<'_>,
        commit: impl FnOnce() -> Result<()>,
    ) -> (Result<()>, bool) {
        let offers = self.take(commit_sync, clock);
        if offers.is_empty() {
            return (own(tx).and_then(|()| tx.write_counts()).and_then(|()| commit()), false);
        }
        let connection = tx.connection;
        let mut answers = vec![in_savepoint(tx, || own(tx))];
        answers.extend(offers.iter().map(|offer| in_savepoint(tx, || offer.run(tx))));
        let error_of = |is_meant: fn(&Error) -> bool| {
            answers.iter().find_map(|answer| answer.as_ref().err().filter(|error| is_meant(error)).cloned())
        };
        // After an I/O error the connection's page cache is unreliable. After some errors SQLite has rolled back the
        // whole transaction, including the work that did not cause them.
        let broken = error_of(|error| matches!(error, Error::Io(_)));
        let gone = connection.is_autocommit().then(|| error_of(|_| true).unwrap_or_else(lost_transaction));
        let is_broken = broken.is_some();
        let committed = match broken.or(gone) {
            Some(error) => Err(error),
            None if answers.iter().all(Result::is_err) => Ok(()),
            None => commit(),
        };
        if let Err(error) = committed {
            // After an I/O error the leader, too, must see it: it has to discard the connection.
            let spoiled = |answer: &&mut Result<()>| answer.is_ok() || is_broken;
            answers.iter_mut().filter(spoiled).for_each(|answer| *answer = Err(error.clone()));
        }
        let mut answers = answers.into_iter();
        let mine = answers.next().unwrap_or_else(|| Err(lost_transaction()));
        for (offer, answer) in offers.iter().zip(answers) {
            offer.resolve(answer);
        }
        (mine, true)
    }
}

fn lost_transaction() -> Error {
    Error::Storage("SQLite ended the transaction by itself; nothing was changed".into())
}

fn in_savepoint(tx: &Transaction, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let connection = tx.connection;
    if connection.is_autocommit() {
        return Err(lost_transaction());
    }
    run(connection, "SAVEPOINT joint")?;
    let answer = work().and_then(|()| tx.write_counts());
    if answer.is_err() {
        tx.forget_changes();
    }
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

    use super::super::{Database, Location};
    use super::*;
    use crate::store::{LockWait, Store, Tx};

    type Job = Box<dyn FnOnce(&dyn Tx) -> Result<i64> + Send>;

    struct File {
        database: Arc<Database>,
        _folder: tempfile::TempDir,
    }

    fn file() -> File {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::resolve(&folder.path().join("app.db")).unwrap();
        File { database: Database::open(location, Duration::from_secs(30)).unwrap(), _folder: folder }
    }

    impl File {
        fn store(&self) -> &dyn Store {
            &*self.database
        }

        fn setting(&self, key: &str) -> Option<String> {
            self.store().read(Clock::system().now(), |view| view.setting(key)).unwrap()
        }
    }

    /// Runs all work while another thread has the writer, so that it is shared. Returns each result.
    fn shared(file: &File, works: Vec<Job>) -> Vec<Option<Result<i64>>> {
        let (clock, wait) = (Clock::system(), LockWait::up_to(Duration::from_secs(30)));
        let (database, store, count) = (&file.database, file.store(), works.len());
        let (began, has_begun) = mpsc::channel();
        std::thread::scope(|scope| {
            let first = scope.spawn({
                let clock = clock.clone();
                move || {
                    store.write(CommitSync::Normal, &clock, wait, |_| {
                        began.send(()).unwrap();
                        while database.group_commit().waiting.lock().len() < count {
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
                    scope.spawn(move || store.write(CommitSync::Normal, &clock, wait, work))
                })
                .collect();
            first.join().unwrap().unwrap();
            threads.into_iter().map(|thread| thread.join().ok()).collect()
        })
    }

    #[test]
    fn a_panic_of_one_does_not_fail_the_others() {
        let file = file();
        // The first to come leads; in some rounds that is the one that panics.
        for _ in 0..40 {
            let mut works: Vec<Job> = vec![Box::new(|_| panic!("on purpose"))];
            works.extend((1..5).map(|number| -> Job { Box::new(move |_| Ok(number)) }));
            let answers = shared(&file, works);
            assert!(!matches!(answers[0], Some(Ok(_))));
            for (number, answer) in answers.iter().enumerate().skip(1) {
                assert!(matches!(answer, Some(Ok(value)) if *value == number as i64), "{number}: {answer:?}");
            }
        }
        let wait = LockWait::up_to(Duration::from_secs(30));
        assert_eq!(file.store().write(CommitSync::Normal, &Clock::system(), wait, |_| Ok(7)).unwrap(), 7);
    }

    #[test]
    fn an_io_error_of_one_fails_all() {
        let file = file();
        let mut works: Vec<Job> = vec![Box::new(|_| Err(Error::Io("torn".into())))];
        works.extend(
            (1..5).map(|number| -> Job {
                Box::new(move |tx| tx.set_setting(&format!("k{number}"), "x").map(|()| number))
            }),
        );
        for (number, answer) in shared(&file, works).into_iter().enumerate() {
            assert!(matches!(answer, Some(Err(Error::Io(_)))), "{number}");
            assert_eq!(file.setting(&format!("k{number}")), None);
        }
    }

    #[test]
    fn a_refusal_of_one_does_not_fail_the_others() {
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
        assert_eq!(file.setting("refused"), None);
        for (number, answer) in answers.iter().enumerate().skip(1) {
            assert!(matches!(answer, Some(Ok(value)) if *value == number as i64), "{number}");
            assert!(file.setting(&format!("k{number}")).is_some());
        }
    }
}
