//! The store: bind, run, map rows; one short function per statement.

mod backup;
mod file;
mod foreign;
mod health;
mod locks;
mod migrate;
mod padding;
mod references;
mod rows;
mod schema;

#[cfg(feature = "python")]
pub use file::ring_all;
pub use file::{Database, Flush, Lent, Place, Wait, has_queue};
pub use foreign::Statement;
pub use health::Health;
#[cfg(feature = "python")]
pub use locks::{COMMIT_CHECK, FORK, LOCKS, install};
pub use locks::{SignOfLife, keep_sign, tidy_signs};
pub use references::Kept;

use once_cell::unsync::OnceCell;
use padding as filler;
use references::References;
use rows::{integer, read_claimed, read_counts, read_delivered, read_item, read_schedule, text};
use rusqlite::types::{FromSql, Value as SqlValue};
use rusqlite::{Connection, OptionalExtension, ToSql, params};

use crate::error::{Error, Result};
use crate::model::Now;
use crate::model::{Attempt, Counts, GroupCounts, Item, Receipt, Schedule};
use crate::rules::outcome::Verdict;
use crate::rules::tick::Timing;

/// One statement, one file, one name.
macro_rules! statement {
    ($name:literal) => {
        include_str!(concat!("sql/", $name, ".sql"))
    };
}
use statement;

/// How many processes are looked at at once.
const HOLDERS_AT_A_TIME: i64 = 256;
/// What is kept of a file's free pages: a part of all, and at least so many.
const KEPT_FREE_PART: i64 = 5;
const KEPT_FREE_PAGES: i64 = 256;

/// A row ready to be inserted.
pub struct NewRow {
    pub content: String,
    pub content_type: &'static str,
    pub project: Option<String>,
    pub source_path: Option<String>,
    pub doc_date: Option<String>,
    pub priority: i64,
    pub run_at: Option<i64>,
    pub max_retries: Option<u32>,
    pub headers: Option<String>,
    pub group: Option<String>,
    pub key: Option<String>,
    pub key_until: Option<i64>,
    /// See `model::checksum`.
    pub checksum: Option<i64>,
}

impl NewRow {
    /// The values of `enqueue.sql`, in its order.
    fn with_values<T>(&self, queue: &str, now: &str, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        let filler = filler::pending(self.run_at);
        run(params![
            queue,
            self.content,
            self.content_type,
            self.project,
            self.source_path,
            self.doc_date,
            self.priority,
            self.run_at,
            self.max_retries,
            self.headers,
            now,
            self.group,
            self.key,
            self.key_until,
            filler.0,
            filler.1,
            self.checksum,
        ])
    }

    /// The values of `replace.sql`, in its order.
    fn with_replacing_values<T>(&self, id: i64, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        run(params![
            id,
            self.content,
            self.content_type,
            self.project,
            self.source_path,
            self.doc_date,
            self.priority,
            self.run_at,
            self.max_retries,
            self.headers,
            self.group,
            self.key_until,
            self.checksum,
        ])
    }
}

/// What a claim writes on a row.
pub struct Grant<'a> {
    pub token: i64,
    pub lease_ms: i64,
    pub worker: &'a str,
    /// What the claims of one `claim_group` have in common.
    pub batch: Option<i64>,
    /// The number by which others see that the process lives.
    pub holder: Option<i64>,
}

/// What must still be true of a row for a claim's end to be recorded. A claim made by membox has no token.
/// Its values are raw: another program may have written something that is no number, and the row must come back too.
pub struct Fence {
    pub id: i64,
    attempt: SqlValue,
    token: SqlValue,
}

impl Fence {
    /// The attempt as a number, for the history.
    pub fn attempt(&self) -> i64 {
        if let SqlValue::Integer(number) = self.attempt { number } else { 0 }
    }
}

impl From<Receipt> for Fence {
    fn from(receipt: Receipt) -> Self {
        Self { id: receipt.id, attempt: receipt.attempt.into(), token: receipt.token.into() }
    }
}

/// A claim as its row has it.
pub struct Claimed {
    pub fence: Fence,
    pub retries: u32,
    pub max_retries: Option<u32>,
    pub worker: Option<String>,
    pub started_at: Option<String>,
    pub cancelled: bool,
    pub batch: Option<i64>,
    /// Who holds it, and for how long a lease was granted; as far as its end needs to know.
    pub holder: Option<i64>,
    pub lease_ms: Option<i64>,
}

/// What is noted about the end of an attempt.
pub struct Note<'a> {
    pub item: i64,
    pub attempt: i64,
    pub ending: &'a str,
    pub worker: Option<&'a str>,
    pub started_at: Option<&'a str>,
    pub error: Option<&'a str>,
}

/// What waits for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attention {
    /// The first claimable item.
    pub ready: Option<i64>,
    pub due: bool,
    pub expired: bool,
    /// A schedule's time has come.
    pub ticking: bool,
    /// A group's rate allows it to go on.
    pub freed: bool,
    pub paused: bool,
    pub settings: StoredSettings,
}

