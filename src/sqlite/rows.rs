//! Row mappers. Other programs may have written the rows, so no value may make reading one fail.

use arc_swap::ArcSwapOption;
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde_json::{Map, Value};

use crate::model::{
    self, Content, Counts, Item, Key, KeyName, NewItem, OnDuplicate, Schedule, Stored, checksum, read_json,
};
use crate::rules::tick::Timing;
use crate::store::{Claimed, Fence};

pub fn read_claimed(row: &Row) -> rusqlite::Result<Claimed> {
    Ok(Claimed {
        fence: Fence { id: row.get(0)?, attempt: row.get(1)?, token: row.get(2)? },
        retries: small(row, 3)?.unwrap_or(0),
        max_retries: small(row, 4)?,
        worker: text(row, 5)?,
        started_at: text(row, 6)?,
        cancelled: integer(row, 7)? == Some(1),
        batch: integer(row, 8)?,
        holder: integer(row, 9)?,
        lease_ms: integer(row, 10)?,
        has_group: row.get(11)?,
        awaits_renewal: false,
    })
}

pub fn read_counts(row: &Row) -> rusqlite::Result<Counts> {
    let count = |index| Ok::<_, rusqlite::Error>(integer(row, index)?.unwrap_or(0));
    Ok(Counts {
        pending: count(0)?,
        processing: count(1)?,
        done: count(2)?,
        failed: count(3)?,
        blocked: count(4)?,
        cancelled: count(5)?,
    })
}

/// The only row mapper for items; it reads the columns of `item.sql`. Other programs write this table too, so no value
/// may make it fail. `damage` describes what cannot be read.
pub fn read_item(row: &Row) -> rusqlite::Result<Item> {
    let kind = text(row, 3)?.unwrap_or_default();
    let (content, unreadable) = match content(row.get_ref(2)?, &kind) {
        Ok(content) => (content, None),
        Err((reason, raw)) => (Content::Text(raw), Some(reason)),
    };
    let (headers, bad_headers) = match text(row, 19)?.map(|json| headers(&json)) {
        None => (None, None),
        Some(Ok(headers)) => (Some(headers), None),
        Some(Err(reason)) => (None, Some(reason)),
    };
    Ok(Item {
        id: row.get(0)?,
        queue: text(row, 1)?.unwrap_or_default(),
        home: text(row, 26)?,
        stage: integer(row, 27)?.unwrap_or(0),
        parent: integer(row, 28)?,
        expires_at: integer(row, 29)?,
        content: ArcSwapOption::from_pointee(content),
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
        lease_until: integer(row, 16)?,
        worker: text(row, 17)?,
        max_retries: small(row, 18)?,
        headers,
        result: text(row, 20)?,
        group: text(row, 21)?,
        key: text(row, 22)?,
        progress: if let ValueRef::Real(part) = row.get_ref(24)? { Some(part) } else { None },
        progress_note: text(row, 25)?,
    })
}

/// Reads an item about to be delivered, and compares it with the checksum of what was enqueued.
pub fn read_delivered(row: &Row) -> rusqlite::Result<Item> {
    let mut item = read_item(row)?;
    let is_intact = match row.get_ref(23)? {
        ValueRef::Null => true,
        ValueRef::Integer(sum) => stored_sum(row)? == Some(sum),
        _ => false,
    };
    if !is_intact {
        item.damage = Some(
            "the stored content does not match its checksum: it was damaged after it was enqueued. Restore it, or set \
             its checksum to NULL to take it as it is"
                .into(),
        );
    }
    Ok(item)
}

/// Computes the checksum of a row; `None` if its columns do not have the types that an enqueue writes.
fn stored_sum(row: &Row) -> rusqlite::Result<Option<i64>> {
    let headers = match row.get_ref(19)? {
        ValueRef::Null => None,
        ValueRef::Text(headers) => Some(headers),
        _ => return Ok(None),
    };
    Ok(match (row.get_ref(2)?, row.get_ref(3)?) {
        (ValueRef::Text(content), ValueRef::Text(kind)) => Some(checksum(content, kind, headers)),
        _ => None,
    })
}

/// The only row mapper for schedules. A pattern that another program damaged is detected at its tick.
pub fn read_schedule(row: &Row) -> rusqlite::Result<Schedule> {
    let tz = text(row, 3)?.unwrap_or_default();
    let timing = match text(row, 1)? {
        Some(pattern) => Timing::Cron { pattern, tz },
        None => Timing::Every(integer(row, 2)?.unwrap_or(0)),
    };
    let content = text(row, 7)?.unwrap_or_default();
    let content = match text(row, 8)?.as_deref() {
        Some("json") => Stored::json(content),
        Some("base64") => Stored { kind: "base64", size: content.len(), text: content },
        _ => Stored::text(content),
    };
    let key =
        text(row, 16)?.map(|name| Key { name: KeyName::Given(name), ttl_ms: None, on_duplicate: OnDuplicate::Return });
    Ok(Schedule {
        name: text(row, 0)?.unwrap_or_default(),
        timing,
        next_at: integer(row, 4)?.unwrap_or(0),
        last_at: integer(row, 5)?,
        last_id: integer(row, 6)?,
        item: NewItem {
            project: text(row, 9)?,
            source_path: text(row, 10)?,
            doc_date: text(row, 11)?,
            priority: integer(row, 12)?.unwrap_or(0),
            max_retries: small(row, 13)?,
            headers: text(row, 14)?,
            group: text(row, 15)?,
            key,
            ..NewItem::new(content)
        },
        checksum: integer(row, 17)?,
    })
}

fn headers(json: &str) -> std::result::Result<Map<String, Value>, String> {
    match read_json(json) {
        Ok(Value::Object(headers)) => Ok(headers),
        Ok(_) => Err("the headers are not a JSON object".into()),
        Err(reason) => Err(format!("the text of the headers {reason}")),
    }
}

/// Reads content and its type from two columns. What cannot be read as its type is the raw text.
pub fn read_content(row: &Row, index: usize, kind: usize) -> rusqlite::Result<Option<Content>> {
    let value = row.get_ref(index)?;
    if matches!(value, ValueRef::Null) {
        return Ok(None);
    }
    let kind = text(row, kind)?.unwrap_or_default();
    Ok(Some(content(value, &kind).unwrap_or_else(|(_, raw)| Content::Text(raw))))
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

pub fn text(row: &Row, index: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
    })
}

pub fn integer(row: &Row, index: usize) -> rusqlite::Result<Option<i64>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Real(number) => Some(number as i64),
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    })
}

fn small(row: &Row, index: usize) -> rusqlite::Result<Option<u32>> {
    Ok(integer(row, index)?.map(|number| u32::try_from(number.max(0)).unwrap_or(u32::MAX)))
}

impl FromSql for model::Value {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(_) => Self::Text(value.as_str()?.to_owned()),
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_vec()),
        })
    }
}

impl ToSql for model::Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
