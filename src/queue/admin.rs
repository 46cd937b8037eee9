//! What people do to items that nobody holds: bring back, delete.

use super::Queue;
use crate::error::Result;

impl Queue {
    /// Brings failed items below their ceiling back to pending; returns how many.
    pub fn retry_failed(&self, max_retries: Option<u32>) -> Result<usize> {
        // An item without a ceiling of its own has the policy's, else the queue's.
        let otherwise = self.allowance(0, None).ceiling();
        let count = self.write(|tx| tx.retry_failed(self.name(), max_retries, otherwise))?;
        self.ring();
        Ok(count)
    }

    /// Brings one failed or cancelled item back with a fresh allowance, in its old place.
    pub fn retry(&self, id: i64) -> Result<bool> {
        let brought_back = self.write(|tx| tx.retry(self.name(), id))?;
        self.ring();
        Ok(brought_back)
    }

    /// Removes an item. If somebody holds it, that receipt is worth nothing from now on.
    pub fn delete(&self, id: i64) -> Result<bool> {
        self.write(|tx| tx.delete(self.name(), id))
    }
}
