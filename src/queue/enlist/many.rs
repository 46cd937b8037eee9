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
    left: std::vec::IntoIter<ItemSteps>,
    current: Option<ItemSteps>,
    ids: Vec<Option<i64>>,
    /// The queues that have a limit.
    bounded: Vec<Bounded>,
    /// How many of them were counted, before the items and after.
    counted: usize,
}

struct Bounded {
    queue: String,
    max_pending: i64,
    /// How many items were pending, once that is known.
    before: i64,
}

impl ManySteps {
    pub fn new(queue: &Queue, items: Vec<NewItem>) -> Result<Self> {
        let now = queue.options().clock.now();
        let (destinations, puts) = queue.prepare_all(items)?;
        let queues = destinations.iter().map(|destination| destination.stored(queue)).collect::<Vec<_>>();
        let items = puts.into_iter().map(|put| ItemSteps::new(queue, queues[put.queue].name, put, now, None));
        let items = items.collect::<Result<Vec<_>>>()?;
        let bounded = queues.iter().filter_map(|each| {
            each.max_pending.map(|max_pending| Bounded { queue: each.name.to_owned(), max_pending, before: 0 })
        });
        Ok(Self {
            foreign: queue.session()?.store.foreign(),
            ids: Vec::with_capacity(items.len()),
            left: items.into_iter(),
            current: None,
            bounded: bounded.collect(),
            counted: 0,
        })
    }

    /// Counts the next queue that has a limit: all of them before the items, and all again after them.
    fn next_step(&mut self) -> Result<Step> {
        if self.counted == self.bounded.len() {
            self.current = self.left.next();
            if let Some(item) = &mut self.current {
                return item.begin();
            }
        }
        match self.bounded.get(self.counted % self.bounded.len().max(1)) {
            Some(bounded) if self.counted < 2 * self.bounded.len() => {
                Ok(Step::Run(self.foreign.counts(&bounded.queue)?))
            }
            _ => Ok(Step::Done(Outcome::Ids(std::mem::take(&mut self.ids)))),
        }
    }
}

impl Steps for ManySteps {
    fn begin(&mut self) -> Result<Step> {
        self.next_step()
    }

    fn next(&mut self, rows: &Rows) -> Result<Step> {
        let Some(item) = &mut self.current else {
            let pending = rows.first().map_or(0, |row| integer(row, 0));
            let count = self.bounded.len();
            let bounded = &mut self.bounded[self.counted % count];
            if self.counted < count {
                bounded.before = pending;
            } else {
                room::check(&bounded.queue, bounded.max_pending, bounded.before, pending)?;
            }
            self.counted += 1;
            return self.next_step();
        };
        match item.next(rows)? {
            Step::Done(Outcome::Ids(ids)) => {
                self.ids.extend(ids);
                self.next_step()
            }
            step => Ok(step),
        }
    }

    fn failed(&mut self) -> Result<Step> {
        self.current.as_mut().map_or(Ok(Step::Fail), Steps::failed)
    }
}
