//! Facts about this process: its fork generation, its host name and its background threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use once_cell::sync::OnceCell;

use crate::error::{Error, Result};

static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The number of forks between this process and the one that loaded the module. Objects of an older generation belong
/// to the parent: they are neither used nor freed.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Called in the child, by the fork handler.
#[cfg(unix)]
pub fn begin_generation() {
    GENERATION.fetch_add(1, Ordering::SeqCst);
}

pub fn hostname() -> &'static str {
    static NAME: OnceCell<String> = OnceCell::new();
    NAME.get_or_init(|| {
        let name = gethostname::gethostname().to_string_lossy().into_owned();
        if name.is_empty() { "localhost".into() } else { name }
    })
}

/// The state and work of one background thread.
pub trait Background: Default + Send + Sync + 'static {
    const THREAD_NAME: &'static str;

    /// The thread's main function.
    fn run(&self);
}

/// One background thread per process, started when first needed. A forked child starts its own, because threads do not
/// survive a fork.
pub struct BackgroundThread<T>(ArcSwapOption<Started<T>>);

pub struct Started<T> {
    generation: u64,
    state: T,
}

impl<T> Started<T> {
    /// Returns `None` in a forked child: the parent's thread may have held a lock in the state during the fork.
    pub fn here(&self) -> Option<&T> {
        (self.generation == generation()).then_some(&self.state)
    }
}

impl<T: Background> BackgroundThread<T> {
    pub const fn new() -> Self {
        Self(ArcSwapOption::const_empty())
    }

    /// Returns the state of this process's thread, and starts the thread if it does not run yet.
    pub fn get(&self) -> Result<Arc<Started<T>>> {
        loop {
            let known = self.0.load_full();
            if let Some(started) = known.as_ref().filter(|started| started.generation == generation()) {
                return Ok(started.clone());
            }
            let fresh = Arc::new(Started { generation: generation(), state: T::default() });
            let before = self.0.compare_and_swap(&known, Some(fresh.clone()));
            if before.as_ref().map(Arc::as_ptr) != known.as_ref().map(Arc::as_ptr) {
                continue; // another thread was first
            }
            // The parent's state is left alone: nothing in it may be locked or freed here.
            std::mem::forget(known);
            let running = fresh.clone();
            let thread = std::thread::Builder::new().name(T::THREAD_NAME.into());
            return match thread.spawn(move || running.state.run()) {
                Ok(_) => Ok(fresh),
                Err(error) => {
                    self.0.store(None);
                    Err(Error::Storage(format!("the system refused the thread {}: {error}", T::THREAD_NAME)))
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    static RUNS: AtomicUsize = AtomicUsize::new(0);

    #[derive(Default)]
    struct Counts;

    impl Background for Counts {
        const THREAD_NAME: &'static str = "test";

        fn run(&self) {
            RUNS.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn many_threads_that_ask_at_once_start_one() {
        static THREAD: BackgroundThread<Counts> = BackgroundThread::new();
        let asked = std::thread::scope(|scope| {
            let asking = (0..8).map(|_| scope.spawn(|| THREAD.get().unwrap())).collect::<Vec<_>>();
            asking.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(asked.iter().all(|one| Arc::ptr_eq(one, &asked[0])));
        while RUNS.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(RUNS.load(Ordering::SeqCst), 1);
    }
}
