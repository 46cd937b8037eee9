//! Fairness at the write lock: which process yields to which.
//!
//! SQLite's write lock has no queue. A process that writes without a pause finds it free whenever it comes back. A
//! process that writes now and then has to hit the instant in between, and may wait for a hundred milliseconds. Each
//! change of writer is expensive, because the next writer reads the changed pages again. So writers signal each other
//! by marks, which are locks on bytes of the file:
//!
//! | writer | signals that it waits | the steady writer that comes back to the lock |
//! |---|---|---|
//! | occasional | at once, and tries often | yields at once, and continues its turn afterwards |
//! | steady: writes without a pause | after a while, and tries rarely | yields when its own turn is over, and signals that |

use std::time::{Duration, Instant};

use super::super::locks::{Mark, MarkGuard};
use crate::error::{Error, Result};

/// A writer is steady once it has come back this often within `AT_ONCE` after its last transaction.
const STEADY_AFTER: u32 = 8;
const AT_ONCE: Duration = Duration::from_micros(500);
/// The count stops here. A longer pause only halves it: the system may have suspended the process.
const MOST_COUNTED: u32 = 16;
/// How long a steady writer continues while another steady one waits.
const TURN: Duration = Duration::from_millis(20);
/// How long a steady writer waits before it signals that; its own turn is over then.
const STEADY_PATIENCE: Duration = Duration::from_millis(5);
/// How often a steady writer checks whether others wait.
const LOOK_EVERY: Duration = Duration::from_micros(300);
/// How long it yields to an occasional writer. A process whose mark stays longer may have been stopped.
const LONGEST_YIELD: Duration = Duration::from_millis(20);
/// How long it yields to a steady one, which notices sooner. As soon as that one has the lock, a third may set the mark
/// again, so that a longer wait for the mark would prove nothing.
const YIELD_TO_STEADY: Duration = Duration::from_millis(2);
/// How long marks are disregarded after two yields in a row were in vain; longer after each further one.
const DISREGARD: Duration = Duration::from_millis(50);
/// How often a waiting steady writer checks whether another one yields to it.
const LOOK_FOR_YIELD: Duration = Duration::from_micros(200);
/// The length of a few transactions, and one that only a long transaction of another program explains.
const SHORT_WAIT: Duration = Duration::from_millis(10);
const LONG_WAIT: Duration = Duration::from_millis(100);
/// The system's own delay adds about as much again.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
/// Tries before the first sleep: most transactions are shorter than the shortest sleep.
const TRIES_BEFORE_SLEEP: u32 = 2;

/// A file, by device and inode; `None` for one in memory.
type FileKey = Option<(u64, u64)>;

/// What the writer of a process remembers of its turns.
#[derive(Default)]
pub struct Turns {
    last_transaction: Option<Instant>,
    times_at_once: u32,
    turn_began: Option<Instant>,
    looked_at: Option<Instant>,
    disregards_until: Option<Instant>,
    yields_in_vain: u32,
    /// An occasional writer keeps its mark until its transaction has ended: a steady writer that sees it knows that the
    /// lock will soon be free again.
    waits: Option<MarkGuard>,
}

impl Turns {
    /// To be called when a transaction has ended, by commit or rollback.
    pub fn after_transaction(&mut self) {
        self.waits = None;
        self.last_transaction = Some(Instant::now());
    }

    /// Calls `begin` until it gets the lock, for at most `limit`.
    pub fn wait(&mut self, file: FileKey, limit: Duration, begin: impl Fn() -> Result<()>) -> Result<()> {
        let started = Instant::now();
        let is_back_at_once = self.last_transaction.is_some_and(|time| started.duration_since(time) < AT_ONCE);
        self.times_at_once =
            if is_back_at_once { MOST_COUNTED.min(self.times_at_once + 1) } else { self.times_at_once / 2 };
        let begun = if self.times_at_once >= STEADY_AFTER {
            self.wait_as_steady(file, started, limit, begin)
        } else {
            self.turn_began = None;
            self.wait_as_occasional(file, started, limit, begin)
        };
        if begun.is_err() {
            self.waits = None;
        }
        begun
    }

    fn wait_as_occasional(
        &mut self,
        file: FileKey,
        started: Instant,
        limit: Duration,
        begin: impl Fn() -> Result<()>,
    ) -> Result<()> {
        for tries in 0.. {
            let begun = begin();
            let waited = started.elapsed();
            if !is_busy(&begun) || waited >= limit {
                return begun;
            }
            if self.waits.is_none() {
                self.waits = take(file, Mark::OccasionalWaits);
            }
            match waited {
                _ if tries < TRIES_BEFORE_SLEEP => std::thread::yield_now(),
                waited if waited < SHORT_WAIT => sleep(SHORTEST_PAUSE, limit - waited),
                waited if waited < LONG_WAIT => sleep(varied(1_000), limit - waited),
                _ => sleep(varied(8_000), limit - waited),
            }
        }
        unreachable!("the tries do not end")
    }

