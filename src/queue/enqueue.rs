//! Enqueueing items, one or many, each at most once per key.

use sha2::{Digest, Sha256};

use super::Queue;
use super::run::{Change, Verb};
use crate::error::{Error, Result};
use crate::model::{Event, Key, KeyName, LATEST_MS, NewItem, Now, Stored, When, checksum};
use crate::rules::key::{Taken, taken};
use crate::rules::room;
use crate::store::NewRow;

/// A checked item, ready to be written once the time is known.
pub(super) struct Prepared {
    pub(super) row: NewRow,
    size: usize,
    when: When,
    key: Option<Key>,
}

impl Prepared {
    /// Fills in the fields that depend on the time of writing.
    fn at(mut self, now: Now) -> Self {
        self.row.run_at = self.when.due(now);
        self.row.key_until = self.key.as_ref().and_then(|key| key.ttl_ms).map(|ttl| now.plus(ttl));
        self
    }

    /// Returns the row as it is written at this time, and its key.
    pub(super) fn written_at(self, now: Now) -> (NewRow, Option<Key>) {
        let Self { row, key, .. } = self.at(now);
        (row, key)
    }
}

impl Key {
    /// Items enqueued after this time still reserve the key, finished or not.
    pub(super) fn since(&self, now: Now) -> Option<i64> {
        self.ttl_ms.map(|ttl| now.ms().saturating_sub(ttl))
    }
}

impl Queue {
    /// Adds one item and returns its id. The item is on disk when the call returns.
    pub fn enqueue(&self, item: NewItem) -> Result<i64> {
        Ok(self.enqueue_many(vec![item])?[0])
    }

    /// Adds all items or none, in one transaction.
    pub fn enqueue_many(&self, items: Vec<NewItem>) -> Result<Vec<i64>> {
        let prepared = items.into_iter().map(|item| self.prepare(item)).collect::<Result<Vec<_>>>()?;
        if prepared.is_empty() {
            self.session()?;
            return Ok(Vec::new());
        }
        self.run(Verb::Enqueue, |tx| {
            self.refresh_settings(tx)?;
            self.check_sizes(&prepared)?;
            let before = self.pending_if_bounded(tx)?;
            let ids = prepared.into_iter().map(|item| self.put(tx, item)).collect::<Result<Vec<_>>>()?;
            self.check_room(tx, before)?;
            tx.tell(Event::Enqueued);
            Ok(ids)
        })
    }

    pub(super) fn put(&self, tx: &Change, item: Prepared) -> Result<i64> {
        let Prepared { row, key, .. } = item.at(tx.now());
        if let (Some(name), Some(key)) = (row.key.clone(), key)
            && let Some((id, status)) = tx.find_key(self.name(), &name, key.since(tx.now()))?
        {
            return match taken(key.on_duplicate, &name, id, status)? {
                Taken::Keep => Ok(id),
                Taken::Replace => tx.replace(id, &row).map(|()| id),
            };
        }
        if let Some(name) = &row.key {
            tx.free_key(self.name(), name)?;
        }
        tx.enqueue(self.name(), row)
    }

    fn pending_if_bounded(&self, tx: &Change) -> Result<Option<i64>> {
        self.settings().settings.max_pending.map(|_| Ok(tx.counts(self.name())?.pending)).transpose()
    }

    /// Refuses an enqueue that made a full queue longer. One that only found its key did not.
    fn check_room(&self, tx: &Change, before: Option<i64>) -> Result<()> {
        let (Some(limit), Some(before)) = (self.settings().settings.max_pending, before) else { return Ok(()) };
        room::check(self.name(), limit, before, tx.counts(self.name())?.pending)
    }

    /// Refuses items that exceed a size limit another process has set meanwhile.
    fn check_sizes(&self, items: &[Prepared]) -> Result<()> {
        let limit = self.settings().settings.max_bytes();
        match items.iter().find(|item| item.size > limit) {
            Some(item) => Err(Error::TooLarge { size: item.size, limit }),
            None => Ok(()),
        }
    }

    /// Refuses every invalid item here, before the write lock is taken.
    pub(super) fn prepare(&self, item: NewItem) -> Result<Prepared> {
        self.check_size(size(&item))?;
        if let When::After(delay) = item.when
            && self.options.clock.now().ms().saturating_add(delay) > LATEST_MS
        {
            return Err(Error::Invalid(format!("a delay of {} seconds reaches beyond the year 9999", delay / 1000)));
        }
        Ok(prepared(item))
    }

    pub(super) fn check_size(&self, size: usize) -> Result<()> {
        if size <= self.settings().settings.max_bytes() {
            return Ok(());
        }
        // The limit is reread, so that an outdated one does not refuse the item.
        let limit = self.latest_settings().max_bytes();
        if size > limit { Err(Error::TooLarge { size, limit }) } else { Ok(()) }
    }
}

/// The size that `max_bytes` limits.
fn size(item: &NewItem) -> usize {
    item.content.size.max(item.headers.as_ref().map_or(0, String::len))
}

/// Prepares an item that was checked before.
pub(super) fn prepared(item: NewItem) -> Prepared {
    let key = item.key.as_ref().map(|key| match &key.name {
        KeyName::Given(name) => name.clone(),
        KeyName::ByContent => content_key(&item.content),
    });
    let size = size(&item);
    let headers = item.headers.as_ref().map(String::as_bytes);
    let checksum = checksum(item.content.text.as_bytes(), item.content.kind.as_bytes(), headers);
    let row = NewRow {
        content: item.content.text,
        content_type: item.content.kind,
        project: item.project,
        source_path: item.source_path,
        doc_date: item.doc_date,
        priority: item.priority,
        run_at: None,
        max_retries: item.max_retries,
        headers: item.headers,
        group: item.group,
        key,
        key_until: None,
        checksum: Some(checksum),
    };
    Prepared { row, size, when: item.when, key: item.key }
}

/// Returns the same key for the same content of the same type, whatever the order of its JSON objects' members.
fn content_key(content: &Stored) -> String {
    let text = sorted_json(content);
    let text = text.as_deref().unwrap_or(&content.text);
    let digest = Sha256::new().chain_update(content.kind).chain_update([0]).chain_update(text).finalize();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Sorts the members of JSON objects. Returns `None` if the content is not JSON or has no object.
fn sorted_json(content: &Stored) -> Option<String> {
    if content.kind != "json" || !content.text.contains('{') {
        return None;
    }
    let mut value: serde_json::Value = serde_json::from_str(&content.text).ok()?;
    value.sort_all_objects();
    serde_json::to_string(&value).ok()
}
