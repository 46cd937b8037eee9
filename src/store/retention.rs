//! What an engine must do to remove finished items.

use crate::error::Result;
use crate::model::Status;

/// A finished item.
pub struct Ended {
    pub id: i64,
    /// Whether its key is still reserved.
    pub is_reserved: bool,
}

/// An item that a row of another table refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedItem {
    pub id: i64,
    pub table: String,
}

pub trait RetentionTx {
    /// Removes up to `limit` items of a status. Returns how many.
    fn purge(&self, queue: &str, status: Status, limit: i64) -> Result<usize>;

    /// The items of a status with ids greater than `after`, up to `until`.
    fn ids_between(&self, queue: &str, status: Status, after: i64, until: i64) -> Result<Vec<i64>>;

    /// The id `rows` rows further on, or the last id; `None` after the last.
    fn id_ahead(&self, id: i64, rows: i64) -> Result<Option<i64>>;

    /// Of the given items, those that foreign keys of other tables refer to.
    fn kept(&self, queue: &str, ids: &[i64]) -> Result<Vec<ReferencedItem>>;

    /// Returns whether any foreign key can refer to items.
    fn has_references(&self) -> Result<bool>;

    /// Items that ended before a time (`None`: at any time), in the order they ended, starting after item `after`.
    fn ended(&self, queue: &str, status: Status, before: Option<&str>, after: i64, limit: i64) -> Result<Vec<Ended>>;

    /// Done items without an end time, starting after item `after`.
    fn timeless(&self, queue: &str, after: i64, limit: i64) -> Result<Vec<Ended>>;

    /// Gives some unused space back to the file system. Returns whether there is more.
    fn return_space(&self, most: i64) -> Result<bool>;
}
