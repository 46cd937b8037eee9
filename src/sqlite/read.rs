//! Queries on SQLite, in a write transaction or in parallel with the writer.

use std::collections::HashSet;

use rusqlite::{ToSql, params};

use super::foreign::referring;
use super::rows::{integer, read_content, read_counts, read_item, read_schedule, text};
use super::{Transaction, statement};
use crate::error::Result;
use crate::model::{Attempt, Counts, GroupCounts, Item, Now, Pick, Receipt, RecordedStep, Schedule, Status, StepKind};
use crate::store::{Forecast, Held, Page, Scout, Statement, StoredSettings, View, WaitingItems};

/// How many processes are checked at once.
const HOLDERS_AT_A_TIME: i64 = 256;
/// The largest number of stuck items that is reported.
const MOST_STUCK: usize = 100;

impl View for Transaction<'_> {
    fn now(&self) -> Now {
        self.now
    }

    fn get(&self, queue: &str, id: i64) -> Result<Option<Item>> {
        Ok(self.item(id)?.filter(|item| item.belongs_to(queue)))
    }

    fn item(&self, id: i64) -> Result<Option<Item>> {
        self.first(statement!("item"), params![id], read_item)
    }

    fn after(&self, id: i64, most: i64) -> Result<Vec<i64>> {
        self.all(statement!("after"), params![id, most], |row| row.get(0))
    }

    fn children(&self, id: i64, after: i64, most: i64) -> Result<Vec<i64>> {
        self.all(statement!("children"), params![id, after, most], |row| row.get(0))
    }

    fn needed_by(&self, id: i64, most: i64) -> Result<Vec<i64>> {
        let mut ids: Vec<i64> = self.all(statement!("needed_by"), params![id, most], |row| row.get(0))?;
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(*id));
        Ok(ids)
    }

    fn away(&self, queue: &str) -> Result<i64> {
        Ok(self.one(statement!("away"), params![queue])?.unwrap_or(0))
    }

    fn is_gone(&self, id: i64) -> Result<bool> {
        if self.finds(statement!("priority"), params![id])? {
            return Ok(false);
        }
        let largest: i64 = self.one(statement!("largest_id"), params![])?.unwrap_or(0);
        // Without AUTOINCREMENT there is no sqlite_sequence.
        let latest = self.one(statement!("latest_id"), params![]).unwrap_or(None).unwrap_or(0);
        Ok(id >= 1 && id <= largest.max(latest))
    }

    fn newest_with_key(&self, queue: &str, key: &str) -> Result<Option<i64>> {
        self.one(statement!("newest_with_key"), params![key, queue])
    }

    fn items(&self, queue: &str, page: &Page) -> Result<Vec<Item>> {
        if page.status == Some(Status::Blocked) && !page.home {
            let sql =
                if page.newest_first { statement!("blocked_newest_first") } else { statement!("blocked_oldest_first") };
            return self.items_by_id(sql, params![queue, page.project, page.group, page.after, page.limit]);
        }
        let sql = if page.newest_first { statement!("items_newest_first") } else { statement!("items_oldest_first") };
        let status = page.status.map(Status::as_str);
        self.items_by_id(sql, params![queue, status, page.project, page.after, page.limit, page.group, page.home])
    }

    fn failures(&self, queue: &str, limit: i64) -> Result<Vec<Item>> {
        self.items_by_id(statement!("failures"), params![queue, limit])
    }

    fn running(&self, queue: &str, limit: i64) -> Result<Vec<Item>> {
        self.items_by_id(statement!("running"), params![queue, limit])
    }

    fn ended_among(&self, queue: &str, ids: &[i64]) -> Result<Vec<(i64, Option<Item>)>> {
        let mut unfinished = self.connection.prepare_cached(statement!("unfinished"))?;
        let mut ended = Vec::new();
        for id in ids {
            if !unfinished.exists(params![id, queue])? {
                ended.push((*id, self.get(queue, *id)?));
            }
        }
        Ok(ended)
    }

    fn step(&self, id: i64, stage: i64, name: &str) -> Result<Option<RecordedStep>> {
        let read = |row: &rusqlite::Row| Ok((text(row, 0)?, text(row, 1)?));
        let found = self.first(statement!("step"), params![id, stage, name], read)?;
        Ok(found.map(|(kind, result)| RecordedStep {
            kind: kind.as_deref().and_then(StepKind::parse).unwrap_or(StepKind::Step),
            result: result.unwrap_or_default(),
        }))
    }

    fn history(&self, queue: &str, id: i64, most: i64) -> Result<Vec<Attempt>> {
        self.all(statement!("history"), params![id, queue, most], |row| {
            Ok(Attempt {
                attempt: integer(row, 0)?.unwrap_or(0),
                ending: text(row, 1)?.unwrap_or_default(),
                worker: text(row, 2)?,
                started_at: text(row, 3)?,
                ended_at: text(row, 4)?,
                error: text(row, 5)?,
                queue: text(row, 6)?.unwrap_or_default(),
                stage: integer(row, 7)?.unwrap_or(0),
                content: read_content(row, 8, 9)?,
            })
        })
    }

    fn counts(&self, queue: &str) -> Result<Counts> {
        self.write_counts()?;
        Ok(self.first(statement!("counts"), params![queue], read_counts)?.unwrap_or_default())
    }

    fn queues(&self) -> Result<Vec<(String, Counts)>> {
        self.write_counts()?;
        self.all(statement!("queues"), params![], |row| Ok((text(row, 6)?.unwrap_or_default(), read_counts(row)?)))
    }

    fn group_counts(&self, queue: &str) -> Result<Vec<GroupCounts>> {
        self.all(statement!("group_counts"), params![queue], |row| {
            let group = text(row, 0)?.unwrap_or_default();
            let [pending, processing] = [integer(row, 1)?.unwrap_or(0), integer(row, 2)?.unwrap_or(0)];
            Ok(GroupCounts { group, pending, processing })
        })
    }

    fn groups(&self, queue: &str) -> Result<i64> {
        Ok(self.one(statement!("groups"), params![queue])?.unwrap_or(0))
    }

    fn waiting(&self, queue: &str) -> Result<WaitingItems> {
        let mut statement = self.connection.prepare_cached(statement!("waiting"))?;
        Ok(statement.query_row(params![queue, self.now.ms()], |row| {
            Ok(WaitingItems { oldest: text(row, 0)?, first_due: integer(row, 1)?, delayed: row.get(2)? })
        })?)
    }

    fn holds(&self, queue: &str, receipt: Receipt) -> Result<Option<bool>> {
        self.one(statement!("holds"), params![receipt.id, queue, receipt.attempt, receipt.token, self.now.ms()])
    }

    fn references_to(&self, queue: &str, id: i64) -> Result<Vec<(String, Statement)>> {
        let references = self.database.references().of(self.connection)?;
        Ok(references.iter().map(|one| (one.table.clone(), referring(one.question(), id, queue))).collect())
    }

    fn retriable(&self, queue: &str, for_all: Option<u32>, otherwise: u32) -> Result<Vec<i64>> {
        self.sorted_ids(statement!("retriable"), params![queue, for_all, otherwise])
    }

    fn finished_ids(&self, queue: &str, status: Status) -> Result<Vec<i64>> {
        self.sorted_ids(statement!("finished_ids"), params![queue, status.as_str()])
    }

    fn scout(&self, queue: &str, lease_ms: i64, thorough: bool) -> Result<Scout> {
        let mut statement = self.connection.prepare_cached(statement!("scout"))?;
        let now = self.now.ms();
        Ok(statement.query_row(params![queue, now, lease_ms, thorough], |row| {
            let times = [1, 2, 3, 4, 8].map(|index| integer(row, index));
            let [due, expired, ticking, freed, expires] = times;
            let (due, expired, ticking, freed, expires) = (due?, expired?, ticking?, freed?, expires?);
            let is_over = |time: Option<i64>| time.is_some_and(|time| time <= now);
            Ok(Scout {
                ready: row.get(0)?,
                due: is_over(due) || row.get(10)?,
                expired: is_over(expired) || row.get(11)?,
                ticking: is_over(ticking),
                freed: is_over(freed),
                paused: row.get(5)?,
                settings: StoredSettings { text: text(row, 6)?, group_limit: text(row, 7)? },
                flow: is_over(expires) || row.get(9)?,
                next_event: [due, expired, ticking, freed, expires].into_iter().flatten().min(),
            })
        })?)
    }

    fn forecast(&self, queue: &str, lease_ms: i64) -> Result<Forecast> {
        let scout = self.scout(queue, lease_ms, true)?;
        let mut next_event = self.connection.prepare_cached(statement!("next_event"))?;
        let next_event = next_event.query_row(params![queue, self.now.ms()], |row| integer(row, 0))?;
        let has_anyone_died = scout.ready.is_none() && self.has_anyone_died(queue)?;
        Ok(Forecast { scout, next_event, has_anyone_died })
    }

    fn is_ready(&self, queue: &str, pick: &Pick) -> Result<bool> {
        match pick {
            Pick::Queue => self.finds(statement!("next"), params![queue]),
            Pick::Group(group) => self.finds(statement!("next_in_group"), params![queue, group]),
            Pick::WholeGroup(group) => self.finds(statement!("next_free_in_group"), params![queue, group]),
            Pick::GroupOrOne => self.finds(statement!("next_batch"), params![queue]),
        }
    }

    fn next_due(&self, queue: &str, with_ticks: bool) -> Result<Option<i64>> {
        let mut statement = self.connection.prepare_cached(statement!("next_due"))?;
        Ok(statement.query_row(params![queue, with_ticks], |row| integer(row, 0))?)
    }

    fn is_blocked_by_work(&self, queue: &str) -> Result<bool> {
        self.finds(statement!("blocked_by_work"), params![queue, self.now.ms()])
    }

    fn holders(&self, queue: &str) -> Result<Vec<i64>> {
        self.all(statement!("holders"), params![queue, HOLDERS_AT_A_TIME], |row| row.get(0))
    }

    fn has_anyone_died(&self, queue: &str) -> Result<bool> {
        Ok(self.holders(queue)?.into_iter().any(|holder| !self.database.is_alive(holder)))
    }

    fn stuck_items(&self, queue: &str, lease_ms: i64) -> Result<Vec<i64>> {
        let mut claims = self.expired(queue, lease_ms, MOST_STUCK)?;
        for holder in self.holders(queue)?.into_iter().filter(|holder| !self.database.is_alive(*holder)) {
            claims.extend(self.claims_of(queue, holder, MOST_STUCK)?);
        }
        let mut ids = claims.into_iter().map(|claim| claim.fence.id).collect::<Vec<_>>();
        ids.sort_unstable();
        ids.dedup();
        ids.truncate(MOST_STUCK);
        Ok(ids)
    }

    fn is_any_ahead(&self, queue: &str, lease_ms: i64) -> Result<bool> {
        self.finds(statement!("ahead"), params![queue, self.now.ms(), lease_ms, 1])
    }

    fn is_any_hold_beyond(&self, queue: &str, furthest: i64) -> Result<bool> {
        self.finds(statement!("holds_over"), params![queue, i64::MIN, furthest, 1])
    }

    fn last_start(&self, queue: &str, group: &str) -> Result<i64> {
        let last = self.first(statement!("start_last"), params![queue, group], |row| integer(row, 0))?;
        Ok(last.flatten().unwrap_or(0))
    }

    fn start_at(&self, queue: &str, group: &str, number: i64) -> Result<Option<i64>> {
        self.one(statement!("start_at"), params![queue, group, number])
    }

    fn schedules(&self, queue: &str) -> Result<Vec<Schedule>> {
        self.all(statement!("schedules"), params![queue], read_schedule)
    }

    fn setting(&self, key: &str) -> Result<Option<String>> {
        self.one(statement!("setting"), params![key])
    }

    fn settings(&self, queue: &str) -> Result<StoredSettings> {
        if let Some(known) = self.writer.and_then(|writer| writer.settings.of(queue)) {
            return Ok(known);
        }
        let mut statement = self.connection.prepare_cached(statement!("settings"))?;
        let read = |row: &rusqlite::Row| Ok(StoredSettings { text: text(row, 0)?, group_limit: text(row, 1)? });
        let stored = statement.query_row(params![queue], read)?;
        if let Some(writer) = self.writer {
            writer.settings.learn(queue, &stored);
        }
        Ok(stored)
    }

    fn worker_lease(&self, key: &str) -> Result<Option<String>> {
        let read = |sql| Ok(self.first(sql, params![key], |row| text(row, 0))?.flatten());
        // Our own table first: a drain asks before each claim, and there one query is enough.
        match read(statement!("own_lease_read"))? {
            None if !self.lease_is_ours()? => read(statement!("lease_read")),
            found => Ok(found),
        }
    }

    fn shares_leases_with_membox(&self) -> Result<bool> {
        Ok(!self.lease_is_ours()?)
    }

    fn worker_records(&self, most: usize) -> Result<Vec<(String, String)>> {
        self.all(statement!("workers"), params![most as i64], |row| {
            Ok((text(row, 0)?.unwrap_or_default(), text(row, 1)?.unwrap_or_default()))
        })
    }

    fn held(&self, queue: &str, most: usize) -> Result<Vec<Held>> {
        self.all(statement!("held"), params![queue, most as i64], |row| {
            let [worker, started_at] = [text(row, 2)?, text(row, 3)?];
            Ok(Held { id: row.get(0)?, holder: integer(row, 1)?, worker, started_at })
        })
    }
}

impl Transaction<'_> {
    /// Returns the items whose ids a statement finds, in its order.
    fn items_by_id(&self, sql: &str, values: &[&dyn ToSql]) -> Result<Vec<Item>> {
        let ids: Vec<i64> = self.all(sql, values, |row| row.get(0))?;
        ids.into_iter().filter_map(|id| self.item(id).transpose()).collect()
    }
}
