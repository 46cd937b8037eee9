//! Writing the log: the frames of one commit leave in one write instead of two a page.
//!
//! SQLite writes each frame of the WAL as a header and a page. What it writes before the frame that commits is of no use to
//! anybody, so it is held back, and the frame that commits takes it along. Nothing is acknowledged before that write has
//! come back; what is held back when the write lock is given up belongs to a transaction that was rolled back, and is
//! dropped. Whoever reads the log through the same descriptor, or cuts it, sees everything.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::super::locks;

const HEADER: usize = 24;
/// Of a frame's header: the size of the database after the commit; zero when the frame does not commit.
const COMMIT_MARK: std::ops::Range<usize> = 4..8;
/// No more than this is held back.
const MOST: usize = 256 * 1024;

/// One descriptor of a log.
#[derive(Default)]
struct Log {
    held: Vec<u8>,
    start: i64,
    /// Where the last write ended.
    end: Option<i64>,
    /// A header has come, its page has not; and whether that frame commits.
    open: Option<bool>,
}

enum Decision {
    /// It was held back.
    Hold,
    /// What is held back, with this write, goes out now.
    Send(Vec<u8>, i64),
    /// What is held back goes out, then this write by itself.
    SendAndPass(Vec<u8>, i64),
}

impl Log {
    fn offer(&mut self, data: &[u8], offset: i64) -> Decision {
        let is_header = data.len() == HEADER;
        // A header that does not follow the last write may be one that is only rewritten: no page comes after it.
        if self.end != Some(offset) || self.open.is_some() == is_header {
            self.end = Some(offset + data.len() as i64);
            self.open = None;
            return Decision::SendAndPass(std::mem::take(&mut self.held), self.start);
        }
        if self.held.is_empty() {
            self.start = offset;
        }
        self.held.extend_from_slice(data);
        self.end = Some(offset + data.len() as i64);
        match self.open.take() {
            None => self.open = Some(data[COMMIT_MARK] != [0; 4]),
            Some(commits) if commits || self.held.len() >= MOST => {
                return Decision::Send(std::mem::take(&mut self.held), self.start);
            }
            Some(_) => {}
        }
        Decision::Hold
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

/// All logs that are open.
#[derive(Default)]
pub struct Logs {
    logs: HashMap<c_int, Log>,
}

impl Logs {
    pub fn enter(&mut self, fd: c_int) {
        self.logs.insert(fd, Log::default());
    }

    pub fn leave(&mut self, fd: c_int) {
        self.logs.remove(&fd);
    }

    /// After the write lock was given up: what is held back was rolled back.
    pub fn drop_unfinished(&mut self, fds: impl Iterator<Item = c_int>) {
        for fd in fds {
            if let Some(log) = self.logs.get_mut(&fd).filter(|log| !log.held.is_empty()) {
                log.forget();
            }
        }
    }

    pub fn hold_anything(&self) -> bool {
        self.logs.values().any(|log| !log.held.is_empty())
    }
}

/// SQLite's `pwrite`.
pub unsafe extern "C" fn write(fd: c_int, data: *const c_void, length: usize, offset: libc::off_t) -> isize {
    let (decision, inode) = {
        let mut registry = locks::registry();
        // SAFETY: SQLite passes `length` bytes to write.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
        (registry.logs.logs.get_mut(&fd).map(|log| log.offer(bytes, offset)), registry.inode(fd))
    };
    if matches!(decision, Some(Decision::Hold)) {
        return length as isize;
    }
    // The application may have closed the descriptor (`os.closerange`), and its number may be that of another file now.
    if inode.is_some() && locks::inode_of(fd) != inode {
        locks::set_errno(libc::EBADF);
        return -1;
    }
    let passes = match decision {
        None | Some(Decision::Hold) => true,
        Some(Decision::Send(held, start)) => {
            return if send(fd, held, start) { length as isize } else { -1 };
        }
        Some(Decision::SendAndPass(held, start)) => held.is_empty() || send(fd, held, start),
    };
    if !passes {
        return -1;
    }
    // SAFETY: passed on as it came.
    unsafe { libc::pwrite(fd, data, length, offset) }
}

/// SQLite's `pread`: sees what is held back.
pub unsafe extern "C" fn read(fd: c_int, into: *mut c_void, length: usize, offset: libc::off_t) -> isize {
    if !send_held(fd) {
        return -1;
    }
    // SAFETY: passed on as it came.
    unsafe { libc::pread(fd, into, length, offset) }
}

/// SQLite's `ftruncate`.
pub unsafe extern "C" fn truncate(fd: c_int, length: libc::off_t) -> c_int {
    if !send_held(fd) {
        return -1;
    }
    // SAFETY: passed on as it came.
    unsafe { libc::ftruncate(fd, length) }
}

/// Writes a log over itself, and syncs it. After a sync that failed the system takes pages for written that are not, and
/// the next sync passes over them.
pub fn rewrite(path: &Path) -> std::io::Result<()> {
    let file = match File::options().read(true).write(true).open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let (mut piece, mut offset) = (vec![0; MOST], 0);
    loop {
        let length = file.read_at(&mut piece, offset)?;
        if length == 0 {
            return file.sync_data();
        }
        file.write_all_at(&piece[..length], offset)?;
        offset += length as u64;
    }
}

/// Writes out what is held back, if anything. Says whether that went well.
fn send_held(fd: c_int) -> bool {
    let held = {
        let mut registry = locks::registry();
        let Some(log) = registry.logs.logs.get_mut(&fd).filter(|log| !log.held.is_empty()) else { return true };
        log.open = None;
        (std::mem::take(&mut log.held), log.start)
    };
    send(fd, held.0, held.1)
}

/// One write, or as many as the system makes of it. After an error nothing is held back any more.
fn send(fd: c_int, mut held: Vec<u8>, start: i64) -> bool {
    let mut sent = 0;
    while sent < held.len() {
        // SAFETY: the bytes of `held` that are still to be written.
        let code =
            unsafe { libc::pwrite(fd, held.as_ptr().add(sent).cast(), held.len() - sent, start + sent as libc::off_t) };
        match code {
            0 => {
                locks::set_errno(libc::ENOSPC);
                return false;
            }
            1.. => sent += code as usize,
            _ if std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
            _ => return false,
        }
    }
    // The next commit need not ask for memory again.
    held.clear();
    if held.capacity() <= 2 * MOST {
        let mut registry = locks::registry();
        if let Some(log) = registry.logs.logs.get_mut(&fd).filter(|log| log.held.capacity() == 0) {
            log.held = held;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: [u8; 512] = [7; 512];

    fn header(commits: bool) -> [u8; HEADER] {
        let mut header = [1; HEADER];
        header[COMMIT_MARK].copy_from_slice(&u32::from(commits).to_be_bytes());
        header
    }

    fn log_ending_at(end: i64) -> Log {
        Log { end: Some(end), ..Log::default() }
    }

    #[test]
    fn frames_are_held_back_until_one_commits() {
        let mut log = log_ending_at(32);
        assert!(matches!(log.offer(&header(false), 32), Decision::Hold));
        assert!(matches!(log.offer(&PAGE, 56), Decision::Hold));
        assert!(matches!(log.offer(&header(true), 568), Decision::Hold));
        let Decision::Send(sent, 32) = log.offer(&PAGE, 592) else { panic!("the commit must go out") };
        assert_eq!(sent.len(), 2 * (24 + 512));
        assert!(log.held.is_empty());
    }

    #[test]
    fn what_does_not_follow_is_written_by_itself() {
        let mut log = Log::default();
        assert!(matches!(log.offer(&header(true), 9_000), Decision::SendAndPass(held, _) if held.is_empty()));
        assert!(matches!(log.offer(&PAGE, 9_024), Decision::SendAndPass(held, _) if held.is_empty()));
        assert!(matches!(log.offer(&header(false), 9_536), Decision::Hold));
        assert!(matches!(log.offer(&header(true), 32), Decision::SendAndPass(held, 9_536) if held.len() == HEADER));
        assert!(log.held.is_empty() && log.open.is_none());
    }

    #[test]
    fn headers_that_are_rewritten_are_not_held_back() {
        let mut log = log_ending_at(2 * 536 + 32);
        for frame in 0..2 {
            assert!(matches!(log.offer(&header(true), 32 + frame * 536), Decision::SendAndPass(..)));
        }
        assert!(log.held.is_empty());
    }

    #[test]
    fn what_was_rolled_back_is_dropped_and_the_next_commit_stands_alone() {
        let mut logs = Logs::default();
        logs.enter(7);
        let log = logs.logs.get_mut(&7).unwrap();
        log.end = Some(32);
        assert!(matches!(log.offer(&header(false), 32), Decision::Hold));
        assert!(matches!(log.offer(&PAGE, 56), Decision::Hold));
        assert!(logs.hold_anything());
        logs.drop_unfinished([8].into_iter());
        assert!(logs.hold_anything(), "of another file");
        logs.drop_unfinished([7].into_iter());
        assert!(!logs.hold_anything());
        let log = logs.logs.get_mut(&7).unwrap();
        assert!(matches!(log.offer(&header(true), 32), Decision::SendAndPass(held, _) if held.is_empty()));
    }

    #[test]
    fn not_everything_is_held_back_for_ever() {
        let mut log = log_ending_at(32);
        let mut offset = 32;
        let mut sent = 0;
        for _ in 0..2_000 {
            for data in [&header(false)[..], &PAGE[..]] {
                if let Decision::Send(held, _) = log.offer(data, offset) {
                    sent += held.len();
                }
                offset += data.len() as i64;
            }
        }
        assert!(sent >= 1_000_000 - MOST && log.held.len() <= MOST, "{sent}");
    }
}
