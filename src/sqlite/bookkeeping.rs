//! Bookkeeping: the counts and the group order that follow from a change of an item.
//!
//! Triggers do it for everybody's SQL, and cost as much as the change itself. The writing connection of this process
//! therefore runs without them, as far as the application has none of its own: the hot statements report their changes
//! here, and counts are written once per transaction. No rule is written twice: the views by which our triggers work
//! have temporary twins on the writing connection, which fire there. Every other statement that changes items runs with the
//! triggers on ([`Transaction::change_items`]).

use std::cell::{Cell, RefCell};
use std::ffi::c_int;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ToSql, ffi, params};

use super::{Transaction, schema, statement};
use crate::error::{Error, Result};
use crate::model::{Status, Value};
use crate::store::FlowTx;

/// How many moves run with triggers after a statement that needs them.
const MOVES_WITH_TRIGGERS: u32 = 64;

/// Whether triggers fire for the statements of a writing connection. Switching makes SQLite prepare all statements anew.
pub struct Triggers {
    are_on: Cell<bool>,
    /// For how many moves they stay on: a switch for each of them would cost more than the triggers do.
    stay_on: Cell<u32>,
    /// Whether the application has triggers on our tables, and the schema in which that was seen.
    are_foreign: Cell<bool>,
    schema: Cell<Option<i64>>,
    /// What `SQLITE_FCNTL_DATA_VERSION` said after the last commit. Another value means that others have written.
    data_version: Cell<Option<u32>>,
}

impl Triggers {
    /// Prepares a connection for writing.
    pub fn install(connection: &Connection) -> Result<Self> {
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        schema::create_twins(connection)?;
        Ok(Self {
            are_on: Cell::new(true),
            stay_on: Cell::new(0),
            are_foreign: Cell::new(false),
            schema: Cell::default(),
            data_version: Cell::default(),
        })
    }

    /// Called when a transaction has begun. The application may have created a trigger since the last one. Returns whether
    /// another connection may have written.
    pub fn begin(&self, connection: &Connection) -> Result<bool> {
        let version = data_version(connection)?;
        if self.data_version.get() == Some(version) {
            return Ok(false);
        }
        let schema: i64 = connection.prepare_cached("PRAGMA schema_version")?.query_row([], |row| row.get(0))?;
        if self.schema.get() != Some(schema) {
            self.are_foreign.set(schema::has_foreign_triggers(connection)?);
            self.schema.set(Some(schema));
        }
        self.data_version.set(Some(version));
        if self.are_foreign.get() {
            self.switch(connection, true)?;
        }
        Ok(true)
    }

    pub fn committed(&self, connection: &Connection) -> Result<()> {
        self.data_version.set(Some(data_version(connection)?));
        Ok(())
    }

    /// Switches the triggers off, unless the application has some, or a statement needed them a short while ago.
    fn switch_off(&self, connection: &Connection) -> Result<()> {
        let left = self.stay_on.get();
        if !self.are_on.get() || self.are_foreign.get() {
            return Ok(());
        }
        if left > 0 {
            self.stay_on.set(left - 1);
            return Ok(());
        }
        self.switch(connection, false)
    }

    fn switch_on(&self, connection: &Connection) -> Result<()> {
        self.stay_on.set(MOVES_WITH_TRIGGERS);
        self.switch(connection, true)
    }

    fn switch(&self, connection: &Connection, on: bool) -> Result<()> {
        if self.are_on.get() != on {
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, on)?;
            self.are_on.set(on);
        }
        Ok(())
    }
}

fn data_version(connection: &Connection) -> Result<u32> {
    let mut version: u32 = 0;
    // SAFETY: the handle is valid while `connection` is, and SQLite writes one u32.
    let code = unsafe {
        ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_DATA_VERSION as c_int,
            (&raw mut version).cast(),
        )
    };
    match code {
        ffi::SQLITE_OK => Ok(version),
        code => Err(Error::Storage(format!("SQLite does not tell its data version (code {code})"))),
    }
}

/// Changes of counts that are not written yet: for each queue, by how much each of its counts changes.
#[derive(Default)]
pub struct Uncounted(RefCell<Vec<(String, [i64; 5])>>);

/// The place of a status among the counts. Pending items and those in progress are counted together.
fn place(status: Status) -> usize {
    match status {
        Status::Pending | Status::Processing => 0,
        Status::Done => 1,
        Status::Failed => 2,
        Status::Blocked => 3,
        Status::Cancelled => 4,
    }
}

