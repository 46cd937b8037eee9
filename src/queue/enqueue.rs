//! Enqueueing items, one or many, each at most once per key.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::run::Verb;
use super::{Current, Queue};
use crate::error::{Error, Result};
use crate::model::{Deadline, Event, KeyName, LATEST_MS, Need, NewItem, OnDuplicate, Status, Stored, When, checksum};
use crate::rules::flow;
use crate::store::{self, Enqueue, Enqueued, Needed, NewRow, Put, StoredSettings};

impl Queue {
    /// Adds one item and returns its id. The item is on disk when the call returns. Returns `None` if the item was
    /// skipped, because its key is in use.
    pub fn enqueue(&self, item: NewItem) -> Result<Option<i64>> {
        Ok(self.enqueue_many(vec![item])?[0])
    }

    /// Adds all items or none, in one transaction. Each goes into the queue it names, in the same file.
    pub fn enqueue_many(&self, items: Vec<NewItem>) -> Result<Vec<Option<i64>>> {
        let (mut destinations, mut puts) = self.prepare_all(items)?;
        if puts.is_empty() {
            self.session()?;
            return Ok(Vec::new());
        }
        loop {
            let queues = destinations.iter().map(|each| each.stored(self)).collect::<Vec<_>>();
            let mut enqueue = Enqueue { queues: &queues, puts: std::mem::take(&mut puts) };
            let enqueued = self.move_store(Verb::Enqueue, |store, commit_sync| {
                let enqueued = store.enqueue(commit_sync, &self.options.clock, self.wait(), &mut enqueue)?;
                let is_written = matches!(enqueued, Enqueued::Ids(_));
                Ok((enqueued, if is_written { vec![Event::Enqueued] } else { Vec::new() }))
            })?;
            puts = enqueue.puts;
            let changed = match enqueued {
                Enqueued::Ids(ids) => return Ok(ids),
                Enqueued::SettingsChanged(changed) => changed,
            };
            for (number, stored) in changed {
                let destination = &mut destinations[number];
                destination.learn(self, stored)?;
                // Another process may have set a smaller limit meanwhile.
                let (size, limit) = (destination.largest, destination.current.settings.max_bytes());
                if size > limit {
                    return Err(Error::TooLarge { size, limit });
                }
            }
        }
    }

    /// Refuses every invalid item here, before the write lock is taken. Returns the queues that the items go into, and the
    /// items.
    pub(super) fn prepare_all(&self, items: Vec<NewItem>) -> Result<(Vec<QueueDestination>, Vec<Put>)> {
        let mut destinations: Vec<QueueDestination> = Vec::with_capacity(1);
        let mut puts = Vec::with_capacity(items.len());
        for mut item in items {
            check_flow(&item)?;
            flow::inherit(&mut item);
            puts.push(self.prepare_one(item, &mut destinations)?);
        }
        Ok((destinations, puts))
    }

    /// Prepares an item and the new ones that it waits for.
    fn prepare_one(&self, mut item: NewItem, destinations: &mut Vec<QueueDestination>) -> Result<Put> {
        let name = item.queue.as_deref().filter(|name| *name != self.name());
        let known = destinations.iter().position(|destination| destination.name.as_deref() == name);
        let number = known.unwrap_or(destinations.len());
        if known.is_none() {
            destinations.push(self.destination(name)?);
        }
        let destination = &mut destinations[number];
        destination.largest = destination.largest.max(size(&item));
        self.check_size_in(destination, size(&item))?;
        self.check_delay(&item)?;
        let needs = std::mem::take(&mut item.after).into_iter().map(|need| match need {
            Need::Id(id) => Ok(Needed::Id(id)),
            Need::New(child) => {
                let name = child.queue.clone().unwrap_or_else(|| self.name().to_owned());
                Ok(Needed::Put(name, Box::new(self.prepare_one(*child, destinations)?)))
            }
        });
        let needs = needs.collect::<Result<_>>()?;
        Ok(Put { queue: number, needs, ..prepared(item) })
    }

    /// The queue of this name; `None` is this one.
    fn destination(&self, name: Option<&str>) -> Result<QueueDestination> {
        let current = match name {
            None => self.current.load_full(),
            Some(name) => self.settings_of(name)?.into(),
        };
        Ok(QueueDestination { name: name.map(str::to_owned), current, largest: 0 })
    }

