//! Enqueueing items, one or many, each at most once per key.

use sha2::{Digest, Sha256};

use super::Queue;
use super::run::Verb;
use crate::error::{Error, Result};
use crate::model::{Event, KeyName, LATEST_MS, NewItem, Stored, When, checksum};
use crate::store::{Enqueue, Enqueued, NewRow, Put};

impl Queue {
    /// Adds one item and returns its id. The item is on disk when the call returns. Returns `None` if the item was
    /// skipped, because its key is in use.
    pub fn enqueue(&self, item: NewItem) -> Result<Option<i64>> {
        Ok(self.enqueue_many(vec![item])?[0])
    }

    /// Adds all items or none, in one transaction.
    pub fn enqueue_many(&self, items: Vec<NewItem>) -> Result<Vec<Option<i64>>> {
        let mut largest = 0;
        let mut puts = Vec::with_capacity(items.len());
        for item in items {
            largest = largest.max(size(&item));
            puts.push(self.prepare(item)?);
        }
        if puts.is_empty() {
            self.session()?;
            return Ok(Vec::new());
        }
        loop {
            let current = self.current.load_full();
            let mut enqueue = Enqueue {
                queue: self.name(),
                known: &current.stored,
                max_pending: current.settings.max_pending,
                puts: std::mem::take(&mut puts),
            };
            let enqueued = self.move_store(Verb::Enqueue, |store, commit_sync| {
                let enqueued = store.enqueue(commit_sync, &self.options.clock, self.wait(), &mut enqueue)?;
                let is_written = matches!(enqueued, Enqueued::Ids(_));
                Ok((enqueued, if is_written { vec![Event::Enqueued] } else { Vec::new() }))
            })?;
            puts = enqueue.puts;
            match enqueued {
                Enqueued::Ids(ids) => return Ok(ids),
                Enqueued::SettingsChanged(stored) => self.learn_settings(stored)?,
            }
            // Another process may have set a smaller limit meanwhile.
            let limit = self.settings().settings.max_bytes();
            if largest > limit {
                return Err(Error::TooLarge { size: largest, limit });
            }
        }
    }

    /// Refuses every invalid item here, before the write lock is taken.
    pub(super) fn prepare(&self, item: NewItem) -> Result<Put> {
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
pub(super) fn prepared(item: NewItem) -> Put {
    let key = item.key.as_ref().map(|key| match &key.name {
        KeyName::Given(name) => name.clone(),
        KeyName::ByContent => content_key(&item.content),
    });
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
    Put { row, when: item.when, key: item.key }
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
