//! The statements that store settings on SQLite.

use std::cell::RefCell;

use rusqlite::params;

use super::{Transaction, statement};
use crate::error::Result;
use crate::store::{SettingsTx, StoredSettings};

/// The settings of queues, as far as the writing connection has read them and no connection may have changed them since.
#[derive(Default)]
pub struct KnownSettings(RefCell<Vec<(String, StoredSettings)>>);

impl KnownSettings {
    pub fn of(&self, queue: &str) -> Option<StoredSettings> {
        self.0.borrow().iter().find(|(name, _)| name == queue).map(|(_, stored)| stored.clone())
    }

    pub fn learn(&self, queue: &str, stored: &StoredSettings) {
        self.0.borrow_mut().push((queue.to_owned(), stored.clone()));
    }

    pub fn forget(&self) {
        self.0.borrow_mut().clear();
    }
}

impl Transaction<'_> {
    pub(super) fn forget_settings(&self) {
        if let Some(writer) = self.writer {
            writer.settings.forget();
        }
    }
}

impl SettingsTx for Transaction<'_> {
    fn set_setting(&self, key: &str, value: &str) -> Result<()> {
        self.forget_settings();
        self.connection.prepare_cached(statement!("setting_set"))?.execute(params![key, value])?;
        Ok(())
    }

    fn clear_setting(&self, key: &str) -> Result<bool> {
        self.forget_settings();
        Ok(self.connection.prepare_cached(statement!("setting_clear"))?.execute(params![key])? == 1)
    }
}
