//! The store: bind, run, map rows; one short function per statement.

mod connection;
mod failure;
mod filler;
#[cfg_attr(not(unix), path = "fork_elsewhere.rs")]
mod fork;
#[cfg_attr(not(unix), path = "locks_elsewhere.rs")]
mod locks;
mod migrate;

pub use connection::{Database, Place, Sync};
pub use fork::generation;
#[cfg(feature = "python")]
pub use locks::{COMMIT_CHECK, FORK, LOCKS};

use once_cell::unsync::OnceCell;
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Map, Value};

use crate::clock::Now;
use crate::error::Result;
use crate::item::{Content, Counts, Item, Receipt};
use crate::outcome::Verdict;

/// One statement, one file, one name.
macro_rules! statement {
    ($name:literal) => {
        include_str!(concat!("sql/", $name, ".sql"))
    };
}
use statement;

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
}

/// What a claim writes on a row.
pub struct Grant<'a> {
    pub token: i64,
    pub lease_ms: i64,
    pub worker: &'a str,
}

/// What must still be true of a row for a claim's end to be recorded. A claim made by membox has no token.
/// Its values are raw: another program may have written something that is no number, and the row must come back too.
pub struct Fence {
    id: i64,
    attempt: SqlValue,
    token: SqlValue,
}

impl From<Receipt> for Fence {
    fn from(receipt: Receipt) -> Self {
        Self { id: receipt.id, attempt: receipt.attempt.into(), token: receipt.token.into() }
    }
}

/// A claim whose holder is gone.
pub struct Expired {
    pub fence: Fence,
    pub retries: u32,
    pub max_retries: Option<u32>,
    pub worker: Option<String>,
}

/// What waits for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    pub ready: bool,
    pub due: bool,
    pub expired: bool,
}

/// Which items a page shows.
pub struct Page<'a> {
    pub status: Option<&'a str>,
    pub project: Option<&'a str>,
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
}

impl<'a> Tx<'a> {
    fn new(connection: &'a Connection, now: Now, shape: migrate::Shape) -> Self {
        Self { connection, now, now_text: OnceCell::new(), shape }
    }

    pub fn now(&self) -> Now {
        self.now
    }

    fn now_text(&self) -> &str {
        self.now_text.get_or_init(|| self.now.text())
    }

    pub fn enqueue(&self, queue: &str, row: &NewRow) -> Result<i64> {
        let filler = filler::pending(row.run_at);
        self.connection.prepare_cached(statement!("enqueue"))?.execute(params![
            queue,
            row.content,
            row.content_type,
            row.project,
            row.source_path,
            row.doc_date,
            row.priority,
            row.run_at,
            row.max_retries,
            row.headers,
            self.now_text(),
            filler.0,
            filler.1,
        ])?;
        Ok(self.connection.last_insert_rowid())
    }

    pub fn claim(&self, queue: &str, grant: &Grant) -> Result<Option<Item>> {
        let until = self.now.plus(grant.lease_ms);
        let mut statement = self.connection.prepare_cached(statement!("claim"))?;
        let filler = filler::processing(grant.lease_ms, grant.worker);
        let mut rows = statement.query(params![
            queue,
            grant.token,
            until,
            grant.lease_ms,
            grant.worker,
            self.now_text(),
            filler.0,
            filler.1
        ])?;
        let item = rows.next()?.map(read_item).transpose()?;
        // An UPDATE … RETURNING takes effect when it has been stepped to its end.
        while rows.next()?.is_some() {}
        Ok(item)
    }

    pub fn attention(&self, queue: &str, lease_ms: i64) -> Result<Attention> {
        attention(self.connection, queue, self.now, lease_ms)
    }

    pub fn bring_in_due(&self, queue: &str, limit: usize) -> Result<usize> {
        let mut statement = self.connection.prepare_cached(statement!("bring_in_due"))?;
        let filler = filler::pending(None);
        Ok(statement.execute(params![queue, self.now.ms(), limit as i64, filler.0, filler.1])?)
    }

