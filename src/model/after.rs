//! What an item waits for, and until when.

use super::{NewItem, Now};

/// One of the items that a new item waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Need {
    Id(i64),
    /// It is enqueued together with the item that waits for it.
    New(Box<NewItem>),
}

/// What the failure, the cancelling or the removal of a needed item means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfFailed {
    /// The item that waits is cancelled.
    #[default]
    Cancel,
    /// The item that waits may run.
    Run,
}

impl IfFailed {
    pub fn as_str(self) -> &'static str {
        match self {
            IfFailed::Cancel => "cancel",
            IfFailed::Run => "run",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [IfFailed::Cancel, IfFailed::Run].into_iter().find(|choice| choice.as_str() == text)
    }
}

/// When an item is cancelled, whatever it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Milliseconds from the moment it is written.
    After(i64),
    /// Milliseconds since 1970.
    At(i64),
}

impl Deadline {
    /// The `expires_at` to store.
    pub fn at(self, now: Now) -> i64 {
        match self {
            Deadline::After(time) => now.plus(time),
            Deadline::At(at) => at,
        }
    }
}

/// How an item ends that is answered without a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// JSON text.
    Done(Option<String>),
    Failed(String),
}

impl Answer {
    pub fn status(&self) -> &'static str {
        match self {
            Answer::Done(_) => "done",
            Answer::Failed(_) => "failed",
        }
    }

    pub fn result(&self) -> Option<&str> {
        if let Answer::Done(result) = self { result.as_deref() } else { None }
    }

    pub fn error(&self) -> Option<&str> {
        if let Answer::Failed(error) = self { Some(error) } else { None }
    }
}
