//! What one sleeper sleeps on where there is no inotify: a bell of this process, and a look at the file every 20 ms. Untested.

use std::path::PathBuf;
use std::sync::Condvar;
use std::time::Duration;

use crate::error::Result;
use crate::sync::{Mutex, wait};

const WITHOUT_EVENTS: Duration = Duration::from_millis(20);

#[derive(Default)]
pub struct Alarm {
    is_rung: Mutex<bool>,
    bell: Condvar,
    is_blind: bool,
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Woken {
    /// Somebody may have written to the file.
    pub touched: bool,
    /// A signal came.
    pub interrupted: bool,
}

impl Alarm {
    pub fn new(log: Option<PathBuf>) -> Result<Self> {
        Ok(Self { is_blind: log.is_some(), ..Self::default() })
    }

    pub fn ring(&self) {
        *self.is_rung.lock() = true;
        self.bell.notify_all();
    }

    pub fn reset(&self) {
        *self.is_rung.lock() = false;
    }

    pub fn sleep(&self, limit: Duration, _in_haste: bool) -> Woken {
        let limit = if self.is_blind { limit.min(WITHOUT_EVENTS) } else { limit };
        let mut is_rung = self.is_rung.lock();
        if !*is_rung {
            is_rung = wait(&self.bell, is_rung, Some(limit));
        }
        *is_rung = false;
        Woken { touched: self.is_blind, interrupted: false }
    }
}
