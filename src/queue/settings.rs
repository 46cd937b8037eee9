//! Settings of a queue: those stored for all processes, and those in effect for this object.

use super::Queue;
use super::run::{Change, Verb};
use crate::error::{Error, Result};
use crate::model::Event;
use crate::rules::settings::{NAMES, Settings};
use crate::store::{Scope, StoredSettings};

/// The settings in effect for an object, and the stored settings they were computed from.
#[derive(Default)]
pub struct Current {
    pub(super) stored: StoredSettings,
    pub settings: Settings,
}

impl Queue {
    /// The settings in effect: those this object was opened with, else the file's, else the defaults.
    pub fn settings(&self) -> arc_swap::Guard<std::sync::Arc<Current>> {
        self.current.load()
    }

    /// The settings this object was opened with, except those configured since. They open the same queue again.
    pub fn given(&self) -> Settings {
        let mut given = Settings::clone(&self.given.load());
        // A closed queue returns the last settings it knew.
        if let Ok(stored) = self.reread_settings() {
            given.yield_to(&stored);
        }
        given
    }

    /// Reads the file's settings, and refuses arguments that differ from them.
    pub(super) fn read_settings(&self) -> Result<()> {
        let given = self.given.load();
        let stored = self.reread_settings()?;
        given.check_against(&stored, self.name())?;
        match (given.group_limit, stored.group_limit) {
            // The file enforces the group limit, so the process that gives one stores it. Another process may have been
            // first.
            (Some(wanted), None) if wanted != 1 => {
                self.run(Verb::Configure, |tx| {
                    tx.lock(Scope::Settings(self.name()))?;
                    let group_limit = parse(&tx.settings(self.name())?)?.group_limit;
                    given.check_against(&Settings { group_limit, ..Settings::default() }, self.name())?;
                    self.store_group_limit(tx, Some(wanted))
                })?;
                self.reread_settings().map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Reads the file's settings; they apply where this object was given none.
    pub(super) fn reread_settings(&self) -> Result<Settings> {
        let stored = self.read(|view| view.settings(self.name()))?;
        let settings = parse(&stored)?;
        self.apply_settings(stored, &settings);
        Ok(settings)
    }

    /// The settings in effect now, read from the file if possible.
    pub fn latest_settings(&self) -> Settings {
        // A closed queue returns the last settings it knew.
        let _ = self.reread_settings();
        self.settings().settings.clone()
    }

    /// Adopts settings that another process has stored meanwhile, before a decision depends on them.
    pub(super) fn refresh_settings(&self, tx: &Change) -> Result<()> {
        self.adopt_settings(tx.settings(self.name())?)
    }

    /// Like `refresh_settings`, for the end of a claim. Finished work is recorded even if the settings cannot be read;
    /// the next claim reports that error.
    pub(super) fn refresh_settings_if_readable(&self, tx: &Change) -> Result<()> {
        match self.refresh_settings(tx) {
            Err(Error::Corrupt(_)) => Ok(()),
            outcome => outcome,
        }
    }

    pub(super) fn adopt_settings(&self, stored: StoredSettings) -> Result<()> {
        if self.settings().stored == stored {
            return Ok(());
        }
        let settings = parse(&stored)?;
        self.apply_settings(stored, &settings);
        Ok(())
    }

    /// Settings given at opening stay in effect, except the group limit, which only the file decides.
    fn apply_settings(&self, stored: StoredSettings, read: &Settings) {
        let given = self.given.load();
        let group_limit = read.group_limit.or(given.group_limit.filter(|limit| *limit == 1));
        self.current.store(Current { stored, settings: Settings { group_limit, ..given.or(read) } }.into());
    }

    /// Stores the settings in `set` in the file, for all processes, and removes those named in `forgotten`.
    pub fn configure(&self, set: &Settings, forgotten: &[String]) -> Result<()> {
        set.check()?;
        let mut given = Settings::clone(&self.given.load());
        for name in forgotten.iter().map(String::as_str).chain(set.names()) {
            if !given.forget(name) {
                let known = NAMES.join(", ");
                return Err(Error::Invalid(format!("there is no setting '{name}' to configure; there are {known}")));
            }
        }
        self.run(Verb::Configure, |tx| {
            tx.lock(Scope::Settings(self.name()))?;
            let before = parse(&tx.settings(self.name())?)?;
            let mut stored = set.or(&before);
            for name in forgotten {
                stored.forget(name);
            }
            tx.set_setting(&self.settings_key(), &stored.render())?;
            if stored.group_rate != before.group_rate {
                self.review_holds(tx, stored.group_rate)?;
            }
            // The new settings may allow more, so waiting workers look again.
            tx.tell(Event::Changed);
            self.store_group_limit(tx, stored.group_limit)
        })?;
        self.given.store(given.into());
        // The change is committed by now. A stored setting that conflicts with an argument of this object is no longer
        // a reason to refuse it.
        self.reread_settings()?;
        Ok(())
    }

    fn store_group_limit(&self, tx: &Change, limit: Option<u32>) -> Result<()> {
        let key = format!("group_limit:{}", self.name());
        if parse(&tx.settings(self.name())?)?.group_limit == limit {
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
}

fn parse(stored: &StoredSettings) -> Result<Settings> {
    let group_limit = stored.group_limit.as_ref().and_then(|text| text.parse().ok());
    Ok(Settings { group_limit, ..Settings::parse(stored.text.as_deref())? })
}