    pub fn expired(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<Vec<Expired>> {
        let mut statement = self.connection.prepare_cached(statement!("expired"))?;
        let rows = statement.query_map(params![queue, self.now.ms(), lease_ms, limit as i64], read_expired)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn ahead(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<Vec<Expired>> {
        let mut statement = self.connection.prepare_cached(statement!("ahead"))?;
        let rows = statement.query_map(params![queue, self.now.ms(), lease_ms, limit as i64], read_expired)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Writes the verdict if the receipt is still good, and says whether it was.
    pub fn settle(&self, queue: &str, fence: &Fence, verdict: &Verdict) -> Result<bool> {
        let finished = self.now_text();
        let (status, retries, error, result, run_at, finished, gave_up) = match verdict {
            Verdict::Done { result } => ("done", None, None, result.as_deref(), None, Some(finished), false),
            Verdict::Pending { run_at, retries, error } => {
                ("pending", Some(*retries), error.as_deref(), None, *run_at, None, false)
            }
            Verdict::Failed { retries, error, gave_up } => {
                ("failed", Some(*retries), Some(error.as_str()), None, None, Some(finished), *gave_up)
            }
        };
        let filler = if status == "pending" { filler::pending(run_at) } else { filler::finished(status) };
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

    pub fn retry_failed(&self, queue: &str, for_all: Option<u32>, otherwise: u32) -> Result<usize> {
        let mut statement = self.connection.prepare_cached(statement!("retry_failed"))?;
        Ok(statement.execute(params![queue, for_all, otherwise])?)
    }

    pub fn retry(&self, queue: &str, id: i64) -> Result<bool> {
        Ok(self.connection.prepare_cached(statement!("retry"))?.execute(params![id, queue])? == 1)
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
    pub fn holds(&self, queue: &str, receipt: Receipt) -> Result<bool> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("holds"))?;
            Ok(statement.query_row(params![receipt.id, queue, receipt.attempt, receipt.token], |row| row.get(0))?)
        })
    }

    pub fn get(&self, queue: &str, id: i64) -> Result<Option<Item>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("get"))?;
            Ok(statement.query_row(params![id, queue], read_item).optional()?)
        })
    }

    pub fn items(&self, queue: &str, page: &Page) -> Result<Vec<Item>> {
        let sql = if page.newest_first { statement!("items_newest_first") } else { statement!("items_oldest_first") };
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows =
                statement.query_map(params![queue, page.status, page.project, page.after, page.limit], read_item)?;
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

    pub fn counts(&self, queue: &str) -> Result<Counts> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("counts"))?;
            let mut rows = statement.query(params![queue])?;
            let mut counts = Counts::default();
            while let Some(row) = rows.next()? {
                counts.add(&text(row, 0)?.unwrap_or_default(), row.get(1)?);
            }
            Ok(counts)
        })
    }

    pub fn attention(&self, queue: &str, now: Now, lease_ms: i64) -> Result<Attention> {
        self.read(|connection| attention(connection, queue, now, lease_ms))
    }

    pub fn pending(&self, queue: &str) -> Result<i64> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(statement!("pending"))?;
            Ok(statement.query_row(params![queue], |row| row.get(0))?)
        })
    }

    pub fn worker_lease(&self, key: &str) -> Result<Option<String>> {
        self.read(|connection| worker_lease(connection, self.shape(), key))
    }
}

fn attention(connection: &Connection, queue: &str, now: Now, lease_ms: i64) -> Result<Attention> {
    let mut statement = connection.prepare_cached(statement!("attention"))?;
    Ok(statement.query_row(params![queue, now.ms(), lease_ms], |row| {
        Ok(Attention { ready: row.get(0)?, due: row.get(1)?, expired: row.get(2)? })
    })?)
}

fn worker_lease(connection: &Connection, shape: migrate::Shape, key: &str) -> Result<Option<String>> {
    let read = if shape.own_meta { statement!("own_lease_read") } else { statement!("lease_read") };
    let mut statement = connection.prepare_cached(read)?;
    Ok(statement.query_row(params![key], |row| text(row, 0)).optional()?.flatten())
}

fn read_expired(row: &Row) -> rusqlite::Result<Expired> {
    Ok(Expired {
        fence: Fence { id: row.get(0)?, attempt: row.get(1)?, token: row.get(2)? },
        retries: small(row, 3)?.unwrap_or(0),
        max_retries: small(row, 4)?,
        worker: text(row, 5)?,
    })
}

/// The one row mapper; its order is that of every statement that returns items. Other programs write this table too,
/// so no value may make it fail: what cannot be read is said in `damage`.
fn read_item(row: &Row) -> rusqlite::Result<Item> {
    let kind = text(row, 3)?.unwrap_or_default();
    let (content, unreadable) = match content(row.get_ref(2)?, &kind) {
        Ok(content) => (content, None),
        Err((reason, raw)) => (Content::Text(raw), Some(reason)),
    };
    let (headers, bad_headers) = match text(row, 20)?.map(|json| serde_json::from_str::<Map<String, Value>>(&json)) {
        None => (None, None),
        Some(Ok(headers)) => (Some(headers), None),
        Some(Err(error)) => (None, Some(format!("the headers are not a JSON object: {error}"))),
    };
    Ok(Item {
        id: row.get(0)?,
        queue: text(row, 1)?.unwrap_or_default(),
        content,
        damage: unreadable.or(bad_headers),
        project: text(row, 4)?,
        source_path: text(row, 5)?,
        doc_date: text(row, 6)?,
        status: text(row, 7)?.unwrap_or_default(),
        retries: small(row, 8)?.unwrap_or(0),
        error: text(row, 9)?,
        enqueued_at: text(row, 10)?.unwrap_or_default(),
        started_at: text(row, 11)?,
        finished_at: text(row, 12)?,
        priority: integer(row, 13)?.unwrap_or(0),
        run_at: integer(row, 14)?,
        attempt: integer(row, 15)?.unwrap_or(0),
        claim_token: integer(row, 16)?,
        lease_until: integer(row, 17)?,
        worker: text(row, 18)?,
        max_retries: small(row, 19)?,
        headers,
        result: text(row, 21)?,
    })
}

fn content(value: ValueRef, kind: &str) -> std::result::Result<Content, (String, String)> {
    match value {
        ValueRef::Blob(bytes) if kind == "text" => Ok(Content::Bytes(bytes.to_vec())),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Content::from_stored(kind, text.to_owned()),
            Err(error) => {
                Err((format!("the content is not valid UTF-8: {error}"), String::from_utf8_lossy(bytes).into_owned()))
            }
        },
        ValueRef::Integer(number) => Content::from_stored(kind, number.to_string()),
        ValueRef::Real(number) => Content::from_stored(kind, number.to_string()),
        ValueRef::Null => Err(("there is no content".into(), String::new())),
    }
}

fn text(row: &Row, index: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
    })
}

fn integer(row: &Row, index: usize) -> rusqlite::Result<Option<i64>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Real(number) => Some(number as i64),
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    })
}

fn small(row: &Row, index: usize) -> rusqlite::Result<Option<u32>> {
    Ok(integer(row, index)?.map(|number| u32::try_from(number.max(0)).unwrap_or(u32::MAX)))
}