    fn wait_as_steady(
        &mut self,
        file: FileKey,
        started: Instant,
        limit: Duration,
        begin: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let yielded = self.yield_to_others(file, started, limit);
        for tries in 0.. {
            let begun = begin();
            let waited = started.elapsed();
            if !is_busy(&begun) || waited >= limit {
                // The lock was free while this writer yielded, if it is free now.
                if yielded == Yielded::InVain && tries == 0 {
                    self.count_yield_in_vain();
                }
                if waited >= STEADY_PATIENCE || self.turn_began.is_none() {
                    self.turn_began = Some(Instant::now());
                }
                self.waits = None;
                return begun;
            }
            let left = limit - waited;
            if tries < TRIES_BEFORE_SLEEP {
                std::thread::yield_now();
            } else if yielded != Yielded::ToSteady && waited < SHORT_WAIT && is_taken(file, Mark::OccasionalWaits) {
                sleep(SHORTEST_PAUSE, left);
            } else {
                self.sleep_until_yielded_to(
                    file,
                    waited,
                    varied(2_000 << (tries - TRIES_BEFORE_SLEEP).min(2)).min(left),
                );
            }
        }
        unreachable!("the tries do not end")
    }

    /// Sleeps for `pause`, or until another steady writer yields to this one.
    fn sleep_until_yielded_to(&mut self, file: FileKey, waited: Duration, pause: Duration) {
        if self.waits.is_none() && waited >= STEADY_PATIENCE {
            self.waits = take(file, Mark::SteadyWaits);
        }
        if self.waits.is_none() || waited >= LONG_WAIT {
            return std::thread::sleep(pause);
        }
        let started = Instant::now();
        while started.elapsed() < pause && !is_taken(file, Mark::Yields) {
            std::thread::sleep(LOOK_FOR_YIELD);
        }
    }

    fn count_yield_in_vain(&mut self) {
        if self.yields_in_vain > 0 {
            let disregard = DISREGARD * (1 << (self.yields_in_vain - 1).min(5));
            self.disregards_until = Instant::now().checked_add(disregard);
        }
        self.yields_in_vain = self.yields_in_vain.saturating_add(1);
    }

    /// Lets an occasional writer that waits go first, and a steady one if this writer's turn is over.
    fn yield_to_others(&mut self, file: FileKey, started: Instant, limit: Duration) -> Yielded {
        let has_looked = self.looked_at.is_some_and(|time| started.duration_since(time) < LOOK_EVERY);
        if has_looked || self.disregards_until.is_some_and(|until| started < until) {
            return Yielded::ToNone;
        }
        self.looked_at = Some(started);
        let is_over = self.turn_began.is_some_and(|time| started.duration_since(time) >= TURN);
        if is_taken(file, Mark::OccasionalWaits) {
            self.yield_to_occasional(file, started, limit)
        } else if is_over && is_taken(file, Mark::SteadyWaits) {
            let _mark = take(file, Mark::Yields);
            while started.elapsed() < YIELD_TO_STEADY.min(limit) && is_taken(file, Mark::SteadyWaits) {
                std::thread::sleep(SHORTEST_PAUSE);
            }
            Yielded::ToSteady
        } else {
            Yielded::ToNone
        }
    }

    fn yield_to_occasional(&mut self, file: FileKey, started: Instant, limit: Duration) -> Yielded {
        while is_taken(file, Mark::OccasionalWaits) {
            if started.elapsed() >= LONGEST_YIELD.min(limit) {
                return Yielded::InVain;
            }
            std::thread::sleep(SHORTEST_PAUSE);
        }
        self.yields_in_vain = 0;
        Yielded::ToOccasional
    }
}

/// To which writer a steady one has just yielded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Yielded {
    ToNone,
    ToOccasional,
    ToSteady,
    /// The mark of an occasional writer stayed too long.
    InVain,
}

fn is_busy(begun: &Result<()>) -> bool {
    matches!(begun, Err(Error::Busy(_)))
}

fn take(file: FileKey, mark: Mark) -> Option<MarkGuard> {
    file.and_then(|(device, inode)| MarkGuard::take(device, inode, mark))
}

fn is_taken(file: FileKey, mark: Mark) -> bool {
    file.is_some_and(|(device, inode)| MarkGuard::is_taken(device, inode, mark))
}

