//! Processes that died with items in hand: noticed by the lock the system dropped, not by a lease that runs out.

use std::time::{Duration, Instant};

use super::Queue;
use crate::error::Result;
use crate::sqlite::Tx;

/// How many claims of a dead process are taken back at once; the rest is left to the next look.
const CLAIMS_AT_A_TIME: usize = 16;
/// A claim that finds something does not look for the dead more often than this.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Queue {
    /// Takes back what processes that are gone held in this queue, a few at a time. Says whether anything came back.
    pub(super) fn take_back_from_dead(&self, tx: &Tx) -> Result<bool> {
        let session = self.session()?;
        *session.looked_for_dead_at.lock() = Some(Instant::now());
        let mut came_back = false;
        for holder in tx.holders(self.name())? {
            if session.database.is_alive(holder) {
                continue;
            }
            let claims = tx.claims_of(self.name(), holder, CLAIMS_AT_A_TIME)?;
            came_back |= !claims.is_empty();
            let is_all = claims.len() < CLAIMS_AT_A_TIME;
            self.take_back(tx, &claims)?;
            if is_all {
                tx.remove_holder(self.name(), holder)?;
            }
        }
        Ok(came_back)
    }

    pub(super) fn is_time_to_look_for_dead(&self) -> Result<bool> {
        Ok(self.session()?.looked_for_dead_at.lock().is_none_or(|last| last.elapsed() >= LOOK_EVERY))
    }
}
