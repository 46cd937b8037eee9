//! How one thread sleeps without inotify: until another thread wakes it, or until the next check, every 20 ms.
//! Untested.

use std::path::PathBuf;
use std::sync::Condvar;
use std::time::Duration;

use crate::error::Result;
use crate::sync::{Mutex, wait};

const WITHOUT_EVENTS: Duration = Duration::from_millis(20);

/// Wakes one sleeping thread.
#[derive(Default)]
pub struct Alarm {
    is_set: Mutex<bool>,
    wake_signal: Condvar,
}

/// Replaces file events: the thread that watches sleeps only briefly.
pub struct Events {
    is_in_memory: bool,
}

impl Events {
    pub fn new(log: Option<PathBuf>) -> Self {
        Self { is_in_memory: log.is_none() }
    }

    pub fn reset(&self) {}
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Woken {
    /// A process wrote to the file, or may have.
    pub touched: bool,
    /// File events are not available, so a write may have gone unnoticed.
    pub is_blind: bool,
    /// A signal came.
    pub interrupted: bool,
}

impl Alarm {
    pub fn new() -> Result<Self> {
        Ok(Self::default())
    }

    pub fn wake(&self) {
        *self.is_set.lock() = true;
        self.wake_signal.notify_all();
    }

    pub fn sleep(&self, limit: Duration, watch: Option<&Events>, _in_haste: bool) -> Woken {
        let is_blind = watch.is_some_and(|watch| !watch.is_in_memory);
        let limit = if is_blind { limit.min(WITHOUT_EVENTS) } else { limit };
        let mut is_set = self.is_set.lock();
        if !*is_set {
            is_set = wait(&self.wake_signal, is_set, Some(limit));
        }
        *is_set = false;
        Woken { is_blind, ..Woken::default() }
    }
}
