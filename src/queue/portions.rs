//! Verbs on very many items, split into short transactions so that others can write in between.

use std::time::Instant;

use super::Queue;
use super::run::{Change, Verb};
use crate::error::{Error, Result};
use crate::model::Event;

/// How many items one transaction changes.
pub(super) const AT_A_TIME: i64 = 1_000;

impl Queue {
    /// Runs a portion after the other until one returns that nothing is left; returns the total number of items.
    pub(super) fn in_portions(
        &self,
        verb: Verb,
        mut portion: impl FnMut(&Change) -> Result<(usize, bool)> + Send,
    ) -> Result<usize> {
        let mut total = 0;
        loop {
            let mut began = Instant::now();
            let changed = self.run(verb, |tx| {
                began = Instant::now();
                let (count, is_more) = portion(tx)?;
                if count > 0 {
                    tx.tell(Event::Changed);
                }
                Ok((count, is_more))
            });
            let (count, is_more) = changed.map_err(|error| after(total, error))?;
            total += count;
            if !is_more {
                return Ok(total);
            }
            if (self.options.interrupted)() {
                return Err(Error::Interrupted);
            }
            self.session()?.store.let_others_write(began.elapsed());
        }
    }
}

/// Adds to the error of a portion how many items the earlier, committed ones changed.
fn after(total: usize, error: Error) -> Error {
    match total {
        0 => error,
        _ => error.retold(|text| {
            format!("{total} items were already processed; call again for the rest. In the last portion: {text}")
        }),
    }
}
