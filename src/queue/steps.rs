//! Verbs about very many items, in short transactions: others write in between.

use std::time::Instant;

use super::Queue;
use super::run::{Change, Verb};
use crate::error::{Error, Result};
use crate::model::Event;

/// Items of one transaction.
pub(super) const AT_A_TIME: i64 = 1_000;

impl Queue {
    /// Runs a step until it says that nothing is left; returns how many items there were in all.
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

/// What an error says of a change is about its own step; the steps before are committed.
fn after(total: usize, error: Error) -> Error {
    match total {
        0 => error,
        _ => error.retold(|text| {
            format!(
                "{total} items were dealt with before and stay so, call again for the rest; in the last step: {text}"
            )
        }),
    }
}
