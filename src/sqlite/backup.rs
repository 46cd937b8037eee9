//! A copy of the whole file as it is at one moment, taken while others go on writing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::{Database, Place, Wait};
use crate::error::{Error, Result};

/// Pages copied between two looks at signals.
const PAGES_AT_A_TIME: i32 = 1024;

impl Database {
    /// Copies the file to one that does not exist yet. It has its name only once it is whole: a process that dies in
    /// between leaves a file that ends in `.partial`, which the next backup of that name replaces.
    pub fn backup(&self, target: &Path, wait: Wait) -> Result<()> {
        let Place::File(target) = Place::resolve(target)? else {
            return Err(Error::Invalid("a backup is a file; give the path of one that does not exist yet".into()));
        };
        if target.symlink_metadata().is_ok() {
            return Err(Error::ExistingFile(target));
        }
        let partial = Partial::new(&target);
        self.read(|source| {
            // A reader of its own moment: however long it takes, what others commit meanwhile does not come in.
            let _snapshot = Snapshot::begin(source)?;
            copy(source, &partial.0, wait).map_err(|error| error.about(&target))
        })?;
        partial.become_whole(&target)
    }
}

fn copy(source: &Connection, path: &Path, wait: Wait) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(path, flags)?;
    copy.execute_batch("PRAGMA synchronous = FULL")?;
    let backup = Backup::new(source, &mut copy)?;
    loop {
        match backup.step(PAGES_AT_A_TIME)? {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            _ => return Err(Error::Busy("somebody else uses the file that is to be the copy".into())),
        }
        if (wait.interrupted)() {
            return Err(Error::Interrupted);
        }
    }
}

/// A read transaction, ended in any case.
struct Snapshot<'a>(Option<&'a Connection>);

impl<'a> Snapshot<'a> {
    fn begin(connection: &'a Connection) -> Result<Self> {
        connection.execute_batch("BEGIN")?;
        let snapshot = Self(Some(connection));
        connection.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
        Ok(snapshot)
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            // Nothing was written, so there is nothing that could be lost by it.
            let _ = connection.execute_batch("ROLLBACK");
        }
    }
}

/// The copy before it has its name; removed unless it becomes whole.
struct Partial(PathBuf);

impl Partial {
    fn new(target: &Path) -> Self {
        let mut name = target.to_owned().into_os_string();
        name.push(".partial");
        let partial = Self(name.into());
        partial.remove();
        partial
    }

    fn become_whole(self, target: &Path) -> Result<()> {
        // A link, because a rename would write over a file that came meanwhile; not every file system has links.
        match std::fs::hard_link(&self.0, target) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Error::ExistingFile(target.to_owned())),
            Err(_) if target.exists() => Err(Error::ExistingFile(target.to_owned())),
            Err(_) => std::fs::rename(&self.0, target)
                .map_err(|error| Error::Storage(format!("the copy could not be given its name: {error}"))),
        }?;
        self.remove();
        sync_directory(target);
        Ok(())
    }

    fn remove(&self) {
        for suffix in ["", "-journal", "-wal", "-shm"] {
            let mut name = self.0.clone().into_os_string();
            name.push(suffix);
            // Most of them are not there.
            let _ = std::fs::remove_file(PathBuf::from(name));
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The name must survive a power cut as the content does.
fn sync_directory(target: &Path) {
    #[cfg(unix)]
    if let Some(directory) = target.parent().and_then(|parent| std::fs::File::open(parent).ok()) {
        // Not every file system can; the content is on disk in any case.
        let _ = directory.sync_all();
    }
    #[cfg(not(unix))]
    let _ = target;
}
