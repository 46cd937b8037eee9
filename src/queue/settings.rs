//! Settings of a queue: what is stored for all processes, and what holds for this object.

use std::time::{Duration, Instant};

use super::Queue;
use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::sqlite::Tx;

/// How often those who only enqueue look at the settings.
const REFRESH_EVERY: Duration = Duration::from_secs(1);

/// What holds for an object now, and the stored text it was made from.
#[derive(Default)]
pub struct Current {
    stored: Option<String>,
    pub settings: Settings,
}

impl Queue {
    /// What holds for this object: what it was opened with, else what the file says, else the defaults.
    pub fn settings(&self) -> arc_swap::Guard<std::sync::Arc<Current>> {
        self.current.load()
    }

    /// What this object was opened with, less what was configured since.
    pub fn given(&self) -> Settings {
        Settings::clone(&self.given.load())
    }

    /// Reads what the file says, and refuses arguments that differ from it.
    pub(super) fn read_settings(&self) -> Result<()> {
        let given = self.given.load();
        let stored = self.stored_settings()?;
        given.check_against(&stored, self.name())?;
        match (given.group_limit, stored.group_limit) {
            // It is enforced in the file, so whoever gives one stores it; somebody else may have been first.
            (Some(wanted), None) if wanted != 1 => self.write(|tx| {
                let group_limit = read_limit(tx.setting(&self.group_limit_key())?);
                given.check_against(&Settings { group_limit, ..Settings::default() }, self.name())?;
                self.store_group_limit(tx, Some(wanted))
            }),
            _ => Ok(()),
        }
    }

    /// Reads what the file says; it holds where this object was given nothing.
    pub(super) fn stored_settings(&self) -> Result<Settings> {
        let database = &self.session()?.database;
        let text = database.setting(&self.settings_key())?;
        let mut stored = Settings::parse(text.as_deref())?;
        stored.group_limit = read_limit(database.setting(&self.group_limit_key())?);
        self.current.store(Current { stored: text, settings: self.given.load().or(&stored) }.into());
        Ok(stored)
    }

    /// What holds now, read from the file if it can be.
    pub fn latest_settings(&self) -> Settings {
        // A closed queue tells what it knew last.
        let _ = self.stored_settings();
        self.settings().settings.clone()
    }

    /// Takes over, about once a second, what others have stored: for those who only enqueue.
    pub(super) fn refresh_now_and_then(&self, tx: &Tx) -> Result<()> {
        let session = self.session()?;
        let mut last = session.refreshed_at.lock();
        if last.is_some_and(|time| time.elapsed() < REFRESH_EVERY) {
            return Ok(());
        }
        *last = Some(Instant::now());
        drop(last);
        self.refresh_settings(tx.setting(&self.settings_key())?.as_deref())
    }

    /// Takes over what another process has stored meanwhile. What this object was opened with stays.
    pub(super) fn refresh_settings(&self, text: Option<&str>) -> Result<()> {
        let current = self.settings();
        if current.stored.as_deref() == text {
            return Ok(());
        }
        let mut stored = Settings::parse(text)?;
        stored.group_limit = current.settings.group_limit;
        self.current.store(Current { stored: text.map(str::to_owned), settings: self.given.load().or(&stored) }.into());
        Ok(())
    }

    /// Stores settings in the file, for all processes and for later: those in `set`, and forgets those named in `forgotten`.
    pub fn configure(&self, set: &Settings, forgotten: &[String]) -> Result<()> {
        set.check()?;
        let mut given = Settings::clone(&self.given.load());
        for name in forgotten.iter().map(String::as_str).chain(set.names()) {
            if !given.forget(name) {
                return Err(Error::Invalid(format!("there is no setting '{name}' to configure")));
            }
        }
        self.write(|tx| {
            let before = Settings::parse(tx.setting(&self.settings_key())?.as_deref())?;
            let mut stored = set.or(&before);
            stored.group_limit = set.group_limit.or(read_limit(tx.setting(&self.group_limit_key())?));
            for name in forgotten {
                stored.forget(name);
            }
            tx.set_setting(&self.settings_key(), &stored.render())?;
            if stored.group_rate != before.group_rate {
                self.review_holds(tx, stored.group_rate)?;
            }
            self.store_group_limit(tx, stored.group_limit)
        })?;
        self.given.store(given.into());
        // What others have stored against an argument of this object is no reason to refuse: it is written by now.
        self.stored_settings()?;
        // Those who wait may find that more is allowed now.
        self.ring();
        Ok(())
    }

    fn store_group_limit(&self, tx: &Tx, limit: Option<u32>) -> Result<()> {
        let key = self.group_limit_key();
        if read_limit(tx.setting(&key)?) == limit {
            return Ok(());
        }
        match limit {
            Some(limit) => tx.set_setting(&key, &limit.to_string())?,
            None => drop(tx.clear_setting(&key)?),
        }
        tx.groups_moved(self.name())
    }

    fn settings_key(&self) -> String {
        format!("settings:{}", self.name())
    }

    fn group_limit_key(&self) -> String {
        format!("group_limit:{}", self.name())
    }
}

fn read_limit(stored: Option<String>) -> Option<u32> {
    stored.and_then(|text| text.parse().ok())
}
