//! What an engine must do to keep settings.

use crate::error::Result;

/// A queue's settings as they are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSettings {
    pub text: Option<String>,
    pub group_limit: Option<String>,
}

pub trait SettingsTx {
    /// Stores the value under the key. Locks the key.
    fn set_setting(&self, key: &str, value: &str) -> Result<()>;

    /// Removes the value under the key. Returns whether there was one. Locks the key.
    fn clear_setting(&self, key: &str) -> Result<bool>;
}
