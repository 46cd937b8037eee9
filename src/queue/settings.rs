//! Settings of a queue: stored by the first object that is opened with them, or by `configure`, for all processes.

use std::sync::atomic::Ordering;

use super::Queue;
use super::run::{Change, Verb};
use crate::error::{Error, Result};
use crate::model::Event;
use crate::rules::conflict::SettingsLocation;
use crate::rules::settings::{NAMES, Settings};
use crate::store::{Scope, StoredSettings};

/// The settings in effect for an object, and the stored settings they were computed from.
#[derive(Default)]
pub struct Current {
    pub(super) stored: StoredSettings,
    pub settings: Settings,
}

impl Queue {
    /// The settings in effect: the file's, else the defaults. A lease that this object was opened with is its own.
    pub fn settings(&self) -> arc_swap::Guard<std::sync::Arc<Current>> {
        self.current.load()
    }

    /// The lease this object was opened with, unless one was configured since.
    pub fn own_lease_ms(&self) -> Option<i64> {
        Some(self.own_lease_ms.load(Ordering::Relaxed)).filter(|lease| *lease > 0)
    }

    /// Stores the settings this object was opened with, if the file has none of that name. Refuses those that differ
    /// from the file's. If all are stored already, nothing is written and no lock is taken.
    pub(super) fn store_given_settings(&self) -> Result<()> {
        let given = self.options.settings.shared();
        let place = SettingsLocation { path: self.path(), queue: self.name().to_owned() };
        let stored = self.reread_settings()?;
        given.check_against(&stored, &place)?;
        if given.or(&stored) == stored {
            return Ok(());
        }
        self.run(Verb::Configure, |tx| {
            tx.lock(Scope::Settings(self.name()))?;
            // Another process may have stored its own meanwhile.
            let before = parse(&tx.settings(self.name())?)?;
            given.check_against(&before, &place)?;
            let settings = given.or(&before);
            if settings == before { Ok(()) } else { self.store_settings(tx, &before, &settings) }
        })?;
        self.reread_settings().map(drop)
    }

    /// Reads the file's settings; they apply to this object from now on.
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

    /// Adopts settings that a move of the store has found. An error names the file, as the store's own errors do.
    pub(super) fn learn_settings(&self, stored: StoredSettings) -> Result<()> {
        self.adopt_settings(stored).map_err(|error| self.naming_the_file(error))
    }

    /// The settings of another queue of the file, as they are stored now.
    pub(super) fn settings_of(&self, name: &str) -> Result<Current> {
        self.read_settings(self.read(|view| view.settings(name))?)
    }

    /// Reads the stored settings of another queue. An error names the file, as the store's own errors do.
    pub(super) fn read_settings(&self, stored: StoredSettings) -> Result<Current> {
        let settings = parse(&stored).map_err(|error| self.naming_the_file(error))?;
        Ok(Current { stored, settings })
    }

    fn naming_the_file(&self, error: Error) -> Error {
        match self.path() {
            Some(path) => error.retold(|text| format!("{}: {text}", path.display())),
            None => error,
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

    fn apply_settings(&self, stored: StoredSettings, read: &Settings) {
        let lease_ms = self.own_lease_ms().or(read.lease_ms);
        self.current.store(Current { stored, settings: Settings { lease_ms, ..read.clone() } }.into());
    }

    /// Stores the settings in `set` in the file, for all processes, and removes those named in `forgotten`.
    pub fn configure(&self, set: &Settings, forgotten: &[String]) -> Result<()> {
        set.check()?;
        if let Some(name) = forgotten.iter().find(|name| !NAMES.contains(&name.as_str())) {
            let known = NAMES.join(", ");
            return Err(Error::Invalid(format!("there is no setting '{name}' to configure; there are {known}")));
        }
        self.run(Verb::Configure, |tx| {
            tx.lock(Scope::Settings(self.name()))?;
            let before = parse(&tx.settings(self.name())?)?;
            let mut stored = set.or(&before);
            for name in forgotten {
                stored.forget(name);
            }
            self.store_settings(tx, &before, &stored)
        })?;
        if set.lease_ms.is_some() || forgotten.iter().any(|name| name == "lease") {
            self.own_lease_ms.store(0, Ordering::Relaxed);
        }
        self.reread_settings()?;
        Ok(())
    }

    fn store_settings(&self, tx: &Change, before: &Settings, settings: &Settings) -> Result<()> {
        tx.set_setting(&self.settings_key(), &settings.render())?;
        if settings.group_rate != before.group_rate {
            self.review_holds(tx, settings.group_rate)?;
        }
        // The new settings may allow more, so waiting workers look again.
        tx.tell(Event::Changed);
        if settings.group_limit == before.group_limit {
            return Ok(());
        }
        let key = format!("group_limit:{}", self.name());
        match settings.group_limit {
            Some(limit) => tx.set_setting(&key, &limit.to_string())?,
            None => drop(tx.clear_setting(&key)?),
        }
        if settings.group_limit() == before.group_limit() { Ok(()) } else { tx.groups_moved(self.name()) }
    }

    fn settings_key(&self) -> String {
        format!("settings:{}", self.name())
    }
}

fn parse(stored: &StoredSettings) -> Result<Settings> {
    let group_limit = stored.group_limit.as_ref().and_then(|text| text.parse().ok());
    Ok(Settings { group_limit, ..Settings::parse(stored.text.as_deref())? })
}
