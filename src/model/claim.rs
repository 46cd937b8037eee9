//! A claim's receipt: what proves the claim later.

/// What proves a claim: its attempt and a random token that only this claim knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub id: i64,
    pub attempt: i64,
    pub token: i64,
}
