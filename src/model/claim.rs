//! A claim: which items it takes, and its receipt.

/// What proves a claim: its attempt and a random token that only this claim knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub id: i64,
    pub attempt: i64,
    pub token: i64,
}

/// Which items to claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pick {
    #[default]
    Queue,
    Group(String),
    /// All pending items of the group, in order, if nothing of it is in progress.
    WholeGroup(String),
    /// Whichever comes first: all pending items of one free group, or one item that has no group.
    GroupOrOne,
}
