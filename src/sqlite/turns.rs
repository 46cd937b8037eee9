//! Taking turns at the write lock.
//!
//! A process that writes again and again finds the lock free whenever it comes back; one that writes now and then has to
//! hit the instant in between, and may wait for a hundred milliseconds. So a writer that has had no turn for a while stands
//! at a turnstile, a byte of the file, and asks for the lock often; one that has just had its turn sees it there and lets it
//! go first. Turns are still several transactions long: each change of writer makes the next one read changed pages anew.

use std::time::{Duration, Instant};

use super::locks::Turnstile;
use crate::error::{Error, Result};

/// A writer that comes back sooner than this after its last commit goes round and round.
const ROUND: Duration = Duration::from_micros(500);
/// It waits so long before it stands at the turnstile; any other writer stands there at once.
const LONGEST_TURN: Duration = Duration::from_millis(10);
/// It looks at the turnstile so often.
const LOOK_EVERY: Duration = Duration::from_micros(300);
/// How long it lets one go first. Who stands there longer does not ask for the lock: its process was stopped.
const LONGEST_COURTESY: Duration = Duration::from_millis(20);
/// For so long a turnstile at which such a process stands is passed by.
const PASSED_BY: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);
/// How often the lock is asked for before the first sleep: most transactions are shorter than the shortest sleep.
const SHORT_TRIES: u32 = 2;

/// What a writer remembers of its turns.
#[derive(Default)]
pub struct Turns {
    last_commit: Option<Instant>,
    looked_at: Option<Instant>,
    passes_by_until: Option<Instant>,
}

impl Turns {
    pub fn note_commit(&mut self) {
        self.last_commit = Some(Instant::now());
    }

    /// Asks for the lock until it is given, for at most `limit`. Holds nothing when it returns but, perhaps, the lock.
    pub fn wait(&mut self, file: Option<(u64, u64)>, limit: Duration, begin: impl Fn() -> Result<()>) -> Result<()> {
        let started = Instant::now();
        let goes_round = self.last_commit.is_some_and(|time| started.duration_since(time) < ROUND);
        let courtesy = if goes_round { self.let_others_first(file, started, limit) } else { Courtesy::None };
        let mut standing = None;
        for tries in 0.. {
            match begin() {
                Err(Error::Busy(_)) if started.elapsed() < limit => {}
                begun => {
                    if begun.is_ok() && courtesy == Courtesy::InVain && tries == 0 {
                        // The lock was free all the time: who stands at the turnstile does not want it.
                        self.passes_by_until = started.checked_add(PASSED_BY);
                    }
                    return begun;
                }
            }
            let waited = started.elapsed();
            let in_need_for = waited.checked_sub(if goes_round { LONGEST_TURN } else { Duration::ZERO });
            if in_need_for.is_some() && standing.is_none() {
                standing = file.and_then(|(device, inode)| Turnstile::take(device, inode));
            }
            let pause = match courtesy {
                // One transaction, and it is this writer's turn again.
                Courtesy::Shown if waited < LONGEST_COURTESY => Some(SHORTEST_PAUSE),
                _ => pause(tries, in_need_for),
            };
            match pause {
                Some(pause) => std::thread::sleep(pause.min(limit.saturating_sub(waited))),
                None => std::thread::yield_now(),
            }
        }
        unreachable!("the tries do not end")
    }

    /// Lets a writer go first that stands at the turnstile.
    fn let_others_first(&mut self, file: Option<(u64, u64)>, started: Instant, limit: Duration) -> Courtesy {
        let Some((device, inode)) = file else { return Courtesy::None };
        let has_looked = self.looked_at.is_some_and(|time| started.duration_since(time) < LOOK_EVERY);
        if has_looked || self.passes_by_until.is_some_and(|until| started < until) {
            return Courtesy::None;
        }
        self.looked_at = Some(started);
        let mut courtesy = Courtesy::None;
        while Turnstile::is_taken(device, inode) {
            if started.elapsed() >= LONGEST_COURTESY.min(limit) {
                return Courtesy::InVain;
            }
            std::thread::sleep(SHORTEST_PAUSE);
            courtesy = Courtesy::Shown;
        }
        courtesy
    }
}

