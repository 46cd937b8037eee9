//! The statements of an enqueue on SQLite.

use std::collections::HashMap;

use rusqlite::blob::ZeroBlob;
use rusqlite::{OptionalExtension, ToSql, params};

use super::rows::{integer, text};
use super::{Transaction, padding, statement};
use crate::error::{Error, Result};
use crate::model::Status;
use crate::rules::key::{Owner, Taken, taken};
use crate::rules::room;
use crate::store::{Destination, Enqueue, EnqueueTx, Enqueued, Needed, NewRow, Put, View};

/// An item that was to be stored.
struct Placed {
    id: i64,
    is_pending: bool,
    /// Whether it was stored, rather than found by its key.
    is_new: bool,
}

impl EnqueueTx for Transaction<'_> {
    fn put(&self, queue: &str, put: Put) -> Result<Option<i64>> {
        Ok(self.place(queue, put, &mut HashMap::new())?.map(|placed| placed.id))
    }

    fn without_effect(&self, what: &str) -> Error {
        match self.foreign_triggers() {
            Ok(names) if names.is_empty() => Error::disagreement(what),
            Ok(names) => Error::ignored(what, &names),
            Err(error) => error,
        }
    }
}

impl Transaction<'_> {
    pub(super) fn enqueue_all(&self, enqueue: &mut Enqueue) -> Result<Enqueued> {
        self.keep_own_books()?;
        let queues = enqueue.queues;
        let mut changed = Vec::new();
        for (number, queue) in queues.iter().enumerate() {
            let stored = self.settings(queue.name)?;
            if stored != *queue.known {
                changed.push((number, stored));
            }
        }
        if !changed.is_empty() {
            return Ok(Enqueued::SettingsChanged(changed));
        }
        let pending = |queue: &Destination| Ok::<_, Error>(self.counts(queue.name)?.pending);
        let bounded = queues.iter().filter_map(|queue| queue.max_pending.map(|limit| (queue, limit)));
        let before = bounded.map(|(queue, limit)| Ok((queue, limit, pending(queue)?))).collect::<Result<Vec<_>>>()?;
        let puts = std::mem::take(&mut enqueue.puts);
        let mut children = HashMap::new();
        let ids = puts.into_iter().map(|put| {
            let placed = self.place(queues[put.queue].name, put, &mut children)?;
            Ok(placed.map(|placed| placed.id))
        });
        let ids = ids.collect::<Result<_>>()?;
        for (queue, limit, before) in before {
            // What another item waits for is not refused.
            let children = children.get(queue.name).copied().unwrap_or(0);
            room::check(queue.name, limit, before, pending(queue)? - children)?;
        }
        Ok(Enqueued::Ids(ids))
    }

    /// Stores the item, after those it waits for. `children` counts those that are pending, by queue. Returns `None` if
    /// the item was skipped.
    fn place(&self, queue: &str, mut put: Put, children: &mut HashMap<String, i64>) -> Result<Option<Placed>> {
        let (needs, if_failed) = (std::mem::take(&mut put.needs), put.if_failed);
        let (mut row, key) = put.at(self.now);
        if let (Some(name), Some(key)) = (&row.key, key) {
            if let Some(owner) = self.find_key(queue, name, key.since(self.now))? {
                let found = Some(Placed { id: owner.id, is_pending: false, is_new: false });
                return match taken(key.on_duplicate, name, owner)? {
                    Taken::Keep => Ok(found),
                    Taken::Skip => Ok(None),
                    Taken::Replace => self.replace(owner.id, &row).map(|()| found),
                };
            }
            self.free_key(queue, name)?;
        }
        if needs.is_empty() {
            return Ok(Some(Placed { id: self.insert(queue, row)?, is_pending: true, is_new: true }));
        }
        self.anything_may_be_due();
        let (mut ids, mut own) = (Vec::with_capacity(needs.len()), Vec::new());
        for need in needs {
            match need {
                Needed::Id(id) => ids.push(id),
                Needed::Put(queue, put) => {
                    let Some(placed) = self.place(&queue, *put, children)? else { continue };
                    ids.push(placed.id);
                    own.extend(placed.is_new.then_some(placed.id));
                    *children.entry(queue).or_default() += i64::from(placed.is_pending);
                }
            }
        }
        let is_blocked = self.check_needs(&ids)?;
        row.status = if is_blocked { Status::Blocked } else { Status::Pending };
        let id = self.insert(queue, row)?;
        for child in own {
            self.run(statement!("parent_set"), params![child, id])?;
        }
        self.add_needs(id, &ids, if_failed)?;
        Ok(Some(Placed { id, is_pending: !is_blocked, is_new: true }))
    }

    fn insert(&self, queue: &str, row: NewRow) -> Result<i64> {
        let mut statement = self.connection.prepare_cached(statement!("enqueue"))?;
        row.with_values(queue, self.now_text(), |values| {
            let mut values = values.iter().enumerate();
            values.try_for_each(|(index, value)| statement.raw_bind_parameter(index + 1, value))
        })?;
        let (status, has_group) = (row.status, row.group.is_some());
        if let Some(run_at) = row.run_at {
            self.will_be_due(queue, run_at);
        }
        if row.expires_at.is_some() {
            self.anything_may_be_due();
        }
        // SQLite has its own copy now; this frees ours early, which matters for a large document.
        drop(row);
        if statement.raw_execute().map_err(|error| self.not_inserted(error))? == 0 {
            return Err(self.without_effect("the new item"));
        }
        let id = self.connection.last_insert_rowid();
        self.changed(queue, id, None, status, has_group)?;
        Ok(id)
    }

    /// Gives a pending item, found by this transaction, new content in its old place.
    fn replace(&self, id: i64, row: &NewRow) -> Result<()> {
        self.anything_may_be_due();
        if row.group.is_some() || self.has_group(id)? {
            self.let_triggers_fire()?;
        }
        let mut statement = self.connection.prepare_cached(statement!("replace"))?;
        match row.with_replacing_values(id, |values| statement.execute(values))? {
            0 => Err(self.without_effect(&format!("item {id}"))),
            _ => self.run(statement!("after_clear"), params![id]).map(drop),
        }
    }

    /// Returns the item that has a key, and its status if that is a known one. Items enqueued after `since` still have
    /// their key, finished or not.
    fn find_key(&self, queue: &str, key: &str, since: Option<i64>) -> Result<Option<Owner>> {
        let mut statement = self.connection.prepare_cached(statement!("find_key"))?;
        let found = statement.query_row(params![queue, key, self.now.ms(), since], |row| {
            let status = text(row, 1)?.and_then(|status| Status::parse(&status));
            Ok(Owner { id: row.get(0)?, status, has_moved: integer(row, 2)?.unwrap_or(0) > 0 })
        });
        Ok(found.optional()?)
    }

    /// Takes the key from an item that was cancelled while in progress.
    fn free_key(&self, queue: &str, key: &str) -> Result<()> {
        self.run(statement!("free_key"), params![queue, key])?;
        Ok(())
    }

    fn foreign_triggers(&self) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare(statement!("foreign_triggers"))?;
        let names = statement.query_map([], |row| row.get(0))?;
        Ok(names.collect::<rusqlite::Result<_>>()?)
    }

    /// Converts the error of an insert. SQLite reports a full disk when it has no id left.
    pub(super) fn not_inserted(&self, error: rusqlite::Error) -> Error {
        let is_full = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull);
        // Without AUTOINCREMENT there is no sqlite_sequence; SQLite then searches for a free id.
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
}

impl NewRow {
    /// The values of `enqueue.sql`, in its order.
    pub(super) fn with_values<T>(&self, queue: &str, now: &str, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        let padding_bytes = padding::new(self.content.len(), self.run_at);
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
            ZeroBlob(padding_bytes.0 as u64),
            ZeroBlob(padding_bytes.1 as u64),
            self.checksum,
            self.parent,
            self.expires_at,
            self.status.as_str(),
        ])
    }

    /// The values of `replace.sql`, in its order.
    pub(super) fn with_replacing_values<T>(&self, id: i64, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
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
            self.expires_at,
        ])
    }
}
