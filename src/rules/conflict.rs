//! What is told about an argument that differs from the stored setting: both values, and how to change the stored one.

use std::path::PathBuf;

use serde::Serialize;

use super::rate::Rate;
use super::retry::Retry;
use crate::error::Error;

/// Where settings are stored.
pub struct SettingsLocation {
    pub path: Option<PathBuf>,
    pub queue: String,
}

/// A value as Python and as the command line write it.
pub trait Shown {
    fn in_python(&self, name: &str) -> String;

    fn typed(&self, name: &str) -> String {
        self.in_python(name)
    }
}

impl Shown for i64 {
    fn in_python(&self, name: &str) -> String {
        if is_count(name) { self.to_string() } else { format!("{:?}", seconds(*self)) }
    }

    fn typed(&self, name: &str) -> String {
        if is_count(name) { self.to_string() } else { format!("{}s", seconds(*self)) }
    }
}

impl Shown for u32 {
    fn in_python(&self, _: &str) -> String {
        self.to_string()
    }
}

impl Shown for usize {
    fn in_python(&self, _: &str) -> String {
        self.to_string()
    }
}

impl Shown for bool {
    fn in_python(&self, _: &str) -> String {
        if *self { "True".into() } else { "False".into() }
    }

    fn typed(&self, _: &str) -> String {
        if *self { "yes".into() } else { "no".into() }
    }
}

impl Shown for Rate {
    fn in_python(&self, _: &str) -> String {
        self.to_string()
    }

    fn typed(&self, _: &str) -> String {
        format!("{}/{}s", self.count, seconds(self.per_ms))
    }
}

impl Shown for Retry {
    fn in_python(&self, _: &str) -> String {
        self.to_string()
    }

    fn typed(&self, _: &str) -> String {
        let Self { max, base, factor, cap, jitter, kind } = self;
        let kind = kind.as_str();
        format!("max={max} base={base}s factor={factor} cap={cap}s jitter={jitter} kind={kind}")
    }
}

/// The numbers of items; users give the other numbers of milliseconds in seconds.
fn is_count(name: &str) -> bool {
    matches!(name, "keep_last" | "max_pending")
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

pub fn conflict<T: Shown + Serialize>(name: &'static str, place: &SettingsLocation, given: &T, stored: &T) -> Error {
    let queue = &place.queue;
    let path = place.path.as_ref().map_or_else(|| ":memory:".into(), |path| path.display().to_string());
    let text = format!(
        "{path} has {name}={} stored for the queue '{queue}', and this program gives {name}={}; leave the argument out \
         to use the stored value, or change it for all programs, in Python with Queue({}, {}).configure({name}={}) or on \
         the command line with: membox-queue configure --db {} --queue {} {name}={}",
        stored.in_python(name),
        given.in_python(name),
        python_string(&path),
        python_string(queue),
        given.in_python(name),
        shell_word(&path),
        shell_word(queue),
        shell_word(&given.typed(name)),
    );
    let json = |value: &T| serde_json::to_string(value).expect("settings have only strings and numbers");
    Error::SettingsConflict { name, queue: queue.clone(), given: json(given), stored: json(stored), text }
}

fn python_string(text: &str) -> String {
    let is_plain = !text.contains(['\'', '\\']) && !text.contains(char::is_control);
    if is_plain { format!("'{text}'") } else { format!("{text:?}") }
}

fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./:@%+,=".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::settings::Settings;

    #[test]
    fn a_difference_is_named_with_both_ways_to_change_it() {
        let place = SettingsLocation { path: Some("/my files/memory.db".into()), queue: "it's".into() };
        let retry = |max| Retry::new(max, 30.0, 2.0, 3600.0, 0.1, crate::rules::retry::Backoff::Linear).unwrap();
        let given = Settings { retry: Some(retry(5)), ..Settings::default() };
        assert!(given.check_against(&given, &place).is_ok());
        assert!(given.check_against(&Settings::default(), &place).is_ok());
        let stored = Settings { retry: Some(retry(2)), ..Settings::default() };
        let text = given.check_against(&stored, &place).unwrap_err().to_string();
        assert!(text.contains("has retry=Retry(max=2, "), "{text}");
        assert!(text.contains(r#"Queue('/my files/memory.db', "it's").configure(retry=Retry(max=5, "#), "{text}");
        let command =
            r"configure --db '/my files/memory.db' --queue 'it'\''s' retry='max=5 base=30s factor=2 cap=3600s ";
        assert!(text.contains(command), "{text}");
    }

    #[test]
    fn values_are_written_as_each_side_reads_them() {
        assert_eq!((5_500_i64.in_python("keep_for"), 5_500_i64.typed("keep_for")), ("5.5".into(), "5.5s".into()));
        assert_eq!((7_i64.in_python("keep_last"), 7_i64.typed("max_pending")), ("7".into(), "7".into()));
        assert_eq!((true.in_python("keep_content"), false.typed("keep_content")), ("True".into(), "no".into()));
        assert_eq!(Rate::new(3, 500).unwrap().typed("rate"), "3/0.5s");
    }
}
