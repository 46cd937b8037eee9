//! What an engine must do to keep worker leases and named locks.

use crate::error::Result;

pub trait LeaseTx {
    /// Stores the record under the key. Locks the key.
    fn set_worker_lease(&self, key: &str, record: &str) -> Result<()>;

    /// Removes the record under the key. Locks the key.
    fn clear_worker_lease(&self, key: &str) -> Result<()>;

    /// Leases are stored where membox's own programs look for them. Returns false if that is impossible. Locks all
    /// leases.
    fn share_leases_with_membox(&self) -> Result<bool> {
        Ok(false)
    }
}