/// What a look at a queue says.
pub struct Forecast {
    pub attention: Attention,
    /// When something happens by itself.
    pub next_event: Option<i64>,
    /// Whether a process that holds items is gone; looked for only where nothing is ready.
    pub has_anyone_died: bool,
}

/// A queue's settings as the file has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSettings {
    pub text: Option<String>,
    pub group_limit: Option<String>,
}

/// A finished item.
pub struct Ended {
    pub id: i64,
    /// Whether its key is not free yet.
    pub is_reserved: bool,
}

/// Which items a page shows.
pub struct Page<'a> {
    pub status: Option<&'a str>,
    pub project: Option<&'a str>,
    pub group: Option<&'a str>,
    pub after: Option<i64>,
    pub limit: i64,
    pub newest_first: bool,
}

/// A write transaction, with the one clock reading everything in it shares.
pub struct Tx<'a> {
    connection: &'a Connection,
    now: Now,
    now_text: OnceCell<String>,
    shape: migrate::Shape,
    references: &'a References,
}

impl<'a> Tx<'a> {
    fn new(connection: &'a Connection, now: Now, shape: migrate::Shape, references: &'a References) -> Self {
        Self { connection, now, now_text: OnceCell::new(), shape, references }
    }

    pub fn now(&self) -> Now {
        self.now
    }

    /// Whether it can still be committed: after some errors SQLite has undone everything by itself.
    pub fn is_open(&self) -> bool {
        !self.connection.is_autocommit()
    }

    fn now_text(&self) -> &str {
        self.now_text.get_or_init(|| self.now.text())
    }

    pub fn enqueue(&self, queue: &str, row: NewRow) -> Result<i64> {
        let mut statement = self.connection.prepare_cached(statement!("enqueue"))?;
        row.with_values(queue, self.now_text(), |values| {
            let mut values = values.iter().enumerate();
            values.try_for_each(|(index, value)| statement.raw_bind_parameter(index + 1, value))
        })?;
        // SQLite has its own copy now; of a large document one copy less is worth it.
        drop(row);
        match statement.raw_execute().map_err(|error| self.not_inserted(error))? {
            0 => Err(self.without_effect("the new item")),
            _ => Ok(self.connection.last_insert_rowid()),
        }
    }

    /// Gives a pending item, which this very transaction has found, new content.
    pub fn replace(&self, id: i64, row: &NewRow) -> Result<()> {
        let mut statement = self.connection.prepare_cached(statement!("replace"))?;
        match row.with_replacing_values(id, |values| statement.execute(values))? {
            0 => Err(self.without_effect(format_args!("item {id}"))),
            _ => Ok(()),
        }
    }

    /// Why a change of our table that nothing stood against has changed nothing.
    pub fn without_effect(&self, what: impl std::fmt::Display) -> Error {
        match self.foreign_triggers() {
            Ok(names) if names.is_empty() => Error::disagreement(what),
            Ok(names) => Error::Storage(format!(
                "{what} was not written: a trigger of the application on ingest_queue ignored the change \
                 (RAISE(IGNORE)), and nothing was stored; change the trigger or drop it: {}",
                names.join(", ")
            )),
            Err(error) => error,
        }
    }

