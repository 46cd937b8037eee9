//! Identity of an open file: whether its path still leads to it.

use std::path::Path;

use super::super::locks;
use super::{Database, Location};
use crate::error::{Error, Result};

/// Device and inode of the file that a path led to when it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(pub u64, pub u64);

impl Identity {
    #[cfg(unix)]
    pub fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).ok().map(|file| Self(file.dev(), file.ino()))
    }

    #[cfg(not(unix))]
    pub fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|_| Self(0, 0))
    }
}

impl Database {
    /// Returns whether the path still leads to the file that was opened.
    pub(super) fn is_current(&self) -> bool {
        match &self.location {
            Location::Memory(_) => true,
            Location::File(path) => Identity::of(path) == Some(self.identity),
        }
    }

    /// Fails if the file was removed or replaced: a call that waits for it would wait forever.
    pub fn check_is_there(&self) -> Result<()> {
        if self.is_current() {
            return Ok(());
        }
        let text = "the file was removed or replaced by another program while the queue was open, so there is nothing to \
                    wait for. Close the queue, and look at the file before you go on";
        Err(self.about(Error::Io(text.into())))
    }

    /// Fails if the database or its WAL was removed or replaced: such a commit is not acknowledged.
    pub(super) fn check_files(&self) -> Result<()> {
        match &self.location {
            Location::File(path) => locks::check_files(path, self.identity.0, self.identity.1),
            Location::Memory(_) => Ok(()),
        }
    }
}