    /// The same for one item of this queue.
    pub(super) fn prepare(&self, item: NewItem) -> Result<Put> {
        self.check_size(size(&item))?;
        self.check_delay(&item)?;
        check_flow(&item)?;
        Ok(prepared(item))
    }

    /// Refuses an item that would wait for one that does not exist; for an item that is written later.
    pub(super) fn check_needs(&self, item: &NewItem) -> Result<()> {
        let mut left = vec![item];
        while let Some(item) = left.pop() {
            for need in &item.after {
                match need {
                    Need::Id(id) if self.read(|view| view.item(*id))?.is_none() => return Err(store::missing(*id)),
                    Need::Id(_) => {}
                    Need::New(child) => left.push(child),
                }
            }
        }
        Ok(())
    }

    fn check_delay(&self, item: &NewItem) -> Result<()> {
        if let Some(Deadline::After(time)) = item.expires
            && self.options.clock.now().ms().saturating_add(time) > LATEST_MS
        {
            let text = format!("expires: {} seconds reach beyond the year 9999", time / 1000);
            return Err(Error::Invalid(text));
        }
        if let When::After(delay) = item.when
            && self.options.clock.now().ms().saturating_add(delay) > LATEST_MS
        {
            return Err(Error::Invalid(format!("a delay of {} seconds reaches beyond the year 9999", delay / 1000)));
        }
        Ok(())
    }

    fn check_size_in(&self, destination: &QueueDestination, size: usize) -> Result<()> {
        match destination.current.settings.max_bytes() {
            _ if destination.name.is_none() => self.check_size(size),
            limit if size > limit => Err(Error::TooLarge { size, limit }),
            _ => Ok(()),
        }
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

/// A queue that items go into.
pub(super) struct QueueDestination {
    /// `None`: the queue that enqueues them.
    name: Option<String>,
    current: Arc<Current>,
    /// The size of the largest item.
    largest: usize,
}

impl QueueDestination {
    pub fn stored<'a>(&'a self, queue: &'a Queue) -> store::Destination<'a> {
        store::Destination {
            name: self.name.as_deref().unwrap_or(queue.name()),
            known: &self.current.stored,
            max_pending: self.current.settings.max_pending,
        }
    }

    /// Goes by settings that another process has stored meanwhile.
    fn learn(&mut self, queue: &Queue, stored: StoredSettings) -> Result<()> {
        self.current = match self.name {
            None => {
                queue.learn_settings(stored)?;
                queue.current.load_full()
            }
            Some(_) => queue.read_settings(stored)?.into(),
        };
        Ok(())
    }
}

/// Refuses what cannot be said about items that wait for others.
fn check_flow(item: &NewItem) -> Result<()> {
    if item.after.is_empty() {
        return Ok(());
    }
    if flow::depth(item) > flow::DEEPEST {
        let text = format!("items in `after` are nested deeper than {}; enqueue the inner ones first", flow::DEEPEST);
        return Err(Error::Invalid(text));
    }
    let mut left = vec![item];
    while let Some(item) = left.pop() {
        let is_replacing = item.key.as_ref().is_some_and(|key| key.on_duplicate == OnDuplicate::Replace);
        if is_replacing && !item.after.is_empty() {
            let text = "after cannot be given with on_duplicate='replace': the item that has the key may be claimed \
                        before what it should wait for is done. Cancel that item, or use another key";
            return Err(Error::Invalid(text.into()));
        }
        left.extend(item.after.iter().filter_map(|need| match need {
            Need::New(child) => Some(&**child),
            Need::Id(_) => None,
        }));
    }
    Ok(())
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
    let needs = item.after.iter().filter_map(|need| match need {
        Need::Id(id) => Some(Needed::Id(*id)),
        Need::New(_) => None,
    });
    let needs = needs.collect();
    let row = NewRow {
        status: Status::Pending,
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
        parent: None,
        expires_at: None,
        checksum: Some(checksum),
    };
    let (if_failed, expires) = (item.if_failed, item.expires);
    Put { queue: 0, row, when: item.when, key: item.key, needs, if_failed, expires }
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