fn sleep(pause: Duration, left: Duration) {
    std::thread::sleep(pause.min(left));
}

/// Between half of `longest` and all of it, so that waiting writers do not wake at the same time.
fn varied(longest_microseconds: u64) -> Duration {
    let random = u64::from(getrandom::u32().unwrap_or(0));
    let half = longest_microseconds / 2;
    Duration::from_micros(half + random % (half + 1))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::cell::Cell;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::super::locks::set_mark;
    use super::*;
    use crate::{NewItem, Options, Queue};

    const LONG: Duration = Duration::from_secs(30);

    struct SharedFile {
        _queue: std::sync::Arc<Queue>,
        /// As another process would have it open.
        stranger: std::fs::File,
        folder: tempfile::TempDir,
    }

    impl SharedFile {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            let queue = Queue::open(&path, Options::default()).unwrap();
            queue.enqueue(NewItem::text("x")).unwrap();
            let stranger = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
            Self { _queue: queue, stranger, folder }
        }

        fn id(&self) -> Option<(u64, u64)> {
            let found = std::fs::metadata(self.folder.path().join("app.db")).unwrap();
            Some((found.dev(), found.ino()))
        }

        /// Whether another process could set the mark; if so, it is set.
        fn other_takes(&self, mark: Mark) -> bool {
            set_mark(self.stranger.as_raw_fd(), mark, true)
        }

        fn other_leaves(&self, mark: Mark) {
            set_mark(self.stranger.as_raw_fd(), mark, false);
        }
    }

    fn busy() -> Result<()> {
        Err(Error::Busy("on purpose".into()))
    }

    #[test]
    fn an_occasional_writer_is_marked_until_its_transaction_has_ended() {
        let file = SharedFile::new();
        let tries = Cell::new(0);
        let begin = || {
            tries.set(tries.get() + 1);
            if tries.get() == 1 { busy() } else { Ok(()) }
        };
        let mut turns = Turns::default();
        turns.wait(file.id(), LONG, begin).unwrap();
        assert_eq!(tries.get(), 2);
        assert!(!file.other_takes(Mark::OccasionalWaits));
        turns.after_transaction();
        assert!(file.other_takes(Mark::OccasionalWaits));
    }

    #[test]
    fn a_steady_writer_yields_to_an_occasional_one() {
        let file = SharedFile::new();
        let mut turns = Turns::default();
        let has_left = AtomicBool::new(false);
        assert!(file.other_takes(Mark::OccasionalWaits));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(LONGEST_YIELD / 10);
                has_left.store(true, Ordering::SeqCst);
                file.other_leaves(Mark::OccasionalWaits);
            });
            turns.times_at_once = STEADY_AFTER;
            turns.after_transaction();
            let begin = || if has_left.load(Ordering::SeqCst) { Ok(()) } else { panic!("it went first") };
            turns.wait(file.id(), LONG, begin).unwrap();
        });
    }

    #[test]
    fn a_steady_writer_yields_to_another_one_only_when_its_turn_is_over() {
        let file = SharedFile::new();
        let mut turns = Turns::default();
        assert!(file.other_takes(Mark::SteadyWaits));
        for (turn_began, yielded) in [(Instant::now(), Yielded::ToNone), (Instant::now() - TURN, Yielded::ToSteady)] {
            turns.looked_at = None;
            turns.turn_began = Some(turn_began);
            assert_eq!(turns.yield_to_others(file.id(), Instant::now(), LONG), yielded);
        }
    }

    #[test]
    fn the_mark_of_a_stopped_process_is_disregarded() {
        let file = SharedFile::new();
        let mut turns = Turns { times_at_once: STEADY_AFTER, ..Turns::default() };
        assert!(file.other_takes(Mark::OccasionalWaits));
        for _ in 0..2 {
            assert!(turns.disregards_until.is_none(), "one yield in vain proves nothing");
            turns.after_transaction();
            turns.looked_at = None;
            turns.wait(file.id(), LONG, || Ok(())).unwrap();
        }
        turns.after_transaction();
        turns.looked_at = None;
        turns.wait(file.id(), LONG, || Ok(())).unwrap();
        assert!(turns.looked_at.is_none(), "it looked again");
    }

    #[test]
    fn waiting_ends_at_the_limit_and_leaves_no_mark() {
        let file = SharedFile::new();
        let mut turns = Turns::default();
        assert!(matches!(turns.wait(file.id(), Duration::from_millis(5), busy), Err(Error::Busy(_))));
        assert!(file.other_takes(Mark::OccasionalWaits));
    }
}
