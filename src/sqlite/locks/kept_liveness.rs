//! Liveness locks of claims whose items were dropped: a bounded number, kept until their leases expire.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{LivenessLock, registry};

/// Each may keep a descriptor open; the oldest is dropped first.
const MOST: usize = 64;

pub struct KeptSign {
    sign: Arc<LivenessLock>,
    until: Option<Instant>,
}

/// Keeps a sign for the given time.
pub fn keep(sign: Arc<LivenessLock>, time: Duration) {
    let until = Instant::now().checked_add(time);
    let kept = &mut registry().kept_liveness;
    match kept.iter_mut().find(|known| Arc::ptr_eq(&known.sign, &sign)) {
        Some(known) => known.until = known.until.max(until),
        None => kept.push(KeptSign { sign, until }),
    }
}

/// Drops the signs that are no longer needed.
pub fn tidy() {
    let now = Instant::now();
    let mut gone = Vec::new();
    let mut registry = registry();
    let kept = &mut registry.kept_liveness;
    let surplus = kept.len().saturating_sub(MOST);
    for (age, known) in std::mem::take(kept).into_iter().enumerate() {
        let is_needed = known.until.is_none_or(|until| until > now) && age >= surplus;
        if is_needed { kept.push(known) } else { gone.push(known) }
    }
    drop(registry);
    // Without the registry locked: dropping the last owner of a sign closes files.
    drop(gone);
}
