//! Putting items in: enqueue, one or many.

use super::Queue;
use crate::error::{Error, Result};
use crate::item::{NewItem, When};
use crate::sqlite::NewRow;

impl Queue {
    /// Adds one item and returns its id. When it returns, the item is on disk.
    pub fn enqueue(&self, item: NewItem) -> Result<i64> {
        Ok(self.enqueue_many(vec![item])?[0])
    }

    /// Adds all items or none, in one transaction.
    pub fn enqueue_many(&self, items: Vec<NewItem>) -> Result<Vec<i64>> {
        let mut rows = items.into_iter().map(|item| self.row(item)).collect::<Result<Vec<_>>>()?;
        if rows.is_empty() {
            self.session()?;
            return Ok(Vec::new());
        }
        let ids = self.write(|tx| {
            rows.iter_mut()
                .map(|(row, when)| {
                    row.run_at = match *when {
                        When::Now => None,
                        When::After(delay) => (delay > 0).then(|| tx.now().plus(delay)),
                        When::At(at) => (at > tx.now().ms()).then_some(at),
                    };
                    tx.enqueue(self.name(), row)
                })
                .collect::<Result<Vec<_>>>()
        })?;
        self.ring();
        Ok(ids)
    }

    /// Everything that can be refused is refused here, before the lock is taken.
    fn row(&self, item: NewItem) -> Result<(NewRow, When)> {
        self.check_size(item.content.size)?;
        self.check_size(item.headers.as_ref().map_or(0, String::len))?;
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
        };
        Ok((row, item.when))
    }

    pub(super) fn check_size(&self, size: usize) -> Result<()> {
        let limit = self.options.max_bytes;
        if size > limit { Err(Error::TooLarge { size, limit }) } else { Ok(()) }
    }
}
