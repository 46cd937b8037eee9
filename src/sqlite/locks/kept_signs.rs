//! Signs of life of claims whose items were dropped: kept until the leases are over, and no more than a few.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{SignOfLife, registry};

/// Each may keep a descriptor open; the oldest goes first.
const MOST: usize = 64;

pub struct Kept {
    sign: Arc<SignOfLife>,
    until: Option<Instant>,
}

/// Keeps a sign for so long.
pub fn keep(sign: Arc<SignOfLife>, time: Duration) {
    let until = Instant::now().checked_add(time);
    let kept = &mut registry().kept_signs;
    match kept.iter_mut().find(|known| Arc::ptr_eq(&known.sign, &sign)) {
        Some(known) => known.until = known.until.max(until),
        None => kept.push(Kept { sign, until }),
    }
}

/// Gives up what is no longer needed.
pub fn tidy() {
    let now = Instant::now();
    let mut gone = Vec::new();
    let mut registry = registry();
    let kept = &mut registry.kept_signs;
    let surplus = kept.len().saturating_sub(MOST);
    for (age, known) in std::mem::take(kept).into_iter().enumerate() {
        let is_needed = known.until.is_none_or(|until| until > now) && age >= surplus;
        if is_needed { kept.push(known) } else { gone.push(known) }
    }
    drop(registry);
    // Outside the lock: the last owner closes files.
    drop(gone);
}
