//! Locks that are not poisoned by a panic and survive a fork, because they keep no state outside themselves.
//!
//! `parking_lot` keeps its waiting threads in one table per process. A fork while another thread is parking leaves a
//! locked bucket in the child, and the child hangs. The standard library's locks have no such table.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value without locking, which is safe in a forked child.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits on a condition for at most `limit`; without a limit, until it is notified.
pub fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>, limit: Option<Duration>) -> MutexGuard<'a, T> {
    match limit {
        None => condition.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(limit) => condition.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner).0,
    }
}

/// A value that one thread at a time may take, use and put back.
pub struct Exclusive<T> {
    state: Mutex<ExclusiveState<T>>,
    freed: Condvar,
}

struct ExclusiveState<T> {
    value: Option<T>,
    waiting: usize,
}

impl<T> Exclusive<T> {
    pub fn new(value: T) -> Self {
        Self { state: Mutex::new(ExclusiveState { value: Some(value), waiting: 0 }), freed: Condvar::new() }
    }

    /// Takes the value; `None` if other threads kept it longer than `limit`.
    pub fn take(&self, limit: Duration) -> Option<ExclusiveGuard<'_, T>> {
        self.take_unless(limit, || false)
    }

    /// Takes the value; `None` if other threads kept it longer than `limit`, or `is_done` became true meanwhile.
    pub fn take_unless(&self, limit: Duration, is_done: impl Fn() -> bool) -> Option<ExclusiveGuard<'_, T>> {
        let mut state = self.state.lock();
        if is_done() {
            return None;
        }
        if state.value.is_none() && !limit.is_zero() {
            let deadline = Instant::now().checked_add(limit);
            state.waiting += 1;
            while state.value.is_none() && !is_done() {
                let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
                if left == Some(Duration::ZERO) {
                    break;
                }
                state = wait(&self.freed, state, left);
            }
            state.waiting -= 1;
            if is_done() {
                return None;
            }
        }
        let value = state.value.take();
        value.map(|value| ExclusiveGuard { exclusive: self, value: Some(value), served: false })
    }
}

pub struct ExclusiveGuard<'a, T> {
    exclusive: &'a Exclusive<T>,
    value: Option<T>,
    served: bool,
}

impl<T> ExclusiveGuard<'_, T> {
    /// The work of waiting threads has been done for them: all are notified when the value is put back.
    pub fn mark_served(&mut self) {
        self.served = true;
    }
}

impl<T> Drop for ExclusiveGuard<'_, T> {
    fn drop(&mut self) {
        let mut state = self.exclusive.state.lock();
        state.value = self.value.take();
        if state.waiting > 0 && self.served {
            self.exclusive.freed.notify_all();
        } else if state.waiting > 0 {
            self.exclusive.freed.notify_one();
        }
    }
}

impl<T> Deref for ExclusiveGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("present until dropped")
    }
}

impl<T> DerefMut for ExclusiveGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("present until dropped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_taken_by_one_at_a_time() {
        let exclusive = Exclusive::new(0u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        let mut taken = exclusive.take(Duration::MAX).unwrap();
                        let before = *taken;
                        std::hint::black_box(&before);
                        *taken = before + 1;
                    }
                });
            }
        });
        assert_eq!(*exclusive.take(Duration::ZERO).unwrap(), 4_000);
    }

    #[test]
    fn waiting_for_a_seat_ends_at_the_limit() {
        let exclusive = Exclusive::new(());
        let _taken = exclusive.take(Duration::ZERO).unwrap();
        assert!(exclusive.take(Duration::from_millis(1)).is_none());
    }

    #[test]
    fn a_panic_with_the_seat_taken_puts_it_back() {
        let exclusive = Exclusive::new(5);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _taken = exclusive.take(Duration::ZERO).unwrap();
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(*exclusive.take(Duration::ZERO).unwrap(), 5);
    }
}