    fn foreign_triggers(&self) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare(statement!("foreign_triggers"))?;
        let names = statement.query_map([], |row| row.get(0))?;
        Ok(names.collect::<rusqlite::Result<_>>()?)
    }

    /// SQLite calls it a full disk when it has no id to give.
    fn not_inserted(&self, error: rusqlite::Error) -> Error {
        let is_full = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull);
        // Without AUTOINCREMENT there is no sqlite_sequence; then SQLite looks for an id that is free.
        let are_used_up =
            || self.connection.query_row(statement!("ids_used_up"), [], |row| row.get(0)).unwrap_or(false);
        if is_full && are_used_up() {
            return Error::Storage(
                "the ids are used up: an item was given the largest there is, 9223372036854775807, and new ones are \
                 larger than all before them; nothing was written. Delete that item, and set `seq` of ingest_queue in \
                 sqlite_sequence to the largest id that is left"
                    .into(),
            );
        }
        error.into()
    }

    /// The item that has a key, and its status.
    pub fn find_key(&self, queue: &str, key: &str, since: Option<i64>) -> Result<Option<(i64, String)>> {
        let mut statement = self.connection.prepare_cached(statement!("find_key"))?;
        let found = statement.query_row(params![queue, key, self.now.ms(), since], |row| {
            Ok((row.get(0)?, text(row, 1)?.unwrap_or_default()))
        });
        Ok(found.optional()?)
    }

    /// Takes a key from an item that was cancelled while it runs.
    pub fn free_key(&self, queue: &str, key: &str) -> Result<()> {
        self.run(statement!("free_key"), params![queue, key])?;
        Ok(())
    }

    pub fn next(&self, queue: &str) -> Result<Option<i64>> {
        self.one(statement!("next"), params![queue])
    }

    pub fn next_in_group(&self, queue: &str, group: &str) -> Result<Option<i64>> {
        self.one(statement!("next_in_group"), params![queue, group])
    }

    /// The first item of a group, if nothing of the group is in work.
    pub fn next_free_in_group(&self, queue: &str, group: &str) -> Result<Option<i64>> {
        self.one(statement!("next_free_in_group"), params![queue, group])
    }

    pub fn next_group(&self, queue: &str) -> Result<Option<i64>> {
        self.one(statement!("next_group"), params![queue])
    }

    pub fn next_beside(&self, queue: &str, id: i64) -> Result<Option<i64>> {
        self.one(statement!("next_beside"), params![queue, id])
    }

    /// The item that comes first, and whether it has a group, which can be taken as a whole.
    pub fn next_batch(&self, queue: &str) -> Result<Option<(i64, bool)>> {
        let mut statement = self.connection.prepare_cached(statement!("next_batch"))?;
        let first = statement.query_row(params![queue], |row| Ok((row.get(0)?, row.get(1)?)));
        Ok(first.optional()?)
    }

    pub fn next_of_batch(&self, queue: &str, head: i64) -> Result<Option<i64>> {
        self.one(statement!("next_of_batch"), params![queue, head])
    }

    fn one<T: FromSql>(&self, sql: &str, values: &[&dyn ToSql]) -> Result<Option<T>> {
        Ok(self.connection.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?)
    }

    pub fn claim(&self, id: i64, grant: &Grant) -> Result<Option<Item>> {
        let until = self.now.plus(grant.lease_ms);
        let mut statement = self.connection.prepare_cached(statement!("claim"))?;
        let filler = filler::processing(grant.lease_ms, grant.worker, grant.holder);
        let changed = statement.execute(params![
            id,
            grant.token,
            until,
            grant.lease_ms,
            grant.worker,
            self.now_text(),
            grant.batch,
            filler.0,
            filler.1,
            grant.holder,
        ])?;
        if changed == 0 {
            return Ok(None);
        }
        let mut statement = self.connection.prepare_cached(statement!("claimed"))?;
        Ok(Some(statement.query_row(params![id], read_delivered)?))
    }

    pub fn rest_of_batch(&self, queue: &str, batch: i64, after: i64) -> Result<Vec<Claimed>> {
        let mut statement = self.connection.prepare_cached(statement!("rest_of_batch"))?;
        let rows = statement.query_map(params![queue, batch, after], read_claimed)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn attention(&self, queue: &str, lease_ms: i64, thorough: bool) -> Result<Attention> {
        attention(self.connection, queue, self.now, lease_ms, thorough)
    }

    pub fn bring_in_due(&self, queue: &str, limit: usize) -> Result<usize> {
        let mut statement = self.connection.prepare_cached(statement!("bring_in_due"))?;
        let filler = filler::pending(None);
        Ok(statement.execute(params![queue, self.now.ms(), limit as i64, filler.0, filler.1])?)
    }

    pub fn expired(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<Vec<Claimed>> {
        expired(self.connection, queue, self.now, lease_ms, limit)
    }

    /// Gives claims of other programs that have neither a lease nor a time one lease from now on.
    pub fn grant(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<()> {
        self.run(statement!("grant"), params![queue, self.now.plus(lease_ms), lease_ms, limit as i64])?;
        Ok(())
    }

    pub fn ahead(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<Vec<Claimed>> {
        let mut statement = self.connection.prepare_cached(statement!("ahead"))?;
        let rows = statement.query_map(params![queue, self.now.ms(), lease_ms, limit as i64], read_claimed)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Writes the verdict if the receipt is still good, and says whether it was.
    pub fn settle(&self, queue: &str, fence: &Fence, verdict: &Verdict, worker: Option<&str>) -> Result<bool> {
        let finished = self.now_text();
        let (status, retries, error, result, run_at, finished, gave_up) = match verdict {
            Verdict::Done { result } => ("done", None, None, result.as_deref(), None, Some(finished), false),
            Verdict::Pending { delay_ms, retries, error } => {
                let run_at = delay_ms.map(|delay| self.now.plus(delay));
                ("pending", Some(*retries), error.as_deref(), None, run_at, None, false)
            }
            Verdict::Failed { retries, error, gave_up } => {
                ("failed", Some(*retries), Some(error.as_str()), None, None, Some(finished), *gave_up)
            }
        };
        let filler = if status == "pending" { filler::pending(run_at) } else { filler::finished(status, worker) };
        let changed = self.connection.prepare_cached(statement!("settle"))?.execute(params![
            fence.id,
            queue,
            fence.attempt,
            fence.token,
            status,
            retries,
            error,
            result,
            run_at,
            finished,
            gave_up,
            filler.0,
            filler.1
        ])?;
        Ok(changed == 1)
    }

    /// Lets a claim that was cancelled while it ran come to rest, and says whether it was one.
    pub fn settle_cancelled(&self, queue: &str, fence: &Fence) -> Result<bool> {
        let mut statement = self.connection.prepare_cached(statement!("settle_cancelled"))?;
        let values = params![fence.id, queue, fence.attempt, fence.token, self.now_text()];
        Ok(statement.execute(values)? == 1)
    }

    pub fn note(&self, note: &Note, kept: i64) -> Result<()> {
        self.connection.prepare_cached(statement!("history_add"))?.execute(params![
            note.item,
            note.attempt,
            note.ending,
            note.worker,
            note.started_at,
            self.now_text(),
            note.error
        ])?;
        if note.attempt > kept {
            self.connection.prepare_cached(statement!("history_trim"))?.execute(params![
                note.item,
                note.attempt,
                kept
            ])?;
        }
        Ok(())
    }

    pub fn extend(&self, queue: &str, receipt: Receipt, lease_ms: i64) -> Result<bool> {
        let until = self.now.plus(lease_ms);
        let changed = self.connection.prepare_cached(statement!("extend"))?.execute(params![
            receipt.id,
            queue,
            receipt.attempt,
            receipt.token,
            until,
            lease_ms
        ])?;
        Ok(changed == 1)
    }

    /// `for_all` is a ceiling in place of every item's own, `otherwise` that of items that have none.
    pub fn retry_failed(
        &self,
        queue: &str,
        id: i64,
        for_all: Option<u32>,
        otherwise: u32,
        run_at: Option<i64>,
    ) -> Result<bool> {
        Ok(self.run(statement!("retry_failed"), params![id, queue, for_all, otherwise, run_at])? == 1)
    }

    pub fn cancel(&self, queue: &str, id: i64) -> Result<bool> {
        let mut statement = self.connection.prepare_cached(statement!("cancel"))?;
        Ok(statement.execute(params![id, queue, self.now_text()])? == 1)
    }

    pub fn cancel_running(&self, queue: &str, id: i64) -> Result<bool> {
        Ok(self.connection.prepare_cached(statement!("cancel_running"))?.execute(params![id, queue])? == 1)
    }

    pub fn run_now(&self, queue: &str, id: i64) -> Result<bool> {
        Ok(self.connection.prepare_cached(statement!("run_now"))?.execute(params![id, queue])? == 1)
    }

    pub fn run_later(&self, queue: &str, id: i64, run_at: Option<i64>) -> Result<bool> {
        Ok(self.connection.prepare_cached(statement!("run_later"))?.execute(params![id, queue, run_at])? == 1)
    }

    pub fn replay(&self, queue: &str, id: i64) -> Result<Option<i64>> {
        let mut statement = self.connection.prepare_cached(statement!("replay"))?;
        let made = statement.execute(params![id, queue, self.now_text()]).map_err(|error| self.not_inserted(error))?;
        if made == 0 && self.one::<bool>(statement!("replayable"), params![id, queue])?.is_some() {
            return Err(self.without_effect(format_args!("the copy of item {id}")));
        }
        Ok((made == 1).then(|| self.connection.last_insert_rowid()))
    }

    pub fn purge(&self, queue: &str, status: &str, limit: i64) -> Result<usize> {
        self.run(statement!("purge"), params![queue, status, limit])
    }

    pub fn ids_between(&self, queue: &str, status: &str, after: i64, until: i64) -> Result<Vec<i64>> {
        let mut statement = self.connection.prepare_cached(statement!("ids_between"))?;
        let rows = statement.query_map(params![queue, status, after, until], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Those of some items that foreign keys of other tables refer to.
    pub fn kept(&self, queue: &str, ids: &[i64]) -> Result<Vec<Kept>> {
        let mut kept = Vec::new();
        for reference in self.references.of(self.connection)?.iter() {
            let found = reference.among(self.connection, queue, ids)?;
            kept.extend(found.into_iter().map(|id| Kept { id, table: reference.table.clone() }));
        }
        Ok(kept)
    }

    /// Whether a foreign key could refer to an item at all.
    pub fn has_references(&self) -> Result<bool> {
        Ok(!self.references.of(self.connection)?.is_empty())
    }

    /// The id so many rows further on, or the last one; `None` after that.
    pub fn id_ahead(&self, id: i64, rows: i64) -> Result<Option<i64>> {
        Ok(self.one::<Option<i64>>(statement!("id_ahead"), params![id, rows])?.flatten())
    }

    /// Finished items that ended before a time (`None`: at any), those after item `after` in the order they ended.
    pub fn ended(&self, queue: &str, status: &str, before: Option<&str>, after: i64, limit: i64) -> Result<Vec<Ended>> {
        // Every time, whatever another program wrote, comes before a blob.
        let before = before.map_or(SqlValue::Blob(Vec::new()), |text| SqlValue::Text(text.into()));
        let mut statement = self.connection.prepare_cached(statement!("ended"))?;
        let rows = statement.query_map(params![queue, status, before, after, self.now.ms(), limit], |row| {
            Ok(Ended { id: row.get(0)?, is_reserved: row.get(1)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Done items of which nobody wrote when they ended, those after item `after`.
    pub fn timeless(&self, queue: &str, after: i64, limit: i64) -> Result<Vec<Ended>> {
        let mut statement = self.connection.prepare_cached(statement!("timeless"))?;
        let rows = statement.query_map(params![queue, after, self.now.ms(), limit], |row| {
            Ok(Ended { id: row.get(0)?, is_reserved: row.get(1)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn drop_content(&self, queue: &str, id: i64) -> Result<()> {
        self.run(statement!("drop_content"), params![id, queue])?;
        Ok(())
    }

    /// Gives pages that nothing is stored in back to the file system, a bounded number, and keeps some for what comes
    /// next. Says whether there are more to give.
    pub fn give_back_space(&self, most: i64) -> Result<bool> {
        let ask = |pragma: &str| -> Result<i64> {
            Ok(self.connection.prepare_cached(pragma)?.query_row([], |row| row.get(0))?)
        };
        if !self.shape.gives_back_space {
            return Ok(false);
        }
        let (free, pages) = (ask("PRAGMA freelist_count")?, ask("PRAGMA page_count")?);
        let spare = free - (pages / KEPT_FREE_PART).max(KEPT_FREE_PAGES);
        if spare > 0 {
            // It gives back a page a step.
            let mut statement = self.connection.prepare(&format!("PRAGMA incremental_vacuum({})", spare.min(most)))?;
            let mut steps = statement.query([])?;
            while steps.next()?.is_some() {}
        }
        Ok(spare > most)
    }

    pub fn add_holder(&self, queue: &str, holder: i64) -> Result<()> {
        self.run(statement!("holder_add"), params![queue, holder])?;
        Ok(())
    }

    pub fn holders(&self, queue: &str) -> Result<Vec<i64>> {
        holders(self.connection, queue)
    }

    pub fn claims_of(&self, queue: &str, holder: i64, limit: usize) -> Result<Vec<Claimed>> {
        claims_of(self.connection, queue, holder, limit)
    }

    pub fn in_process(&self, queue: &str) -> Result<Vec<Claimed>> {
        let mut statement = self.connection.prepare_cached(statement!("in_process"))?;
        let rows = statement.query_map(params![queue], read_claimed)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn remove_holder(&self, queue: &str, holder: i64) -> Result<()> {
        self.run(statement!("holder_remove"), params![queue, holder])?;
        Ok(())
    }

    /// The number of the latest claim that a rate counts; the empty group stands for the queue.
    pub fn last_start(&self, queue: &str, group: &str) -> Result<i64> {
        Ok(self.one::<Option<i64>>(statement!("start_last"), params![queue, group])?.flatten().unwrap_or(0))
    }

    pub fn start_at(&self, queue: &str, group: &str, number: i64) -> Result<Option<i64>> {
        self.one(statement!("start_at"), params![queue, group, number])
    }

    /// Counts a claim and forgets those that no longer matter.
    pub fn add_start(&self, queue: &str, group: &str, number: i64, kept: i64) -> Result<()> {
        self.run(statement!("start_add"), params![queue, group, number, self.now.ms()])?;
        self.run(statement!("start_forget"), params![queue, group, number.saturating_sub(kept)])?;
        Ok(())
    }

    pub fn forget_starts(&self, queue: &str, before: i64, limit: i64) -> Result<usize> {
        self.run(statement!("starts_forget"), params![queue, before, limit])
    }

    /// Takes a group out of the order until its rate allows the next claim.
    pub fn hold_group(&self, queue: &str, group: &str, until: i64) -> Result<()> {
        self.run(statement!("hold_add"), params![queue, group, until])?;
        self.run(statement!("group_moved"), params![queue, group])?;
        Ok(())
    }

    /// Lets groups whose hold is over stand in front again, a bounded number; returns which.
    pub fn free_groups(&self, queue: &str, furthest: i64, limit: usize) -> Result<Vec<String>> {
        let groups: Vec<String> = {
            let mut statement = self.connection.prepare_cached(statement!("holds_over"))?;
            let rows = statement.query_map(params![queue, self.now.ms(), furthest, limit as i64], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        for group in &groups {
            if self.run(statement!("hold_end"), params![queue, group])? == 0 {
                return Err(Error::disagreement(format_args!("the hold of group {group:?}")));
            }
            self.run(statement!("group_moved"), params![queue, group])?;
        }
        Ok(groups)
    }

    pub fn set_schedule(&self, queue: &str, schedule: &Schedule, row: &NewRow) -> Result<()> {
        let (cron, every, tz) = match &schedule.timing {
            Timing::Cron { pattern, tz } => (Some(pattern.as_str()), None, tz.as_str()),
            Timing::Every(every) => (None, Some(*every), "UTC"),
        };
        self.run(
            statement!("schedule"),
            params![
                queue,
                schedule.name,
                cron,
                every,
                tz,
                schedule.next_at,
                row.content,
                row.content_type,
                row.project,
                row.source_path,
                row.doc_date,
                row.priority,
                row.max_retries,
                row.headers,
                row.group,
                row.key,
                row.checksum,
            ],
        )?;
        Ok(())
    }

    pub fn schedules(&self, queue: &str) -> Result<Vec<Schedule>> {
        schedules(self.connection, queue)
    }

    pub fn schedules_due(&self, queue: &str, limit: usize) -> Result<Vec<Schedule>> {
        let mut statement = self.connection.prepare_cached(statement!("schedules_due"))?;
        let rows = statement.query_map(params![queue, self.now.ms(), limit as i64], read_schedule)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn schedule_ticked(&self, queue: &str, name: &str, next_at: i64, id: i64) -> Result<()> {
        match self.run(statement!("schedule_ticked"), params![queue, name, next_at, self.now.ms(), id])? {
            0 => Err(Error::disagreement(format_args!("schedule {name:?}"))),
            _ => Ok(()),
        }
    }

    pub fn move_schedule(&self, queue: &str, name: &str, next_at: i64) -> Result<()> {
        self.run(statement!("schedule_move"), params![queue, name, next_at])?;
        Ok(())
    }

    pub fn unschedule(&self, queue: &str, name: &str) -> Result<bool> {
        Ok(self.run(statement!("unschedule"), params![queue, name])? == 1)
    }

    pub fn next_due(&self, queue: &str) -> Result<Option<i64>> {
        next_due(self.connection, queue, true)
    }

    pub fn set_progress(&self, queue: &str, receipt: Receipt, fraction: f64, note: Option<&str>) -> Result<bool> {
        let values = params![receipt.id, queue, receipt.attempt, receipt.token, fraction, note];
        Ok(self.run(statement!("progress_set"), values)? == 1)
    }

    fn run(&self, sql: &str, values: &[&dyn ToSql]) -> Result<usize> {
        Ok(self.connection.prepare_cached(sql)?.execute(values)?)
    }

    pub fn counts(&self, queue: &str) -> Result<Counts> {
        counts(self.connection, queue)
    }

    pub fn setting(&self, key: &str) -> Result<Option<String>> {
        self.one(statement!("setting"), params![key])
    }

    pub fn settings(&self, queue: &str) -> Result<StoredSettings> {
        settings(self.connection, queue)
    }

    pub fn set_setting(&self, key: &str, value: &str) -> Result<()> {
        self.connection.prepare_cached(statement!("setting_set"))?.execute(params![key, value])?;
        Ok(())
    }

    pub fn clear_setting(&self, key: &str) -> Result<bool> {
        Ok(self.connection.prepare_cached(statement!("setting_clear"))?.execute(params![key])? == 1)
    }

    pub fn groups_moved(&self, queue: &str) -> Result<()> {
        self.connection.prepare_cached(statement!("groups_moved"))?.execute(params![queue])?;
        Ok(())
    }

    pub fn retry(&self, queue: &str, id: i64, run_at: Option<i64>) -> Result<bool> {
        Ok(self.run(statement!("retry"), params![id, queue, run_at])? == 1)
    }

    pub fn delete(&self, queue: &str, id: i64) -> Result<bool> {
        Ok(self.connection.prepare_cached(statement!("delete"))?.execute(params![id, queue])? == 1)
    }

    pub fn worker_lease(&self, key: &str) -> Result<Option<String>> {
        worker_lease(self.connection, self.shape, key)
    }

    pub fn set_worker_lease(&self, key: &str, record: &str) -> Result<()> {
        self.clear_worker_lease(key)?;
        let write = if self.shape.own_meta { statement!("own_lease_write") } else { statement!("lease_write") };
        self.connection.prepare_cached(write)?.execute(params![key, record])?;
        Ok(())
    }

    pub fn clear_worker_lease(&self, key: &str) -> Result<()> {
        let clear = if self.shape.own_meta { statement!("own_lease_clear") } else { statement!("lease_clear") };
        self.connection.prepare_cached(clear)?.execute(params![key])?;
        Ok(())
    }
}

/// What can be asked beside the writer.
impl Database {
    /// `None` when the receipt is stale, else whether its item was cancelled.
    pub fn holds(&self, queue: &str, receipt: Receipt) -> Result<Option<bool>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("holds"))?;
            let values = params![receipt.id, queue, receipt.attempt, receipt.token];
            Ok(statement.query_row(values, |row| row.get(0)).optional()?)
        })
    }

    pub fn get(&self, queue: &str, id: i64) -> Result<Option<Item>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("get"))?;
            Ok(statement.query_row(params![id, queue], read_item).optional()?)
        })
    }

    /// Those of these items that have ended or are gone (`None`), all at one moment.
    pub fn ended_among(&self, queue: &str, ids: &[i64]) -> Result<Vec<(i64, Option<Item>)>> {
        self.read(|connection| {
            let _moment = connection.is_autocommit().then(|| connection.unchecked_transaction()).transpose()?;
            let mut unfinished = connection.prepare_cached(statement!("unfinished"))?;
            let mut get = connection.prepare_cached(statement!("get"))?;
            let mut ended = Vec::new();
            for id in ids {
                if !unfinished.exists(params![id, queue])? {
                    ended.push((*id, get.query_row(params![id, queue], read_item).optional()?));
                }
            }
            Ok(ended)
        })
    }

    /// Whether a claim from there would find an item that is ready.
    pub fn is_ready(&self, queue: &str, group: Option<&str>, whole: bool) -> Result<bool> {
        self.read(|connection| {
            Ok(match (group, whole) {
                (None, false) => connection.prepare_cached(statement!("next"))?.exists(params![queue])?,
                (None, true) => connection.prepare_cached(statement!("next_group"))?.exists(params![queue])?,
                (Some(group), false) => {
                    connection.prepare_cached(statement!("next_in_group"))?.exists(params![queue, group])?
                }
                (Some(group), true) => {
                    connection.prepare_cached(statement!("next_free_in_group"))?.exists(params![queue, group])?
                }
            })
        })
    }

    /// The failed items below their ceiling, in the order of their ids.
    pub fn retriable(&self, queue: &str, for_all: Option<u32>, otherwise: u32) -> Result<Vec<i64>> {
        self.sorted_ids(statement!("retriable"), params![queue, for_all, otherwise])
    }

    pub fn failed_ids(&self, queue: &str) -> Result<Vec<i64>> {
        self.sorted_ids(statement!("failed_ids"), params![queue])
    }

    fn sorted_ids(&self, sql: &str, values: impl rusqlite::Params) -> Result<Vec<i64>> {
        let mut ids: Vec<i64> = self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(values, |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        ids.sort_unstable();
        Ok(ids)
    }

    pub fn get_by_key(&self, queue: &str, key: &str) -> Result<Option<Item>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("get_by_key"))?;
            Ok(statement.query_row(params![key, queue], read_item).optional()?)
        })
    }

    pub fn history(&self, queue: &str, id: i64, most: i64) -> Result<Vec<Attempt>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("history"))?;
            let rows = statement.query_map(params![id, queue, most], |row| {
                Ok(Attempt {
                    attempt: integer(row, 0)?.unwrap_or(0),
                    ending: text(row, 1)?.unwrap_or_default(),
                    worker: text(row, 2)?,
                    started_at: text(row, 3)?,
                    ended_at: text(row, 4)?,
                    error: text(row, 5)?,
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub fn group_counts(&self, queue: &str) -> Result<Vec<GroupCounts>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("group_counts"))?;
            let rows = statement.query_map(params![queue], |row| {
                let group = text(row, 0)?.unwrap_or_default();
                let [pending, processing] = [integer(row, 1)?.unwrap_or(0), integer(row, 2)?.unwrap_or(0)];
                Ok(GroupCounts { group, pending, processing })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// How many groups have unfinished items.
    pub fn groups(&self, queue: &str) -> Result<i64> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("groups"))?;
            Ok(statement.query_row(params![queue], |row| row.get(0))?)
        })
    }

    pub fn schedules(&self, queue: &str) -> Result<Vec<Schedule>> {
        self.read(|connection| schedules(connection, queue))
    }

    /// Whether a group has an item that may be claimed.
    pub fn has_in_group(&self, queue: &str, group: &str) -> Result<bool> {
        self.finds(statement!("next_in_group"), params![queue, group])
    }

    /// Whether a group of which nothing is in progress has an item that may be claimed.
    pub fn has_free_group(&self, queue: &str, group: &str) -> Result<bool> {
        self.finds(statement!("next_free_in_group"), params![queue, group])
    }

    pub fn has_any_free_group(&self, queue: &str) -> Result<bool> {
        self.finds(statement!("next_group"), params![queue])
    }

    /// Whether a group is held beyond a time.
    pub fn is_any_hold_beyond(&self, queue: &str, furthest: i64) -> Result<bool> {
        self.finds(statement!("holds_over"), params![queue, i64::MIN, furthest, 1])
    }

    fn finds(&self, sql: &str, values: &[&dyn ToSql]) -> Result<bool> {
        self.read(|connection| Ok(connection.prepare_cached(sql)?.exists(values)?))
    }

    /// Whether a process that has claimed something of a queue is gone.
    pub fn has_anyone_died(&self, queue: &str) -> Result<bool> {
        let holders = self.read(|connection| holders(connection, queue))?;
        Ok(holders.into_iter().any(|holder| !self.is_alive(holder)))
    }

    /// Whether a claim would last longer than it was granted.
    pub fn is_any_ahead(&self, queue: &str, now: Now, lease_ms: i64) -> Result<bool> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("ahead"))?;
            Ok(statement.exists(params![queue, now.ms(), lease_ms, 1])?)
        })
    }

    /// When the next thing falls due that a worker is wanted for.
    pub fn next_due(&self, queue: &str, with_ticks: bool) -> Result<Option<i64>> {
        self.read(|connection| next_due(connection, queue, with_ticks))
    }

    pub fn last_start(&self, queue: &str, group: &str) -> Result<i64> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("start_last"))?;
            Ok(statement.query_row(params![queue, group], |row| integer(row, 0))?.unwrap_or(0))
        })
    }

    pub fn start_at(&self, queue: &str, group: &str, number: i64) -> Result<Option<i64>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("start_at"))?;
            Ok(statement.query_row(params![queue, group, number], |row| row.get(0)).optional()?)
        })
    }

    pub fn waiting(&self, queue: &str, now: i64) -> Result<(Option<String>, Option<i64>, i64)> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("waiting"))?;
            Ok(statement.query_row(params![queue, now], |row| Ok((text(row, 0)?, integer(row, 1)?, row.get(2)?)))?)
        })
    }

    pub fn setting(&self, key: &str) -> Result<Option<String>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("setting"))?;
            Ok(statement.query_row(params![key], |row| row.get(0)).optional()?)
        })
    }

    pub fn settings(&self, queue: &str) -> Result<StoredSettings> {
        self.read(|connection| settings(connection, queue))
    }

    pub fn items(&self, queue: &str, page: &Page) -> Result<Vec<Item>> {
        let sql = if page.newest_first { statement!("items_newest_first") } else { statement!("items_oldest_first") };
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let values = params![queue, page.status, page.project, page.after, page.limit, page.group];
            let rows = statement.query_map(values, read_item)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub fn failures(&self, queue: &str, limit: i64) -> Result<Vec<Item>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("failures"))?;
            let rows = statement.query_map(params![queue, limit], read_item)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub fn running(&self, queue: &str, limit: i64) -> Result<Vec<Item>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("running"))?;
            let rows = statement.query_map(params![queue, limit], read_item)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub fn counts(&self, queue: &str) -> Result<Counts> {
        self.read(|connection| counts(connection, queue))
    }

    /// The counts of every queue that has ever had an item, by name.
    pub fn queues(&self) -> Result<Vec<(String, Counts)>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("queues"))?;
            let rows = statement.query_map([], |row| Ok((text(row, 6)?.unwrap_or_default(), read_counts(row)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub fn attention(&self, queue: &str, now: Now, lease_ms: i64) -> Result<Attention> {
        self.read(|connection| attention(connection, queue, now, lease_ms, true))
    }

    /// What a claim made now would find, and what happens next without anybody's doing; all at one moment.
    pub fn forecast(&self, queue: &str, now: Now, lease_ms: i64) -> Result<Forecast> {
        let (attention, next_event, holders) = self.read(|connection| {
            let _moment = connection.is_autocommit().then(|| connection.unchecked_transaction()).transpose()?;
            let attention = attention(connection, queue, now, lease_ms, true)?;
            let mut next_event = connection.prepare_cached(statement!("next_event"))?;
            let next_event = next_event.query_row(params![queue, now.ms()], |row| integer(row, 0))?;
            let holders = if attention.ready.is_some() { Vec::new() } else { holders(connection, queue)? };
            Ok((attention, next_event, holders))
        })?;
        let has_anyone_died = holders.into_iter().any(|holder| !self.is_alive(holder));
        Ok(Forecast { attention, next_event, has_anyone_died })
    }

    pub fn worker_lease(&self, key: &str) -> Result<Option<String>> {
        self.read(|connection| worker_lease(connection, self.shape(), key))
    }
}

fn holders(connection: &Connection, queue: &str) -> Result<Vec<i64>> {
    let mut statement = connection.prepare_cached(statement!("holders"))?;
    let rows = statement.query_map(params![queue, HOLDERS_AT_A_TIME], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn expired(connection: &Connection, queue: &str, now: Now, lease_ms: i64, limit: usize) -> Result<Vec<Claimed>> {
    let mut statement = connection.prepare_cached(statement!("expired"))?;
    let rows = statement.query_map(params![queue, now.ms(), lease_ms, limit as i64], read_claimed)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn claims_of(connection: &Connection, queue: &str, holder: i64, limit: usize) -> Result<Vec<Claimed>> {
    let mut statement = connection.prepare_cached(statement!("holder_claims"))?;
    let rows = statement.query_map(params![queue, holder, limit as i64], read_claimed)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn schedules(connection: &Connection, queue: &str) -> Result<Vec<Schedule>> {
    let mut statement = connection.prepare_cached(statement!("schedules"))?;
    let rows = statement.query_map(params![queue], read_schedule)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn counts(connection: &Connection, queue: &str) -> Result<Counts> {
    let mut statement = connection.prepare_cached(statement!("counts"))?;
    Ok(statement.query_row(params![queue], read_counts).optional()?.unwrap_or_default())
}

fn next_due(connection: &Connection, queue: &str, with_ticks: bool) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached(statement!("next_due"))?;
    Ok(statement.query_row(params![queue, with_ticks], |row| integer(row, 0))?)
}

fn settings(connection: &Connection, queue: &str) -> Result<StoredSettings> {
    let mut statement = connection.prepare_cached(statement!("settings"))?;
    let read = |row: &rusqlite::Row| Ok(StoredSettings { text: text(row, 0)?, group_limit: text(row, 1)? });
    Ok(statement.query_row(params![queue], read)?)
}

fn attention(connection: &Connection, queue: &str, now: Now, lease_ms: i64, thorough: bool) -> Result<Attention> {
    let mut statement = connection.prepare_cached(statement!("attention"))?;
    Ok(statement.query_row(params![queue, now.ms(), lease_ms, thorough], |row| {
        Ok(Attention {
            ready: row.get(0)?,
            due: row.get(1)?,
            expired: row.get(2)?,
            ticking: row.get(3)?,
            freed: row.get(4)?,
            paused: row.get(5)?,
            settings: StoredSettings { text: text(row, 6)?, group_limit: text(row, 7)? },
        })
    })?)
}

fn worker_lease(connection: &Connection, shape: migrate::Shape, key: &str) -> Result<Option<String>> {
    let read = if shape.own_meta { statement!("own_lease_read") } else { statement!("lease_read") };
    let mut statement = connection.prepare_cached(read)?;
    Ok(statement.query_row(params![key], |row| text(row, 0)).optional()?.flatten())
}
