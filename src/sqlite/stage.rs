//! The statements with which an item goes on to its next stage, on SQLite.

use rusqlite::params;
use rusqlite::types::ValueRef;

use super::rows::text;
use super::{Transaction, padding, statement};
use crate::error::Result;
use crate::model::{NextStage, checksum};
use crate::store::Fence;

impl Transaction<'_> {
    /// Begins the next stage if the claim is still the one the fence names. Returns whether it did.
    pub(super) fn move_on(&self, queue: &str, fence: &Fence, next: &NextStage) -> Result<bool> {
        let fenced = params![fence.id, queue, fence.attempt, fence.token, self.now_text(), self.now.ms()];
        if self.run(statement!("history_moved"), fenced)? == 0 {
            return Ok(false);
        }
        let sum = self.checksum_of(fence.id, next)?;
        let run_at = next.when.due(self.now);
        let expires_at = next.expires.flatten().map(|ms| self.now.plus(ms));
        let padding_bytes = padding::pending(run_at);
        self.let_triggers_fire()?;
        let mut statement = self.connection.prepare_cached(statement!("move_on"))?;
        let changed = statement.execute(params![
            fence.id,
            queue,
            fence.attempt,
            fence.token,
            next.queue,
            next.content.as_ref().map(|content| &content.text),
            next.content.as_ref().map(|content| content.kind),
            sum.is_some(),
            sum.flatten(),
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
            self.now.ms(),
            if next.after.is_empty() { "pending" } else { "blocked" },
        ])?;
        if changed == 1 {
            self.run(statement!("steps_forget"), params![fence.id])?;
            self.run(statement!("after_clear"), params![fence.id])?;
        }
        Ok(changed == 1)
    }

    /// The checksum of the next stage; `None` if it has the content and the headers of the one before.
    fn checksum_of(&self, id: i64, next: &NextStage) -> Result<Option<Option<i64>>> {
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
