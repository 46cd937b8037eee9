//! What an enqueue does when another item already has its key.

use crate::error::{Error, Result};
use crate::model::{OnDuplicate, Status};

/// What to do with the item that has the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Leave it as it is, and return its id.
    Keep,
    /// Leave it as it is, and return no id.
    Skip,
    /// Give it the new content, and return its id.
    Replace,
}

/// The item that has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub id: i64,
    /// `None` if it is none of ours.
    pub status: Option<Status>,
    /// Whether it has left its first stage.
    pub has_moved: bool,
}

/// Decides by the caller's `on_duplicate`. It is an error if the caller allows neither.
pub fn taken(on_duplicate: OnDuplicate, key: &str, owner: Owner) -> Result<Taken> {
    let Owner { id, status, has_moved } = owner;
    match on_duplicate {
        OnDuplicate::Return => Ok(Taken::Keep),
        OnDuplicate::Skip => Ok(Taken::Skip),
        OnDuplicate::Replace if status == Some(Status::Pending) && !has_moved => Ok(Taken::Replace),
        OnDuplicate::Raise => Err(Error::Duplicate { key: key.to_owned(), id, why: "" }),
        OnDuplicate::Replace => {
            let why = match status {
                Some(Status::Processing) => {
                    ", which is in progress and cannot be replaced; try again when it has ended"
                }
                Some(Status::Pending) => {
                    ", which has gone on to its next stage and cannot be replaced; cancel it first"
                }
                Some(Status::Blocked) => ", which waits for other items and cannot be replaced; cancel it first",
                _ => ", which has ended and keeps its key for its key_ttl; it cannot be replaced",
            };
            Err(Error::Duplicate { key: key.to_owned(), id, why })
        }
    }
}
