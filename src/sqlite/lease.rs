//! Worker leases and named locks on SQLite.

use rusqlite::params;

use super::{Transaction, migrate, statement};
use crate::error::Result;
use crate::store::LeaseTx;

impl LeaseTx for Transaction<'_> {
    fn set_worker_lease(&self, key: &str, record: &str) -> Result<()> {
        self.clear_worker_lease(key)?;
        let write = if self.lease_is_ours()? { statement!("own_lease_write") } else { statement!("lease_write") };
        self.connection.prepare_cached(write)?.execute(params![key, record])?;
        Ok(())
    }

    fn clear_worker_lease(&self, key: &str) -> Result<()> {
        let clear = if self.lease_is_ours()? { statement!("own_lease_clear") } else { statement!("lease_clear") };
        self.connection.prepare_cached(clear)?.execute(params![key])?;
        Ok(())
    }

    fn share_leases_with_membox(&self) -> Result<bool> {
        migrate::share_leases(self.connection)
    }
}

impl Transaction<'_> {
    /// Read in each transaction: another process may have begun to share the leases with membox.
    pub(super) fn lease_is_ours(&self) -> Result<bool> {
        migrate::lease_is_ours(self.connection)
    }
}
