//! What becomes of an enqueue whose key another item has already.

use crate::error::{Error, Result};
use crate::model::{OnDuplicate, Status};

/// What to do with the item that has the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Leave it as it is, and return its id.
    Keep,
    /// Give it the new content, and return its id.
    Replace,
}

/// Decides it by what the caller said; an error if the caller wants neither.
pub fn taken(on_duplicate: OnDuplicate, key: &str, id: i64, status: Option<Status>) -> Result<Taken> {
    match on_duplicate {
        OnDuplicate::Return => Ok(Taken::Keep),
        OnDuplicate::Replace if status == Some(Status::Pending) => Ok(Taken::Replace),
        OnDuplicate::Raise | OnDuplicate::Replace => Err(Error::Duplicate { key: key.to_owned(), id }),
    }
}
