//! The enqueue of several items on the caller's own connection.

use super::item::ItemSteps;
use super::{Outcome, Rows, Step, Steps, integer};
use crate::error::Result;
use crate::model::NewItem;
use crate::queue::Queue;
use crate::rules::room;
use crate::store::ForeignStatements;

pub struct ManySteps {
    foreign: &'static dyn ForeignStatements,
    queue: String,
    left: std::vec::IntoIter<ItemSteps>,
    current: Option<ItemSteps>,
    ids: Vec<Option<i64>>,
    max_pending: Option<i64>,
    /// How many items were pending, once that is known.
    before: Option<i64>,
}

impl ManySteps {
    pub fn new(queue: &Queue, items: Vec<NewItem>) -> Result<Self> {
        let now = queue.options().clock.now();
        let items =
            items.into_iter().map(|item| ItemSteps::new(queue, item, now, false)).collect::<Result<Vec<_>>>()?;
        Ok(Self {
            foreign: queue.session()?.store.foreign(),
            queue: queue.name().to_owned(),
            ids: Vec::with_capacity(items.len()),
            left: items.into_iter(),
            current: None,
            max_pending: queue.settings().settings.max_pending,
            before: None,
        })
    }

    fn next_item(&mut self) -> Result<Step> {
        self.current = self.left.next();
        match (&mut self.current, self.max_pending) {
            (Some(item), _) => item.begin(),
            (None, Some(_)) => Ok(Step::Run(self.foreign.counts(&self.queue)?)),
            (None, None) => Ok(Step::Done(Outcome::Ids(std::mem::take(&mut self.ids)))),
        }
    }
}

impl Steps for ManySteps {
    fn begin(&mut self) -> Result<Step> {
        if self.max_pending.is_some() { Ok(Step::Run(self.foreign.counts(&self.queue)?)) } else { self.next_item() }
    }

    fn next(&mut self, rows: &Rows) -> Result<Step> {
        let Some(item) = &mut self.current else {
            let pending = rows.first().map_or(0, |row| integer(row, 0));
            let Some(before) = self.before else {
                self.before = Some(pending);
                return self.next_item();
            };
            self.max_pending.map_or(Ok(()), |limit| room::check(&self.queue, limit, before, pending))?;
            return Ok(Step::Done(Outcome::Ids(std::mem::take(&mut self.ids))));
        };
        match item.next(rows)? {
            Step::Done(Outcome::Ids(ids)) => {
                self.ids.extend(ids);
                self.next_item()
            }
            step => Ok(step),
        }
    }

    fn failed(&mut self) -> Result<Step> {
        self.current.as_mut().map_or(Ok(Step::Fail), Steps::failed)
    }
}