impl Uncounted {
    fn add(&self, queue: &str, status: Status, by: i64) {
        let mut queues = self.0.borrow_mut();
        let number = queues.iter().position(|(name, _)| name == queue).unwrap_or_else(|| {
            queues.push((queue.to_owned(), Default::default()));
            queues.len() - 1
        });
        queues[number].1[place(status)] += by;
    }
}

impl Transaction<'_> {
    /// Lets the statements of this transaction do their own bookkeeping, as far as that is possible.
    pub(super) fn keep_own_books(&self) -> Result<()> {
        self.writer.map_or(Ok(()), |writer| writer.triggers.switch_off(self.connection))
    }

    /// Whether a statement must report its changes, because no trigger does.
    pub(super) fn keeps_books(&self) -> bool {
        self.writer.is_some_and(|writer| !writer.triggers.are_on.get())
    }

    /// Runs a statement that changes items and does not report its changes: triggers do the bookkeeping.
    pub(super) fn change_items(&self, sql: &str, values: &[&dyn ToSql]) -> Result<usize> {
        self.let_triggers_fire()?;
        self.run(sql, values)
    }

    pub(super) fn let_triggers_fire(&self) -> Result<()> {
        self.writer.map_or(Ok(()), |writer| writer.triggers.switch_on(self.connection))
    }

    /// Reports that an item has passed from one status to another. `None` stands for a row that did not exist.
    pub(super) fn changed(
        &self,
        queue: &str,
        id: i64,
        from: Option<Status>,
        to: Status,
        has_group: bool,
    ) -> Result<()> {
        if !self.keeps_books() {
            return Ok(());
        }
        if from.map(place) != Some(place(to)) {
            if let Some(from) = from {
                self.uncounted.add(queue, from, -1);
            }
            self.uncounted.add(queue, to, 1);
        }
        if matches!(to, Status::Done | Status::Failed | Status::Cancelled) && self.may_be_needed()? {
            self.run(statement!("awaited_if_needed"), params![id])?;
        }
        if has_group {
            let by = |status| i64::from(to == status) - i64::from(from == Some(status));
            self.run(statement!("group_changed"), params![id, by(Status::Pending), by(Status::Processing)])?;
        }
        Ok(())
    }

    /// Whether any item of the file may wait for another. It is asked at every end, so the answer is kept until another
    /// connection writes.
    pub(super) fn may_be_needed(&self) -> Result<bool> {
        let Some(writer) = self.writer else { return Ok(true) };
        if let Some(known) = writer.has_dependencies.get() {
            return Ok(known);
        }
        let found = self.has_dependencies()?;
        writer.has_dependencies.set(Some(found));
        Ok(found)
    }

    /// To be called before an item is made to wait for others.
    pub(super) fn dependencies_changed(&self) {
        if let Some(writer) = self.writer {
            writer.has_dependencies.set(None);
        }
    }

    pub(super) fn has_group(&self, id: i64) -> Result<bool> {
        Ok(self.one(statement!("has_group"), params![id])?.unwrap_or(false))
    }

    /// The groups of the items that `bring_in_due` is about to make claimable.
    pub(super) fn groups_due(&self, queue: &str, limit: usize) -> Result<Vec<Value>> {
        if !self.keeps_books() {
            return Ok(Vec::new());
        }
        self.all(statement!("groups_due"), params![queue, self.now.ms(), limit as i64], |row| row.get(0))
    }

    /// Reports that a done item is about to be removed.
    pub(super) fn removing_done(&self, queue: &str, id: i64) -> Result<()> {
        if self.keeps_books() {
            self.run(statement!("removing_done"), params![id, queue, self.now.ms()])?;
        }
        Ok(())
    }

    /// Writes the changes of counts, before they are read or committed.
    pub fn write_counts(&self) -> Result<()> {
        if self.uncounted.0.borrow().is_empty() {
            return Ok(());
        }
        let queues = std::mem::take(&mut *self.uncounted.0.borrow_mut());
        for (queue, by) in queues.iter().filter(|(_, by)| by.iter().any(|by| *by != 0)) {
            let values = params![queue, by[0], by[1], by[2], by[3], by[4]];
            // The first item of a queue has no row to add to.
            if self.run(statement!("counts_add"), values)? == 0 {
                self.run(statement!("counts_new"), values)?;
            }
        }
        Ok(())
    }

    /// Forgets what was changed, before it is rolled back.
    pub fn forget_changes(&self) {
        self.uncounted.0.borrow_mut().clear();
        self.forget_settings();
        self.dependencies_changed();
        self.anything_may_be_due();
    }
}
