//! A claim: what it writes on a row, and what proves it later.

/// What proves a claim: the attempt it was, and a number only that claim knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub id: i64,
    pub attempt: i64,
    pub token: i64,
}
