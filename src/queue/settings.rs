//! Settings of a queue: what is stored for all processes, and what holds for this object.

use super::Queue;
use super::run::{Change, Verb};
use crate::error::{Error, Result};
use crate::model::Event;
use crate::rules::settings::{NAMES, Settings};
use crate::store::StoredSettings;

/// What holds for an object now, and what was stored when that was found out.
#[derive(Default)]
pub struct Current {
    stored: StoredSettings,
    pub settings: Settings,
}

impl Queue {
    /// What holds for this object: what it was opened with, else what the file says, else the defaults.
    pub fn settings(&self) -> arc_swap::Guard<std::sync::Arc<Current>> {
        self.current.load()
    }

    /// What this object was opened with, less what was configured since: what opens the same queue once more.
    pub fn given(&self) -> Settings {
        let mut given = Settings::clone(&self.given.load());
        // A closed queue tells what it knew last.
        if let Ok(stored) = self.reread_settings() {
            given.yield_to(&stored);
        }
        given
    }

    /// Reads what the file says, and refuses arguments that differ from it.
    pub(super) fn read_settings(&self) -> Result<()> {
        let given = self.given.load();
        let stored = self.reread_settings()?;
        given.check_against(&stored, self.name())?;
        match (given.group_limit, stored.group_limit) {
            // It is enforced in the file, so whoever gives one stores it; somebody else may have been first.
            (Some(wanted), None) if wanted != 1 => {
                self.run(Verb::Configure, |tx| {
                    let group_limit = parse(&tx.settings(self.name())?)?.group_limit;
                    given.check_against(&Settings { group_limit, ..Settings::default() }, self.name())?;
                    self.store_group_limit(tx, Some(wanted))
                })?;
                self.reread_settings().map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Reads what the file says; it holds where this object was given nothing.
    pub(super) fn reread_settings(&self) -> Result<Settings> {
        let stored = self.read(|view| view.settings(self.name()))?;
        let settings = parse(&stored)?;
        self.apply_settings(stored, &settings);
        Ok(settings)
    }

    /// What holds now, read from the file if it can be.
    pub fn latest_settings(&self) -> Settings {
        // A closed queue tells what it knew last.
        let _ = self.reread_settings();
        self.settings().settings.clone()
    }

    /// Takes over what another process has stored meanwhile, before anything is decided by it.
    pub(super) fn refresh_settings(&self, tx: &Change) -> Result<()> {
        self.adopt_settings(tx.settings(self.name())?)
    }

    /// The same for the end of a claim: work that is done is recorded also beside settings that cannot be read, of which
    /// the next claim tells.
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

    /// What this object was opened with stays, but for the limit of groups, which is the file's alone.
    fn apply_settings(&self, stored: StoredSettings, read: &Settings) {
        let given = self.given.load();
        let group_limit = read.group_limit.or(given.group_limit.filter(|limit| *limit == 1));
        self.current.store(Current { stored, settings: Settings { group_limit, ..given.or(read) } }.into());
    }

    /// Stores settings in the file, for all processes and for later: those in `set`, and forgets those named in `forgotten`.
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
            let before = parse(&tx.settings(self.name())?)?;
            let mut stored = set.or(&before);
            for name in forgotten {
                stored.forget(name);
            }
            tx.set_setting(&self.settings_key(), &stored.render())?;
            if stored.group_rate != before.group_rate {
                self.review_holds(tx, stored.group_rate)?;
            }
            // Those who wait may find that more is allowed now.
            tx.tell(Event::Changed);
            self.store_group_limit(tx, stored.group_limit)
        })?;
        self.given.store(given.into());
        // What others have stored against an argument of this object is no reason to refuse: it is written by now.
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
