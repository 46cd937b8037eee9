//! What an engine must do to keep settings.

use crate::error::Result;

/// A queue's settings as they are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSettings {
    pub text: Option<String>,
    pub group_limit: Option<String>,
}

pub trait SettingsTx {
    /// The value is stored under the key. Locks the key.
    fn set_setting(&self, key: &str, value: &str) -> Result<()>;

    /// Nothing is stored under the key; return whether something was. Locks the key.
    fn clear_setting(&self, key: &str) -> Result<bool>;
}
