//! Backup: a consistent copy of the whole file, taken while other connections write.

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::{Database, Location, locks};
use crate::error::{Error, Result};
use crate::store::LockWait;

/// Pages copied between two checks for signals.
const PAGES_AT_A_TIME: i32 = 1024;
/// SQLite reads these files with the database of that name, even if they belong to another one.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];
/// A partial copy not written to for this long belongs to a backup that was killed.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

impl Database {
    /// Copies the file to one that does not exist yet, with the same mode. The copy gets its name only once it is
    /// complete. A process that dies before leaves a `<target>.<random>.partial`, which a later backup to that name
    /// removes.
    pub fn backup(&self, target: &Path, wait: LockWait) -> Result<()> {
        let Location::File(target) = Location::resolve(target)? else {
            return Err(Error::Invalid("a backup is a file; give the path of one that does not exist yet".into()));
        };
        check_is_free(&target)?;
        remove_abandoned(&target);
        let partial = Partial::new(&target, self.location())?;
        self.read(|source| {
            // One snapshot for the whole copy, which therefore excludes commits made in the meantime.
            let _snapshot = Snapshot::begin(source)?;
            let copied = copy(source, &partial.0, wait);
            // Before the copy gets its name, by which other processes may open it.
            locks::sweep();
            copied.map_err(|error| error.about(&target))
        })?;
        check_is_free(&target)?;
        partial.complete(&target)
    }
}

/// Fails if a file exists that the copy would overwrite, or that SQLite would read with it.
fn check_is_free(target: &Path) -> Result<()> {
    if target.symlink_metadata().is_ok() {
        return Err(Error::ExistingFile(target.to_owned()));
    }
    let beside = BESIDE.iter().map(|suffix| with_suffix(target, suffix));
    match beside.into_iter().find(|file| file.symlink_metadata().is_ok()) {
        Some(file) => Err(Error::LeftBeside(file)),
        None => Ok(()),
    }
}

fn copy(source: &Connection, path: &Path, wait: LockWait) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(path, flags)?;
    // An unfinished copy is deleted, so it needs no journal.
    copy.execute_batch("PRAGMA synchronous = FULL; PRAGMA journal_mode = OFF")?;
    let backup = Backup::new(source, &mut copy)?;
    loop {
        match backup.step(PAGES_AT_A_TIME)? {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            _ => return Err(Error::Busy("another program uses the file that is to be the copy".into())),
        }
        if (wait.interrupted)() {
            return Err(Error::Interrupted);
        }
    }
}

/// A read transaction, which ends when it is dropped.
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
            // Nothing was written, so an error loses nothing.
            let _ = connection.execute_batch("ROLLBACK");
        }
    }
}

/// The copy before it gets its name; removed unless it is completed.
struct Partial(PathBuf);

impl Partial {
    /// Creates an empty file with a random name, so that two backups do not collide. Its mode never exceeds that of the
    /// source, so that only users who may read the source can read the copy.
    fn new(target: &Path, source: &Location) -> Result<Self> {
        let number =
            getrandom::u64().map_err(|error| Error::Storage(format!("no random name for the copy: {error}")))?;
        let name = with_suffix(target, &format!(".{number:016x}.partial"));
        create(&name, source).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                Error::ReadOnly(format!("the directory of the copy cannot be written ({error}); check its permissions"))
                    .about(target)
            }
            _ => Error::Storage(format!("the copy cannot be made: {error}")).about(target),
        })?;
        Ok(Self(name))
    }

    fn complete(self, target: &Path) -> Result<()> {
        rename(&self.0, target).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::ExistingFile(target.to_owned()),
            _ => Error::Storage(format!("the copy could not be given its name: {error}")).about(target),
        })?;
        sync_directory(target);
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // A completed copy no longer has this name.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(unix)]
fn create(name: &Path, source: &Location) -> std::io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mode = match source {
        Location::File(path) => Some(std::fs::metadata(path)?.permissions().mode() & 0o777),
        Location::Memory(_) => None,
    };
    let made = File::options().write(true).create_new(true).mode(mode.map_or(0o666, |_| 0o600)).open(name)?;
    if let Some(mode) = mode {
        made.set_permissions(std::fs::Permissions::from_mode(mode))?;
    }
    Ok(made)
}

#[cfg(not(unix))]
fn create(name: &Path, _source: &Location) -> std::io::Result<File> {
    File::options().write(true).create_new(true).open(name)
}

/// Renames a file, and fails if the new name exists.
fn rename(from: &Path, to: &Path) -> std::io::Result<()> {
    match rename_at_once(from, to) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {}
        renamed => return renamed,
    }
    // In two steps: a process that dies between them leaves a file with two names.
    match std::fs::hard_link(from, to) {
        Ok(()) => std::fs::remove_file(from),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        Err(_) if to.exists() => Err(ErrorKind::AlreadyExists.into()),
        // A file system without links.
        Err(_) => std::fs::rename(from, to),
    }
}

#[cfg(target_os = "linux")]
fn rename_at_once(from: &Path, to: &Path) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let name = |path: &Path| std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(std::io::Error::from);
    let (from, to) = (name(from)?, name(to)?);
    let flags = libc::RENAME_NOREPLACE;
    // SAFETY: two NUL-terminated paths. Called by number, because not every C library has a function for it.
    let code = unsafe {
        libc::syscall(libc::SYS_renameat2, libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), flags)
    };
    if code == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        // The file system or the kernel does not support it.
        Some(libc::EINVAL | libc::ENOSYS) => Err(ErrorKind::Unsupported.into()),
        _ => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_at_once(_from: &Path, _to: &Path) -> std::io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Removes partial copies of backups to this name that were killed long ago. A running backup writes continually.
fn remove_abandoned(target: &Path) {
    let (Some(directory), Some(name)) = (target.parent(), target.file_name()) else { return };
    // If the directory cannot be listed, nothing is removed and the backup continues.
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let written = entry.metadata().and_then(|file| file.modified());
        let is_old = || written.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED_AFTER));
        if is_partial_of(name, &entry.file_name()) && is_old() {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn is_partial_of(target: &OsStr, name: &OsStr) -> bool {
    let random = name.as_encoded_bytes().strip_prefix(target.as_encoded_bytes());
    let random = random.and_then(|rest| rest.strip_prefix(b".")).and_then(|rest| rest.strip_suffix(b".partial"));
    random.is_some_and(|random| random.len() == 16 && random.iter().all(u8::is_ascii_hexdigit))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Syncs the directory, so that the name survives a power cut too.
fn sync_directory(target: &Path) {
    #[cfg(unix)]
    if let Some(directory) = target.parent().and_then(|parent| std::fs::File::open(parent).ok()) {
        // Not every file system supports it; the content is on disk in any case.
        let _ = directory.sync_all();
    }
    #[cfg(not(unix))]
    let _ = target;
}
