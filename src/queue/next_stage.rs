//! The next stage of an item, refused before the transaction begins if it could not be written.

use super::Queue;
use crate::error::{Error, Result};
use crate::model::{LATEST_MS, Need, NextStage, When};
use crate::rules::name;

impl Queue {
    /// The content counts against the limit of the queue that the item goes into.
    pub(super) fn check_next(&self, next: &NextStage) -> Result<()> {
        let longest = next.expires.flatten().into_iter().chain(match next.when {
            When::After(delay) => Some(delay),
            When::Now | When::At(_) => None,
        });
        if let Some(time) = longest.max()
            && self.options.clock.now().ms().saturating_add(time) > LATEST_MS
        {
            return Err(Error::Invalid(format!("a time of {} seconds reaches beyond the year 9999", time / 1000)));
        }
        let children = next.after.iter().filter_map(|need| match need {
            Need::New(new) => Some((**new).clone()),
            Need::Id(_) => None,
        });
        self.prepare_all(children.collect())?;
        let size = next.content.as_ref().map_or(0, |content| content.size);
        let size = size.max(next.headers.iter().flatten().map(String::len).max().unwrap_or(0));
        match next.queue.as_deref().filter(|name| *name != self.name()) {
            None => self.check_size(size),
            Some(queue) => {
                name::check("a queue's name", queue)?;
                let limit = self.settings_of(queue)?.settings.max_bytes();
                if size > limit { Err(Error::TooLarge { size, limit }) } else { Ok(()) }
            }
        }
    }
}