/// What came of letting others go first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Courtesy {
    /// None stood there.
    None,
    Shown,
    /// One stood there for longer than a turn takes.
    InVain,
}

/// How long to sleep before the lock is asked for again. Whoever is in need of a turn asks often; the others sleep longer than
/// a few transactions, and differ, so that they do not march in step.
fn pause(tries: u32, in_need_for: Option<Duration>) -> Option<Duration> {
    if tries < SHORT_TRIES {
        return None;
    }
    let longest = match in_need_for {
        Some(time) if time < Duration::from_millis(10) => 100,
        Some(time) if time < Duration::from_millis(100) => 1_000,
        Some(_) => 8_000,
        None => 2_000 << (tries - SHORT_TRIES).min(2),
    };
    let dice = u64::from(getrandom::u32().unwrap_or(0));
    Some(Duration::from_micros(longest / 2 + dice % (longest / 2 + 1)))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::cell::Cell;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::locks::hold_turnstile;
    use super::*;
    use crate::{NewItem, Options, Queue};

    const LONG: Duration = Duration::from_secs(30);

    struct Place {
        _queue: std::sync::Arc<Queue>,
        /// As another process would have it open.
        stranger: std::fs::File,
        folder: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            let queue = Queue::open(&path, Options::default()).unwrap();
            queue.enqueue(NewItem::text("x")).unwrap();
            let stranger = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
            Self { _queue: queue, stranger, folder }
        }

        fn file(&self) -> Option<(u64, u64)> {
            let found = std::fs::metadata(self.folder.path().join("app.db")).unwrap();
            Some((found.dev(), found.ino()))
        }

        /// Whether the stranger could stand at the turnstile; if so, it stands there.
        fn stands(&self) -> bool {
            hold_turnstile(self.stranger.as_raw_fd(), true)
        }

        fn leaves(&self) {
            hold_turnstile(self.stranger.as_raw_fd(), false);
        }
    }

    fn busy() -> Result<()> {
        Err(Error::Busy("on purpose".into()))
    }

    #[test]
    fn a_writer_that_comes_now_and_then_stands_at_the_turnstile_until_it_has_the_lock() {
        let place = Place::new();
        let tries = Cell::new(0);
        let begin = || {
            tries.set(tries.get() + 1);
            match tries.get() {
                1 => busy(),
                2 if place.stands() => panic!("nobody stood there"),
                _ => Ok(()),
            }
        };
        Turns::default().wait(place.file(), LONG, begin).unwrap();
        assert_eq!(tries.get(), 2);
        assert!(place.stands());
    }

    #[test]
    fn a_writer_that_goes_round_lets_the_one_at_the_turnstile_go_first() {
        let place = Place::new();
        let mut turns = Turns::default();
        let has_left = AtomicBool::new(false);
        assert!(place.stands());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(LONGEST_COURTESY / 10);
                has_left.store(true, Ordering::SeqCst);
                place.leaves();
            });
            turns.note_commit();
            let begin = || if has_left.load(Ordering::SeqCst) { Ok(()) } else { panic!("it went first") };
            turns.wait(place.file(), LONG, begin).unwrap();
        });
    }

    #[test]
    fn a_stopped_process_at_the_turnstile_is_passed_by() {
        let place = Place::new();
        let mut turns = Turns::default();
        assert!(place.stands());
        turns.note_commit();
        turns.wait(place.file(), LONG, || Ok(())).unwrap();
        assert!(turns.passes_by_until.is_some());
        turns.note_commit();
        turns.looked_at = None;
        turns.wait(place.file(), LONG, || Ok(())).unwrap();
        assert!(turns.looked_at.is_none(), "it looked again");
    }

    #[test]
    fn waiting_ends_at_the_limit() {
        let place = Place::new();
        assert!(matches!(Turns::default().wait(place.file(), Duration::from_millis(5), busy), Err(Error::Busy(_))));
    }
}
