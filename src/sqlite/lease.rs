//! Worker leases and named locks on SQLite.

use rusqlite::params;

use super::{Transaction, statement};
use crate::error::Result;
use crate::store::LeaseTx;

impl LeaseTx for Transaction<'_> {
    fn set_worker_lease(&self, key: &str, record: &str) -> Result<()> {
        self.clear_worker_lease(key)?;
        let write =
            if self.database.shape().own_meta { statement!("own_lease_write") } else { statement!("lease_write") };
        self.connection.prepare_cached(write)?.execute(params![key, record])?;
        Ok(())
    }

    fn clear_worker_lease(&self, key: &str) -> Result<()> {
        let clear =
            if self.database.shape().own_meta { statement!("own_lease_clear") } else { statement!("lease_clear") };
        self.connection.prepare_cached(clear)?.execute(params![key])?;
        Ok(())
    }
}
