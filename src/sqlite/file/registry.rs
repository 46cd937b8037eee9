//! The open databases of this process, one per file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::sync::MutexGuard;
use std::sync::{Arc, Weak};
use std::time::Duration;

use once_cell::sync::Lazy;

use super::super::locks;
use super::{Database, Location};
use crate::error::Result;
use crate::sync::Mutex;

type OpenFiles = HashMap<PathBuf, Weak<Database>>;
static OPEN: Lazy<Mutex<OpenFiles>> = Lazy::new(Mutex::default);

/// Wakes every waiting call of this process: the clock was changed, or the interpreter exits.
#[cfg(feature = "python")]
pub fn wake_all() {
    let open = OPEN.lock().values().filter_map(Weak::upgrade).collect::<Vec<_>>();
    open.iter().for_each(|database| database.wake_signal().wake());
}

/// The registry, locked during a fork.
#[cfg(unix)]
pub struct OpenDatabasesGuard(MutexGuard<'static, OpenFiles>);

#[cfg(unix)]
impl OpenDatabasesGuard {
    pub fn take() -> Self {
        Self(OPEN.lock())
    }

    /// In the child: its parent's databases are not open here, and must not be closed.
    pub fn forget_parents_databases(&mut self) {
        std::mem::forget(std::mem::take(&mut *self.0));
    }
}

impl Database {
    /// Opens a file, or returns this process's open database of it.
    pub fn open(location: Location, patience: Duration) -> Result<Arc<Self>> {
        let Location::File(path) = &location else {
            return Ok(Arc::new(Self::create(location, patience)?));
        };
        if let Some(database) = find(path) {
            return Ok(database);
        }
        let created = Self::create(location.clone(), patience).inspect_err(|_| locks::sweep());
        let database = Arc::new(created.map_err(|error| error.about(path))?);
        let mut open = OPEN.lock();
        // Another thread may have opened it meanwhile. There is one writer per file, so this one is dropped.
        if let Some(first) = open.get(path).and_then(Weak::upgrade).filter(|first| first.is_current()) {
            drop(open);
            return Ok(first);
        }
        open.retain(|_, known| known.strong_count() > 0);
        open.insert(path.clone(), Arc::downgrade(&database));
        Ok(database)
    }
}

/// Returns whether this process has the file of a path open as a queue.
pub fn is_open(path: &Path) -> bool {
    find(path).is_some()
}

/// Returns this process's open database of a path, if the path still leads to the same file.
fn find(path: &Path) -> Option<Arc<Database>> {
    let known = OPEN.lock().get(path)?.upgrade();
    known.filter(|database| database.is_current())
}
