//! Fault injection, so that tests can see what a program does when its store fails. Normally nothing is armed; the
//! check is one atomic load.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::model::Event;
use crate::sync::Mutex;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Another writer holds the write lock.
    Busy,
    DiskFull,
    /// The process ends before the verb has committed.
    CrashBefore,
    /// The process ends after the verb has committed and before its caller learns of it.
    CrashAfter,
}

/// Which verb fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPoint {
    Enqueue,
    Claim,
    /// Any verb that ends a claim.
    Finish,
}

struct Armed {
    number: u64,
    fault: Fault,
    /// `None`: any verb.
    verb: Option<FaultPoint>,
    /// How many more times the fault occurs; `None`: until it is disarmed.
    left: Option<u64>,
}

#[derive(Default)]
struct Faults {
    armed: Vec<Armed>,
    last: u64,
}

static COUNT: AtomicUsize = AtomicUsize::new(0);
static FAULTS: Mutex<Faults> = Mutex::new(Faults { armed: Vec::new(), last: 0 });

/// Arms a fault in this process; returns the number that disarms it.
pub fn arm(fault: Fault, verb: Option<FaultPoint>, times: Option<u64>) -> u64 {
    with(|faults| faults.arm(fault, verb, times))
}

/// Returns whether the fault was still armed.
pub fn disarm(number: u64) -> bool {
    with(|faults| faults.disarm(number))
}

/// Called before a transaction begins.
#[inline]
pub(crate) fn before(verbs: &[FaultPoint]) -> Result<()> {
    if COUNT.load(Ordering::Relaxed) == 0 { Ok(()) } else { with(|faults| faults.before(verbs)) }
}

/// Called after a change is committed.
#[inline]
pub(crate) fn after(events: &[Event]) -> Result<()> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let verbs = events.iter().filter_map(verb_of).collect::<Vec<_>>();
    with(|faults| faults.after(&verbs))
}

fn verb_of(event: &Event) -> Option<FaultPoint> {
    match event {
        Event::Enqueued => Some(FaultPoint::Enqueue),
        Event::Claimed => Some(FaultPoint::Claim),
        Event::Ended { .. } | Event::Returned => Some(FaultPoint::Finish),
        Event::Claimable | Event::Removed { .. } | Event::Changed => None,
    }
}

fn with<T>(change: impl FnOnce(&mut Faults) -> T) -> T {
    let mut faults = FAULTS.lock();
    let value = change(&mut faults);
    COUNT.store(faults.armed.len(), Ordering::SeqCst);
    value
}

impl Faults {
    fn arm(&mut self, fault: Fault, verb: Option<FaultPoint>, left: Option<u64>) -> u64 {
        self.last += 1;
        self.armed.push(Armed { number: self.last, fault, verb, left });
        self.last
    }

    fn disarm(&mut self, number: u64) -> bool {
        let before = self.armed.len();
        self.armed.retain(|armed| armed.number != number);
        self.armed.len() < before
    }

    fn before(&mut self, verbs: &[FaultPoint]) -> Result<()> {
        self.go_off(verbs, |fault| fault != Fault::CrashAfter)
    }

    fn after(&mut self, verbs: &[FaultPoint]) -> Result<()> {
        self.go_off(verbs, |fault| fault == Fault::CrashAfter)
    }

    /// Triggers the first fault that is armed for these verbs.
    fn go_off(&mut self, verbs: &[FaultPoint], is_meant: impl Fn(Fault) -> bool) -> Result<()> {
        let is_here = |armed: &Armed| match armed.verb {
            Some(verb) => verbs.contains(&verb),
            None => !verbs.is_empty(),
        };
        let Some(armed) = self.armed.iter_mut().find(|armed| is_meant(armed.fault) && is_here(armed)) else {
            return Ok(());
        };
        let error = armed.fault.error();
        armed.left = armed.left.map(|left| left.saturating_sub(1));
        self.armed.retain(|armed| armed.left != Some(0));
        Err(error)
    }
}

impl Fault {
    fn error(self) -> Error {
        match self {
            Fault::Busy => Error::Busy("others held the write lock, as a test has asked; nothing was changed".into()),
            Fault::DiskFull => Error::DiskFull("the disk is full, as a test has asked; nothing was written".into()),
            Fault::CrashBefore => Error::Crash("the process died before the commit, as a test has asked"),
            Fault::CrashAfter => Error::Crash("the process died after the commit, as a test has asked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_goes_off_where_and_as_often_as_it_was_armed() {
        let mut faults = Faults::default();
        let twice = faults.arm(Fault::Busy, Some(FaultPoint::Claim), Some(2));
        assert!(faults.before(&[FaultPoint::Enqueue]).is_ok());
        assert!(faults.after(&[FaultPoint::Claim]).is_ok());
        for _ in 0..2 {
            assert!(matches!(faults.before(&[FaultPoint::Finish, FaultPoint::Claim]), Err(Error::Busy(_))));
        }
        assert!(faults.before(&[FaultPoint::Claim]).is_ok());
        assert!(!faults.disarm(twice));
    }

    #[test]
    fn a_fault_without_a_limit_goes_off_at_every_verb_until_it_is_disarmed() {
        let mut faults = Faults::default();
        let always = faults.arm(Fault::CrashAfter, None, None);
        for verb in [FaultPoint::Enqueue, FaultPoint::Claim, FaultPoint::Finish] {
            assert!(faults.before(&[verb]).is_ok());
            assert!(matches!(faults.after(&[verb]), Err(Error::Crash(_))));
        }
        assert!(faults.after(&[]).is_ok());
        assert!(faults.disarm(always));
        assert!(faults.after(&[FaultPoint::Enqueue]).is_ok());
    }
}
