//! Looking without touching: items, counts, failures.

use super::Queue;
use super::finish::ATTEMPTS_KEPT;
use crate::error::Result;
use crate::model::parse_ms;
use crate::model::{Attempt, Counts, GroupCounts, Item, Status};
use crate::rules::lease::{self, Record};
use crate::sqlite::{Health, Page};

/// Which items to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub status: Option<Status>,
    pub project: Option<String>,
    pub group: Option<String>,
    /// The last id of the page before.
    pub after: Option<i64>,
    pub limit: usize,
    pub newest_first: bool,
}

/// A queue at a glance.
#[derive(Clone, Debug)]
pub struct Stats {
    pub counts: Counts,
    /// How long the oldest item that waits for a worker has waited, in milliseconds; delayed ones do not.
    pub oldest_pending_ms: Option<i64>,
    /// See `Queue::next_due`.
    pub next_due: Option<i64>,
    /// How many of the pending items wait for a time that has not come.
    pub delayed: i64,
    /// The first items whose claim has ended without an end: the holder is gone, or the lease ran out.
    pub stuck: Vec<i64>,
    pub groups: i64,
    pub paused: bool,
    /// Who holds the worker lease live.
    pub worker: Option<Record>,
}

impl Queue {
    pub fn stats(&self) -> Result<Stats> {
        let database = &self.session()?.database;
        let now = self.options.clock.now().ms();
        let (oldest, first_due, delayed) = database.waiting(self.name(), now)?;
        let waited = oldest.as_deref().and_then(parse_ms).map(|enqueued| now.saturating_sub(enqueued).max(0));
        // What has fallen due joins the order only at the next claim, and there may be nobody who claims.
        let overdue = first_due.filter(|due| *due <= now).map(|due| now - due);
        Ok(Stats {
            counts: self.counts()?,
            oldest_pending_ms: waited.max(overdue),
            next_due: self.next_due(true)?,
            delayed,
            stuck: database.stuck_items(self.name(), self.options.clock.now(), self.settings().settings.lease_ms())?,
            groups: database.groups(self.name())?,
            paused: self.is_paused()?,
            worker: self.lease_holder(&lease::key(self.name()))?,
        })
    }

    /// When the next thing falls due that a worker is wanted for, in milliseconds since 1970: a delayed item, a retry, a
    /// slot of a rate that something waits for, and, if they are to count, a tick.
    pub fn next_due(&self, with_ticks: bool) -> Result<Option<i64>> {
        let (database, now) = (&self.session()?.database, self.options.clock.now());
        let attention = database.attention(self.name(), now, self.settings().settings.lease_ms())?;
        self.take_over(attention.settings)?;
        let slot = if attention.ready.is_some() { self.next_start(now)? } else { None };
        Ok(database.next_due(self.name(), with_ticks)?.into_iter().chain(slot).min())
    }

    /// How the file and the queue fare; a thorough look reads the whole file.
    pub fn check(&self, thorough: bool) -> Result<Health> {
        let lease_ms = self.latest_settings().lease_ms();
        self.session()?.database.health(self.name(), self.options.clock.now(), lease_ms, thorough)
    }

    /// The counts of every queue of the file, by name.
    pub fn queues(&self) -> Result<Vec<(String, Counts)>> {
        self.session()?.database.queues()
    }

    pub fn get(&self, id: i64) -> Result<Option<Item>> {
        self.session()?.database.get(self.name(), id)
    }

    pub fn items(&self, filter: &Filter) -> Result<Vec<Item>> {
        let page = Page {
            status: filter.status.map(Status::as_str),
            project: filter.project.as_deref(),
            group: filter.group.as_deref(),
            after: filter.after,
            limit: i64::try_from(filter.limit).unwrap_or(i64::MAX),
            newest_first: filter.newest_first,
        };
        self.session()?.database.items(self.name(), &page)
    }

    /// The latest failures, newest first.
    pub fn failures(&self, limit: usize) -> Result<Vec<Item>> {
        self.session()?.database.failures(self.name(), i64::try_from(limit).unwrap_or(i64::MAX))
    }

    /// The items that are being worked on, the longest first.
    pub fn running(&self, limit: usize) -> Result<Vec<Item>> {
        self.session()?.database.running(self.name(), i64::try_from(limit).unwrap_or(i64::MAX))
    }

    pub fn counts(&self) -> Result<Counts> {
        self.session()?.database.counts(self.name())
    }

    /// Items that wait or are being worked on.
    pub fn pending(&self) -> Result<i64> {
        Ok(self.counts()?.unfinished())
    }

    /// The newest item with this key.
    pub fn get_by_key(&self, key: &str) -> Result<Option<Item>> {
        self.session()?.database.get_by_key(self.name(), key)
    }

    /// How an item's attempts ended, oldest first.
    pub fn history(&self, id: i64) -> Result<Vec<Attempt>> {
        self.session()?.database.history(self.name(), id, ATTEMPTS_KEPT)
    }

    /// Unfinished items of each group.
    pub fn group_counts(&self) -> Result<Vec<GroupCounts>> {
        self.session()?.database.group_counts(self.name())
    }
}
