//! Which items a verb is about.

use super::Queue;
use crate::error::{Error, Result};
use crate::model::Status;
use crate::store::View;

/// One item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Id(i64),
    /// The newest item with this key.
    Key(String),
}

impl From<i64> for Target {
    fn from(id: i64) -> Self {
        Target::Id(id)
    }
}

/// Several items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    Ids(Vec<i64>),
    /// All items of a finished status.
    Status(Status),
}

impl Queue {
    /// The id of an item; `None` if no item has the key.
    pub(super) fn locate(&self, view: &dyn View, target: &Target) -> Result<Option<i64>> {
        match target {
            Target::Id(id) => Ok(Some(*id)),
            Target::Key(key) => view.newest_with_key(self.name(), key),
        }
    }

    /// The id of an item to wait for. Only a key is looked up.
    pub fn find(&self, target: &Target) -> Result<i64> {
        let key = match target {
            Target::Id(id) => return Ok(*id),
            Target::Key(key) => key,
        };
        self.read(|view| view.newest_with_key(self.name(), key))?.ok_or_else(|| {
            Error::Invalid(format!("there is no item with the key {key:?} in the queue '{}'", self.name()))
        })
    }

    /// The ids of several items.
    pub(super) fn locate_all(&self, targets: &Targets) -> Result<Vec<i64>> {
        match targets {
            Targets::Ids(ids) => Ok(ids.clone()),
            Targets::Status(status) => self.read(|view| view.finished_ids(self.name(), *status)),
        }
    }
}
