//! The statements that store settings on SQLite.

use rusqlite::params;

use super::{Transaction, statement};
use crate::error::Result;
use crate::store::SettingsTx;

impl SettingsTx for Transaction<'_> {
    fn set_setting(&self, key: &str, value: &str) -> Result<()> {
        self.connection.prepare_cached(statement!("setting_set"))?.execute(params![key, value])?;
        Ok(())
    }

    fn clear_setting(&self, key: &str) -> Result<bool> {
        Ok(self.connection.prepare_cached(statement!("setting_clear"))?.execute(params![key])? == 1)
    }
}
