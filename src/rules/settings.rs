//! Settings: those an object was opened with, those stored in the file, and which of them apply.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::conflict::{SettingsLocation, conflict};
use super::outcome::RetryState;
use super::rate::Rate;
use super::retry::Retry;
use crate::error::{Error, Result};

/// The largest value of `max_bytes`.
pub const MOST_BYTES: usize = 512 * 1024 * 1024;

/// Some of the settings: given, stored or to be stored. The file has one JSON object per queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<usize>,
    /// How many items may be pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pending: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The rate of each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_rate: Option<Rate>,
    /// How long done items are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_for_ms: Option<i64>,
    /// How many done items are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_last: Option<i64>,
    /// How long failed and cancelled items are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_failed_for_ms: Option<i64>,
    /// Whether done items keep their content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_content: Option<bool>,
    /// How many items of one group may run at once. It is stored in a separate row, because triggers read it.
    #[serde(skip)]
    pub group_limit: Option<u32>,
    /// Settings that a newer version has stored; they are kept.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Expands to the same code for every setting.
macro_rules! for_each_setting {
    ($do:ident) => {
        $do!(lease_ms "lease", max_retries "max_retries", retry "retry", max_bytes "max_bytes", max_pending "max_pending",
             rate "rate", group_rate "group_rate", keep_for_ms "keep_for", keep_last "keep_last",
             keep_failed_for_ms "keep_failed_for", keep_content "keep_content", group_limit "group_limit")
    };
}

macro_rules! list {
    ($($field:ident $name:literal),*) => { &[$($name),*] };
}

/// The names of all settings, which are also their argument names.
pub const NAMES: &[&str] = for_each_setting!(list);

impl Settings {
    pub fn parse(stored: Option<&str>) -> Result<Self> {
        let Some(stored) = stored else { return Ok(Self::default()) };
        serde_json::from_str(stored).map_err(|error| {
            Error::Corrupt(format!("the settings stored in membox_queue_meta cannot be read: {error}"))
        })
    }

    pub fn render(&self) -> String {
        serde_json::to_string(self).expect("settings have only strings and numbers")
    }

    /// Refuses values that no queue can have.
    pub fn check(&self) -> Result<()> {
        let invalid = |text: String| Err(Error::Invalid(text));
        if self.lease_ms.is_some_and(|lease| lease < 1) {
            return invalid("lease must be at least a millisecond".into());
        }
        match self.max_bytes {
            Some(max) if !(1..=MOST_BYTES).contains(&max) => {
                invalid(format!("max_bytes must be between 1 and {MOST_BYTES}, not {max}"))
            }
            _ => Ok(()),
        }
    }

    /// The settings that hold for every process. The lease of an object is its own.
    pub fn shared(&self) -> Self {
        Self { lease_ms: None, ..self.clone() }
    }

    /// Refuses settings that differ from those stored at `place`.
    pub fn check_against(&self, stored: &Self, place: &SettingsLocation) -> Result<()> {
        macro_rules! compare {
            ($($field:ident $name:literal),*) => {
                $(if let (Some(given), Some(stored)) = (&self.$field, &stored.$field) && given != stored {
                    return Err(conflict($name, place, given, stored));
                })*
            };
        }
        for_each_setting!(compare);
        Ok(())
    }

    /// Returns these settings, with unset ones filled from `others`.
    pub fn or(&self, others: &Self) -> Self {
        let mut all = others.clone();
        macro_rules! overlay {
            ($($field:ident $name:literal),*) => {
                $(if self.$field.is_some() {
                    all.$field = self.$field.clone();
                })*
            };
        }
        for_each_setting!(overlay);
        all
    }

    /// Unsets a setting by its argument name. Returns whether there is a setting of that name.
    pub fn forget(&mut self, wanted: &str) -> bool {
        macro_rules! clear {
            ($($field:ident $name:literal),*) => {
                match wanted {
                    $($name => self.$field = None,)*
                    _ => return false,
                }
            };
        }
        for_each_setting!(clear);
        true
    }

    /// The names of those that are set.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        macro_rules! collect {
            ($($field:ident $name:literal),*) => {
                $(if self.$field.is_some() {
                    names.push($name);
                })*
            };
        }
        for_each_setting!(collect);
        names
    }

    pub fn lease_ms(&self) -> i64 {
        self.lease_ms.unwrap_or(60_000)
    }

    pub fn max_retries(&self) -> u32 {
        self.max_retries.unwrap_or(3)
    }

    pub fn group_limit(&self) -> u32 {
        self.group_limit.unwrap_or(1)
    }

    pub fn max_bytes(&self) -> usize {
        self.max_bytes.unwrap_or(64 * 1024 * 1024)
    }

    /// Whether a done item is removed in the transaction of its end.
    pub fn removes_done(&self) -> bool {
        self.keep_for_ms == Some(0) || self.keep_last == Some(0)
    }

    pub fn keeps_content(&self) -> bool {
        self.keep_content.unwrap_or(true)
    }

    pub fn retry_state(&self, retries: u32, max_retries: Option<u32>) -> RetryState<'_> {
        RetryState { retries, max_retries, policy: self.retry.as_ref(), queue_max: self.max_retries() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_read_back_as_they_were_written_and_keep_what_they_do_not_know() {
        let text = r#"{"lease_ms":5000,"keep_content":false,"from_the_future":[1]}"#;
        let settings = Settings::parse(Some(text)).unwrap();
        assert_eq!((settings.lease_ms, settings.keep_content), (Some(5_000), Some(false)));
        assert_eq!(Settings::parse(Some(&settings.render())).unwrap(), settings);
        assert!(settings.render().contains("from_the_future"));
    }

    #[test]
    fn what_was_given_comes_before_what_is_stored() {
        let given = Settings { lease_ms: Some(1), ..Settings::default() };
        let stored = Settings { lease_ms: Some(2), max_retries: Some(7), ..Settings::default() };
        let all = given.or(&stored);
        assert_eq!((all.lease_ms(), all.max_retries(), all.max_bytes()), (1, 7, 64 * 1024 * 1024));
    }

    #[test]
    fn the_lease_is_no_shared_setting() {
        let given = Settings { lease_ms: Some(1), keep_last: Some(0), ..Settings::default() };
        assert_eq!(given.shared(), Settings { keep_last: Some(0), ..Settings::default() });
    }

    #[test]
    fn every_setting_can_be_forgotten_by_its_name() {
        let mut settings = Settings { lease_ms: Some(1), group_limit: Some(2), ..Settings::default() };
        assert_eq!(settings.names(), ["lease", "group_limit"]);
        assert!(settings.forget("lease") && settings.forget("group_limit") && !settings.forget("leese"));
        assert_eq!(settings, Settings::default());
    }
}
