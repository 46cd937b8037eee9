//! Paths: which ones may name a queue's file, and the one absolute path each leads to.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::locks;
use crate::error::{Error, Result};

/// Where a database lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// One private connection, for tests; the number distinguishes them.
    Memory(u64),
    /// An absolute path, which SQLite never reads as a URI.
    File(PathBuf),
}

impl Location {
    /// Resolves a path that the user gave. The file need not exist; its directory must.
    pub fn resolve(path: &Path) -> Result<Self> {
        if path == Path::new(":memory:") {
            static MADE: AtomicU64 = AtomicU64::new(0);
            return Ok(Location::Memory(MADE.fetch_add(1, Ordering::Relaxed)));
        }
        let bytes = path.as_os_str().as_encoded_bytes();
        if bytes.is_empty() {
            return Err(Error::Invalid("the path of the queue's file is empty".into()));
        }
        if bytes.contains(&0) {
            return Err(Error::Invalid("the path of the queue's file contains a NUL character".into()));
        }
        if bytes.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"file:")) {
            return Err(Error::Invalid(
                "file: URIs are not accepted, because they can switch off locking; pass a plain path".into(),
            ));
        }
        if locks::is_reserved(path) {
            return Err(Error::Invalid(format!(
                "{} has a name that SQLite gives to the files beside a database; choose another",
                path.display()
            )));
        }
        if path.is_dir() {
            return Err(Error::Invalid(format!("{} is a directory; pass the path of a file in it", path.display())));
        }
        // Links are resolved, so that every process finds the same WAL.
        if let Ok(real) = path.canonicalize() {
            return Ok(Location::File(real));
        }
        let path = &follow_links(path)?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let name = path.file_name().ok_or_else(|| Error::Invalid(format!("{} names no file", path.display())))?;
        let parent = parent.canonicalize().map_err(|_| missing(path, parent))?;
        Ok(Location::File(parent.join(name)))
    }
}

/// Explains that a directory is missing, or that a URL or `~` was given instead of a path.
fn missing(path: &Path, parent: &Path) -> Error {
    let given = path.to_string_lossy();
    if given.contains("://") {
        return Error::Invalid(format!("{given} is a URL; pass the path of a file"));
    }
    if given.starts_with('~') {
        return Error::Invalid(format!("~ is not expanded; pass Path({given:?}).expanduser()"));
    }
    Error::MissingDirectory(parent.to_owned())
}

/// Follows a link whose target does not exist yet.
fn follow_links(path: &Path) -> Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..40 {
        match path.read_link() {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(Error::Invalid(format!("{} is a link that leads in circles", path.display())))
}
