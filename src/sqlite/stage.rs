//! The statements with which an item goes on to its next stage, on SQLite.

use rusqlite::types::ValueRef;
use rusqlite::{ToSql, params};

use super::rows::text;
use super::{Transaction, padding, statement};
use crate::error::Result;
use crate::model::{NextStage, Now, checksum};
use crate::store::Fence;

impl Transaction<'_> {
    /// The checksum of the next stage; `None` if it has the content and the headers of the one before.
    pub(super) fn checksum_of(&self, id: i64, next: &NextStage) -> Result<Option<Option<i64>>> {
        let sum = |text: &[u8], kind: &[u8], headers: Option<&str>| checksum(text, kind, headers.map(str::as_bytes));
        let (content, headers) = (&next.content, &next.headers);
        if content.is_none() && headers.is_none() {
            return Ok(None);
        }
        if let (Some(content), Some(headers)) = (content, headers) {
            return Ok(Some(Some(sum(content.text.as_bytes(), content.kind.as_bytes(), headers.as_deref()))));
        }
        let read = |row: &rusqlite::Row| {
            let kept = text(row, 2)?;
            let headers = headers.as_ref().map_or(kept.as_deref(), |given| given.as_deref());
            Ok(match (content, row.get_ref(0)?, row.get_ref(1)?) {
                (Some(content), ..) => Some(sum(content.text.as_bytes(), content.kind.as_bytes(), headers)),
                (None, ValueRef::Text(text), ValueRef::Text(kind)) => Some(sum(text, kind, headers)),
                // What another program wrote, as it could not have been enqueued.
                _ => None,
            })
        };
        self.first(statement!("kept_content"), params![id, content.is_none()], read)
    }
}

/// The checksum of a next stage as far as it can be computed without reading the row; otherwise it has none.
pub(super) fn checksum_given(next: &NextStage) -> Option<Option<i64>> {
    match (&next.content, &next.headers) {
        (None, None) => None,
        (Some(content), Some(headers)) => {
            let headers = headers.as_deref().map(str::as_bytes);
            Some(Some(checksum(content.text.as_bytes(), content.kind.as_bytes(), headers)))
        }
        _ => Some(None),
    }
}

/// The values of `move_on.sql`, in its order.
pub(super) fn with_next_stage<T>(
    queue: &str,
    fence: &Fence,
    next: &NextStage,
    now: Now,
    checksum: Option<Option<i64>>,
    run: impl FnOnce(&[&dyn ToSql]) -> T,
) -> T {
    let run_at = next.when.due(now);
    let expires_at = next.expires.flatten().map(|ms| now.plus(ms));
    let padding_bytes = padding::pending(run_at);
    run(params![
        fence.id,
        queue,
        fence.attempt,
        fence.token,
        next.queue,
        next.content.as_ref().map(|content| &content.text),
        next.content.as_ref().map(|content| content.kind),
        checksum.is_some(),
        checksum.flatten(),
        next.priority,
        run_at,
        next.headers.is_some(),
        next.headers.as_ref().and_then(Option::as_ref),
        next.group.is_some(),
        next.group.as_ref().and_then(Option::as_ref),
        next.project.is_some(),
        next.project.as_ref().and_then(Option::as_ref),
        next.max_retries.is_some(),
        next.max_retries.flatten(),
        next.expires.is_some(),
        expires_at,
        padding_bytes.0,
        padding_bytes.1,
        now.ms(),
        if next.after.is_empty() { "pending" } else { "blocked" },
    ])
}
