//! What a handler lets its item go on with.

use super::{IfFailed, Need, Stored, When};

/// The next stage of an item. What is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NextStage {
    pub queue: Option<String>,
    pub content: Option<Stored>,
    pub when: When,
    /// What the stage waits for; what the one before waited for is over.
    pub after: Vec<Need>,
    pub if_failed: IfFailed,
    pub priority: Option<i64>,
    /// A JSON object, as text; `Some(None)` removes it. The same holds for those below.
    pub headers: Option<Option<String>>,
    pub group: Option<Option<String>>,
    pub project: Option<Option<String>>,
    pub max_retries: Option<Option<u32>>,
    /// In how many milliseconds the item is cancelled.
    pub expires: Option<Option<i64>>,
}
