//! Checks of an open file: whether it can be shared with other copies of SQLite, and whether it was replaced.

use std::path::Path;

use super::super::file::wal;
use super::identity::{Inode, inode_at};
use super::protections::{COMMIT_CHECK, LOCKS};
use super::registry::{registry, with_suffix};
use super::sweep::inodes_of_other_descriptors;
use crate::error::{Error, Result};

/// Refuses a file that cannot be shared safely: its file system lacks open-file-description locks, and other code of
/// this process has it open.
pub fn check_shareable(path: &Path) -> Result<()> {
    if LOCKS.is_off() {
        return Ok(());
    }
    let (lacking, ours) = {
        let registry = registry();
        let lacking = registry.named(path).filter(|(_, file)| !file.has_ofd).map(|(inode, _)| inode).collect();
        let ours = registry.descriptors(&lacking);
        (lacking, ours)
    };
    if lacking.is_empty() || inodes_of_other_descriptors(&ours).is_disjoint(&lacking) {
        return Ok(());
    }
    Err(Error::Storage(
        "another copy of SQLite in this process has the file open, and its file system has no open-file-description \
         locks: sharing it would destroy it. Close the other connection first, or move the file to a local disk"
            .into(),
    ))
}

/// The second line of defence: fails if the path no longer leads to the file that was opened, or the WAL that our
/// connections write to is no longer its WAL.
pub fn check_files(path: &Path, device: u64, number: u64) -> Result<()> {
    if COMMIT_CHECK.is_off() {
        return Ok(());
    }
    let database = Inode { device, number };
    let wal = with_suffix(path, "-wal");
    let current = inode_at(path);
    let current_wal = inode_at(&wal);
    let registry = registry();
    let mut ours = registry.named(&wal).filter(|(_, file)| file.database == Some(database));
    if current == Some(database) && ours.all(|(inode, _)| current_wal == Some(inode)) {
        return Ok(());
    }
    Err(replaced())
}

/// The same check before a write, without the WAL.
pub fn check_file(path: &Path, device: u64, number: u64) -> Result<()> {
    if COMMIT_CHECK.is_off() || inode_at(path) == Some(Inode { device, number }) { Ok(()) } else { Err(replaced()) }
}

fn replaced() -> Error {
    Error::Io(
        "the file or its write-ahead log was removed or replaced by another program while the queue was open; this change \
         is not acknowledged. Close the queue, and look at the file before you go on"
            .into(),
    )
}

/// Makes sure that the contents of a WAL are on the disk.
pub fn rewrite_wal(path: &Path) -> Result<()> {
    wal::rewrite(path).map_err(|error| Error::Io(format!("the log cannot be written again: {error}")))
}

/// Returns whether our locks on a file are open-file-description locks, which another copy of SQLite in the process
/// cannot drop.
pub fn has_own_locks(path: &Path) -> bool {
    !LOCKS.is_off() && registry().named(path).all(|(_, file)| file.has_ofd)
}
