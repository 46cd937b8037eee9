//! File identity: which file a path or a descriptor leads to, and what kind of file it is.

use std::ffi::{CStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inode {
    pub(super) device: u64,
    pub(super) number: u64,
}

pub(super) struct FileFacts {
    pub(super) inode: Inode,
    pub(super) is_regular: bool,
    pub(super) links: u64,
}

/// Describes the file of a descriptor, without the salt that SQLite sees.
pub(super) fn describe(fd: c_int) -> Option<FileFacts> {
    // SAFETY: a zeroed `struct stat` is a valid one to fill.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &mut stat) == 0).then(|| facts(&stat))
    }
}

pub(super) fn describe_path(path: &CStr) -> Option<FileFacts> {
    // SAFETY: as above.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::stat(path.as_ptr(), &mut stat) == 0).then(|| facts(&stat))
    }
}

#[allow(clippy::unnecessary_cast)] // the field types differ between platforms
fn facts(stat: &libc::stat) -> FileFacts {
    FileFacts {
        inode: Inode { device: stat.st_dev as u64, number: stat.st_ino as u64 },
        is_regular: stat.st_mode & libc::S_IFMT == libc::S_IFREG,
        links: stat.st_nlink as u64,
    }
}

pub(super) fn describe_bytes(path: &[u8]) -> Option<FileFacts> {
    describe_path(&std::ffi::CString::new(path).ok()?)
}

/// Returns the inode alone, without querying time stamps. A file whose times were queried gets new ones at its next
/// write, and a sync then has to write them too (70 µs per commit).
#[cfg(target_os = "linux")]
pub(super) fn inode_at(path: &Path) -> Option<Inode> {
    let path = &std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    match statx(libc::AT_FDCWD, path, 0) {
        Ok(inode) => Some(inode),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => None,
        Err(_) => describe_path(path).map(|found| found.inode),
    }
}

/// The same for a descriptor.
#[cfg(target_os = "linux")]
pub fn inode_of(fd: c_int) -> Option<Inode> {
    match statx(fd, c"", libc::AT_EMPTY_PATH) {
        Ok(inode) => Some(inode),
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => None,
        Err(_) => describe(fd).map(|found| found.inode),
    }
}

#[cfg(target_os = "linux")]
fn statx(fd: c_int, path: &CStr, flags: c_int) -> std::io::Result<Inode> {
    // SAFETY: a zeroed `struct statx` is a valid one to fill.
    unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        if libc::statx(fd, path.as_ptr(), flags, libc::STATX_INO, &mut found) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Inode { device: libc::makedev(found.stx_dev_major, found.stx_dev_minor), number: found.stx_ino })
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn inode_at(path: &Path) -> Option<Inode> {
    describe_bytes(path.as_os_str().as_bytes()).map(|found| found.inode)
}

#[cfg(not(target_os = "linux"))]
pub fn inode_of(fd: c_int) -> Option<Inode> {
    describe(fd).map(|found| found.inode)
}

pub(super) fn is_read_write(fd: c_int) -> bool {
    // SAFETY: only queries a descriptor of ours.
    unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_ACCMODE == libc::O_RDWR }
}

pub(super) fn is_unlinked(fd: c_int) -> bool {
    describe(fd).is_none_or(|found| found.links == 0)
}

/// Returns whether a file has several hard links.
pub fn is_hard_linked(path: &Path) -> bool {
    describe_bytes(path.as_os_str().as_bytes()).is_some_and(|found| found.links > 1)
}

/// Returns whether the file itself is a mount point, so that it has another name elsewhere. The other name cannot be
/// recognised as such.
#[cfg(target_os = "linux")]
pub fn is_mounted(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a zeroed `struct statx` is a valid one to fill.
    let found = unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        (libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, libc::STATX_INO, &mut found) == 0).then_some(found)
    };
    let root = libc::STATX_ATTR_MOUNT_ROOT as u64;
    // A kernel that does not know the attribute leaves it out of the mask and never sets it.
    found.is_some_and(|found| found.stx_attributes_mask & found.stx_attributes & root != 0)
}

#[cfg(not(target_os = "linux"))]
pub fn is_mounted(_path: &Path) -> bool {
    false
}

/// Returns whether this process may write there.
pub fn is_writable(path: &Path) -> bool {
    let name = std::ffi::CString::new(path.as_os_str().as_bytes());
    // SAFETY: a NUL-terminated path.
    name.is_ok_and(|name| unsafe { libc::access(name.as_ptr(), libc::W_OK) == 0 })
}
