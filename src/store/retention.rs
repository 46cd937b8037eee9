//! What an engine must do to remove finished items.

use crate::error::Result;
use crate::model::Status;

/// A finished item.
pub struct Ended {
    pub id: i64,
    /// Whether its key is not free yet.
    pub is_reserved: bool,
}

/// An item that a row of another table refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub id: i64,
    pub table: String,
}

pub trait RetentionTx {
    /// Up to `limit` items of a status are gone; return how many.
    fn purge(&self, queue: &str, status: Status, limit: i64) -> Result<usize>;

    /// The items of a status with ids after one and up to another.
    fn ids_between(&self, queue: &str, status: Status, after: i64, until: i64) -> Result<Vec<i64>>;

    /// The id `rows` rows further on, or the last one; `None` after that.
    fn id_ahead(&self, id: i64, rows: i64) -> Result<Option<i64>>;

    /// Those of some items that foreign keys of other tables refer to.
    fn kept(&self, queue: &str, ids: &[i64]) -> Result<Vec<Kept>>;

    /// Whether a foreign key could refer to an item at all.
    fn has_references(&self) -> Result<bool>;

    /// Finished items that ended before a time (`None`: at any), those after item `after` in the order they ended.
    fn ended(&self, queue: &str, status: Status, before: Option<&str>, after: i64, limit: i64) -> Result<Vec<Ended>>;

    /// Done items without an end time, those after item `after`.
    fn timeless(&self, queue: &str, after: i64, limit: i64) -> Result<Vec<Ended>>;

    /// Some unused space is given back to the system; return whether there is more.
    fn give_back_space(&self, most: i64) -> Result<bool>;
}
