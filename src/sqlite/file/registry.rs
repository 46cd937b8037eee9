//! The databases that this process has open, one of each file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::sync::MutexGuard;
use std::sync::{Arc, Weak};
use std::time::Duration;

use once_cell::sync::Lazy;

use super::super::locks;
use super::{Database, Place};
use crate::error::Result;
use crate::sync::Mutex;

type Registry = HashMap<PathBuf, Weak<Database>>;
static OPEN: Lazy<Mutex<Registry>> = Lazy::new(Mutex::default);

/// Wakes everybody who waits in this process: time was changed, or it is time to leave.
#[cfg(feature = "python")]
pub fn ring_all() {
    let open = OPEN.lock().values().filter_map(Weak::upgrade).collect::<Vec<_>>();
    open.iter().for_each(|database| database.bell().ring());
}

/// The open databases, held over a fork.
#[cfg(unix)]
pub struct OpenHold(MutexGuard<'static, Registry>);

#[cfg(unix)]
impl OpenHold {
    pub fn take() -> Self {
        Self(OPEN.lock())
    }

    /// In the child none of them is open.
    pub fn leave_parents_databases(&mut self) {
        std::mem::forget(std::mem::take(&mut *self.0));
    }
}

impl Database {
    /// Opens a file, or joins this process's open one.
    pub fn open(place: Place, patience: Duration) -> Result<Arc<Self>> {
        let Place::File(path) = &place else {
            return Ok(Arc::new(Self::create(place, patience)?));
        };
        if let Some(database) = find(path) {
            return Ok(database);
        }
        let created = Self::create(place.clone(), patience).inspect_err(|_| locks::sweep());
        let database = Arc::new(created.map_err(|error| error.about(path))?);
        let mut open = OPEN.lock();
        // Another thread may have opened it meanwhile: one writer per file, so the second one goes.
        if let Some(first) = open.get(path).and_then(Weak::upgrade).filter(|first| first.is_current()) {
            drop(open);
            return Ok(first);
        }
        open.retain(|_, known| known.strong_count() > 0);
        open.insert(path.clone(), Arc::downgrade(&database));
        Ok(database)
    }
}

/// This process's open database of that path, if the path still leads to the same file.
fn find(path: &Path) -> Option<Arc<Database>> {
    let known = OPEN.lock().get(path)?.upgrade();
    known.filter(|database| database.is_current())
}
