//! Reading without changing anything: items, counts, failures.

use super::Queue;
use super::target::Target;
use super::workers::Worker;
use crate::error::Result;
use crate::model::parse_ms;
use crate::model::{Attempt, Counts, GroupCounts, Item, Status};
use crate::rules::lease::{self, LeaseRecord};
use crate::rules::outcome::ATTEMPTS_KEPT;
use crate::store::{Health, Page, View};

#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub status: Option<Status>,
    pub project: Option<String>,
    pub group: Option<String>,
    /// The last id of the previous page.
    pub after: Option<i64>,
    pub limit: usize,
    pub newest_first: bool,
    /// What was enqueued here, wherever it is now.
    pub home: bool,
}

/// A summary of a queue.
#[derive(Clone, Debug)]
pub struct Stats {
    pub counts: Counts,
    /// How long the oldest claimable item has waited, in milliseconds. Delayed items do not count.
    pub oldest_pending_ms: Option<i64>,
    /// See `Queue::next_due`.
    pub next_due: Option<i64>,
    /// How many of the pending items are not due yet.
    pub delayed: i64,
    /// The first stuck items: their holder is dead, or their lease expired.
    pub stuck: Vec<i64>,
    pub groups: i64,
    pub paused: bool,
    /// See `Queue::worker_is_alive`.
    pub worker_is_alive: bool,
    /// The live holder of the worker lease.
    pub worker: Option<LeaseRecord>,
    /// The workers that serve the queue or hold items of it.
    pub workers: Vec<Worker>,
}

impl Queue {
    /// Returns a summary of the queue, read from one snapshot.
    pub fn stats(&self) -> Result<Stats> {
        self.view(|view| {
            let now = view.now().ms();
            let waiting = view.waiting(self.name())?;
            let enqueued = waiting.oldest.as_deref().and_then(parse_ms);
            // A due item becomes claimable only at the next claim, which may never come. So overdue items are counted
            // here.
            let overdue = waiting.first_due.filter(|due| *due <= now).map(|due| now - due);
            Ok(Stats {
                counts: view.counts(self.name())?,
                oldest_pending_ms: enqueued.map(|enqueued| now.saturating_sub(enqueued).max(0)).max(overdue),
                next_due: self.next_due_in(view, true)?,
                delayed: waiting.delayed,
                stuck: view.stuck_items(self.name(), self.settings().settings.lease_ms())?,
                groups: view.groups(self.name())?,
                paused: view.setting(&self.paused_key())?.is_some(),
                worker_is_alive: self.is_worker_alive_in(view)?,
                workers: self.workers_in(view)?,
                worker: self.lease_holder_in(view, &lease::key(self.name()))?,
            })
        })
    }

    /// When the next event is due that needs a worker, in milliseconds since 1970. That is a delayed item, a retry, a
    /// rate slot that an item waits for, and, if `with_ticks`, a tick.
    pub fn next_due(&self, with_ticks: bool) -> Result<Option<i64>> {
        self.view(|view| self.next_due_in(view, with_ticks))
    }

    fn next_due_in(&self, view: &dyn View, with_ticks: bool) -> Result<Option<i64>> {
        let scout = view.scout(self.name(), self.settings().settings.lease_ms(), true)?;
        self.adopt_settings(scout.settings)?;
        let slot = if scout.ready.is_some() { self.next_start(view)? } else { None };
        Ok(view.next_due(self.name(), with_ticks)?.into_iter().chain(slot).min())
    }

    /// Checks the health of the file and the queue; a thorough check reads the whole file.
    pub fn check(&self, thorough: bool) -> Result<Health> {
        let lease_ms = self.latest_settings().lease_ms();
        self.session()?.store.health(self.name(), self.options.clock.now(), lease_ms, thorough)
    }

    /// The counts of every queue of the file, by name.
    pub fn queues(&self) -> Result<Vec<(String, Counts)>> {
        self.read(|view| view.queues())
    }

    pub fn get(&self, target: impl Into<Target>) -> Result<Option<Item>> {
        let target = &target.into();
        let get = |view: &dyn View| match self.locate(view, target)? {
            Some(id) => view.get(self.name(), id),
            None => Ok(None),
        };
        match target {
            Target::Id(_) => self.read(get),
            Target::Key(_) => self.view(get),
        }
    }

    pub fn items(&self, filter: &Filter) -> Result<Vec<Item>> {
        let page = Page {
            status: filter.status,
            project: filter.project.as_deref(),
            group: filter.group.as_deref(),
            after: filter.after,
            limit: i64::try_from(filter.limit).unwrap_or(i64::MAX),
            newest_first: filter.newest_first,
            home: filter.home,
        };
        self.view(|view| view.items(self.name(), &page))
    }

    /// The latest failures, newest first.
    pub fn failures(&self, limit: usize) -> Result<Vec<Item>> {
        self.view(|view| view.failures(self.name(), i64::try_from(limit).unwrap_or(i64::MAX)))
    }

    /// The items in progress, longest-running first.
    pub fn running(&self, limit: usize) -> Result<Vec<Item>> {
        self.view(|view| view.running(self.name(), i64::try_from(limit).unwrap_or(i64::MAX)))
    }

    pub fn counts(&self) -> Result<Counts> {
        self.read(|view| view.counts(self.name()))
    }

    /// The number of items that are pending or in progress.
    pub fn pending(&self) -> Result<i64> {
        Ok(self.counts()?.unfinished())
    }

    /// The number of items that have not ended and are here, or were enqueued here.
    pub fn uncovered(&self) -> Result<i64> {
        self.view(|view| {
            let counts = view.counts(self.name())?;
            Ok(counts.unfinished() + counts.blocked + view.away(self.name())?)
        })
    }

    /// The items that an item waits for or waited for, in their order; `None` for those that are gone.
    pub fn after(&self, id: i64) -> Result<Vec<Option<Item>>> {
        self.view(|view| view.after(id, i64::MAX)?.into_iter().map(|needed| view.item(needed)).collect())
    }

    /// How an item's attempts ended, oldest first.
    pub fn history(&self, target: &Target) -> Result<Vec<Attempt>> {
        self.view(|view| match self.locate(view, target)? {
            Some(id) => view.history(self.name(), id, ATTEMPTS_KEPT),
            None => Ok(Vec::new()),
        })
    }

    /// The number of unfinished items of each group.
    pub fn group_counts(&self) -> Result<Vec<GroupCounts>> {
        self.read(|view| view.group_counts(self.name()))
    }
}
