//! Failures on request, so that tests can see what a program does when its store fails. Nothing is armed in ordinary use,
//! and then the only cost is to see that.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::sync::Mutex;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Others hold the write lock.
    Busy,
    DiskFull,
    /// The process ends before the verb has committed.
    CrashBefore,
    /// The process ends after the verb has committed and before its caller learns of it.
    CrashAfter,
}

/// Where it goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Enqueue,
    Claim,
    /// Whatever ends a claim.
    Finish,
}

struct Armed {
    number: u64,
    fault: Fault,
    /// `None`: at any of them.
    verb: Option<Verb>,
    /// How often it goes off; `None`: until it is disarmed.
    left: Option<u64>,
}

struct State {
    armed: Vec<Armed>,
    last: u64,
}

static COUNT: AtomicUsize = AtomicUsize::new(0);
static STATE: Mutex<State> = Mutex::new(State { armed: Vec::new(), last: 0 });

/// Arms a fault in this process; the number disarms it.
pub fn arm(fault: Fault, verb: Option<Verb>, times: Option<u64>) -> u64 {
    let mut state = STATE.lock();
    state.last += 1;
    let number = state.last;
    state.armed.push(Armed { number, fault, verb, left: times });
    COUNT.store(state.armed.len(), Ordering::SeqCst);
    number
}

/// Says whether it was armed still.
pub fn disarm(number: u64) -> bool {
    let mut state = STATE.lock();
    let before = state.armed.len();
    state.armed.retain(|armed| armed.number != number);
    COUNT.store(state.armed.len(), Ordering::SeqCst);
    state.armed.len() < before
}

/// Asked by a verb before it touches the file.
#[inline]
pub fn before(verbs: &[Verb]) -> Result<()> {
    if COUNT.load(Ordering::Relaxed) == 0 { Ok(()) } else { go_off(verbs, |fault| fault != Fault::CrashAfter) }
}

/// Asked by a verb once its change is committed.
#[inline]
pub fn after(verbs: &[Verb]) -> Result<()> {
    if COUNT.load(Ordering::Relaxed) == 0 { Ok(()) } else { go_off(verbs, |fault| fault == Fault::CrashAfter) }
}

/// The first that was armed for this goes off.
fn go_off(verbs: &[Verb], is_meant: impl Fn(Fault) -> bool) -> Result<()> {
    let mut state = STATE.lock();
    let fits = |armed: &&mut Armed| is_meant(armed.fault) && armed.verb.is_none_or(|verb| verbs.contains(&verb));
    let Some(armed) = (if verbs.is_empty() { None } else { state.armed.iter_mut().find(fits) }) else { return Ok(()) };
    let fault = armed.fault;
    armed.left = armed.left.map(|left| left.saturating_sub(1));
    state.armed.retain(|armed| armed.left != Some(0));
    COUNT.store(state.armed.len(), Ordering::SeqCst);
    Err(match fault {
        Fault::Busy => Error::Busy("others held the write lock, as a test has asked; nothing was changed".into()),
        Fault::DiskFull => Error::DiskFull("the disk is full, as a test has asked; nothing was written".into()),
        Fault::CrashBefore => Error::Crash("the process died before the commit, as a test has asked"),
        Fault::CrashAfter => Error::Crash("the process died after the commit, as a test has asked"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test, because what is armed is armed for the whole process.
    #[test]
    fn a_fault_goes_off_where_and_as_often_as_it_was_armed() {
        let once = arm(Fault::Busy, Some(Verb::Claim), Some(1));
        assert!(before(&[Verb::Enqueue]).is_ok());
        assert!(after(&[Verb::Claim]).is_ok());
        assert!(matches!(before(&[Verb::Finish, Verb::Claim]), Err(Error::Busy(_))));
        assert!(before(&[Verb::Claim]).is_ok());
        assert!(!disarm(once));

        let always = arm(Fault::CrashAfter, None, None);
        assert!(before(&[Verb::Enqueue]).is_ok());
        for verb in [Verb::Enqueue, Verb::Claim, Verb::Finish] {
            assert!(matches!(after(&[verb]), Err(Error::Crash(_))));
        }
        assert!(after(&[]).is_ok());
        assert!(disarm(always));
        assert!(after(&[Verb::Enqueue]).is_ok());
    }
}
