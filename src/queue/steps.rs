//! Verbs on very many items, split into short transactions so that others can write in between.

use std::time::Instant;

use super::Queue;
use super::run::{Change, Verb};
use crate::error::{Error, Result};
use crate::model::Event;

/// How many items one transaction changes.
pub(super) const AT_A_TIME: i64 = 1_000;

impl Queue {
    /// Runs a step until it returns that nothing is left; returns the total number of items.
    pub(super) fn in_steps(
        &self,
        verb: Verb,
        mut step: impl FnMut(&Change) -> Result<(usize, bool)> + Send,
    ) -> Result<usize> {
        let mut total = 0;
        loop {
            let mut began = Instant::now();
            let stepped = self.run(verb, |tx| {
                began = Instant::now();
                let (count, is_more) = step(tx)?;
                if count > 0 {
                    tx.tell(Event::Changed);
                }
                Ok((count, is_more))
            });
            let (count, is_more) = stepped.map_err(|error| after(total, error))?;
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

/// Adds to a step's error how many items the earlier, committed steps changed.
fn after(total: usize, error: Error) -> Error {
    match total {
        0 => error,
        _ => error.retold(|text| {
            format!("{total} items were already processed; call again for the rest. In the last step: {text}")
        }),
    }
}
