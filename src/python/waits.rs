//! Every wait of a caller: short native sleeps, with checks for Python's signals and the interpreter's exit in between.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::interpreter_exit::{self, Native};
use super::signals;
use crate::error::Error;
use crate::model::NewItem;
use crate::queue::{Awaited, Claim, ClaimedItem, Queue};

/// How long to sleep before trying a held lock again.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Repeats `attempt` until it succeeds or the time is up (`None`). It receives the time left, and does the sleeping.
fn until<T>(
    py: Python<'_>,
    limit: Duration,
    mut attempt: impl FnMut(Duration) -> PyResult<Option<T>>,
) -> PyResult<Option<T>> {
    let started = Instant::now();
    loop {
        let left = limit.saturating_sub(started.elapsed());
        let outcome = attempt(left)?;
        if outcome.is_some() || left.is_zero() {
            return Ok(outcome);
        }
        signals::check(py)?;
        interpreter_exit::check(py)?;
    }
}

/// Enqueues all items or none, waiting for room while the queue is full.
pub fn for_room(py: Python<'_>, queue: &Queue, items: Vec<NewItem>, limit: Duration) -> PyResult<Vec<Option<i64>>> {
    if limit.is_zero() {
        return Ok(py.native(|| queue.enqueue_many(items))?);
    }
    let mut waiting = py.native(|| queue.wait_for_room())?;
    let ids = until(py, limit, |left| match py.native(|| queue.enqueue_many(items.clone())) {
        Err(Error::Full { .. }) if !left.is_zero() => {
            py.native(|| queue.sleep(&mut waiting, left))?;
            Ok(None)
        }
        outcome => Ok(Some(outcome?)),
    })?;
    Ok(ids.unwrap_or_default())
}

/// Claims, waiting for an item; empty when the time is up.
pub fn for_items(py: Python<'_>, queue: &Queue, claim: &Claim, limit: Duration) -> PyResult<Vec<ClaimedItem>> {
    if limit.is_zero() {
        return Ok(py.native(|| queue.claim(claim))?);
    }
    let mut waiting = py.native(|| queue.wait_to_claim(claim))?;
    interpreter_exit::check(py)?;
    let held = until(py, limit, |left| {
        let held = py.native(|| queue.claim_or_sleep(&mut waiting, claim, left))?;
        Ok(Some(held).filter(|held| !held.is_empty()))
    })?;
    Ok(held.unwrap_or_default())
}

/// Waits for the end of an item; `None` when the time is up.
pub fn for_ending(py: Python<'_>, queue: &Queue, id: i64, limit: Duration) -> PyResult<Option<Awaited>> {
    let mut waiting = py.native(|| queue.wait_for_ending(id))?;
    until(py, limit, |left| Ok(py.native(|| queue.ended_or_sleep(&mut waiting, id, left))?))
}

/// Acquires a named lock, waiting while it is held. Returns whether it succeeded before the time was up.
pub fn for_lock(py: Python<'_>, limit: Duration, acquire: impl Fn() -> crate::Result<bool> + Sync) -> PyResult<bool> {
    let acquired = until(py, limit, |left| {
        let is_acquired = py.native(&acquire)?;
        if !is_acquired && !left.is_zero() {
            py.native(|| std::thread::sleep(left.min(LOCK_PAUSE)));
        }
        Ok(Some(()).filter(|()| is_acquired))
    })?;
    Ok(acquired.is_some())
}
