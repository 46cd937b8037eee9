//! WAL writes: all frames of a commit in one system call, instead of two calls per page.
//!
//! SQLite writes each frame of the WAL as a header and a page. No reader can use a frame before the frame that commits,
//! so frames are buffered and written together with that one. A commit is acknowledged only after that write has
//! returned. Frames still buffered when the write lock is released belong to a transaction that was rolled back, and
//! are discarded. A read or truncation of the WAL through the same descriptor first writes the buffered frames, so it
//! sees them.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::super::locks;

const FRAME_HEADER: usize = 24;
/// In a frame's header: the size of the database after the commit; zero if the frame does not commit.
const COMMIT_MARK: std::ops::Range<usize> = 4..8;
/// The buffer of one descriptor is written when it reaches this many bytes.
const MOST_BUFFERED: usize = 256 * 1024;

/// The frames of one WAL descriptor that are not written yet.
#[derive(Default)]
struct WalBuffer {
    frames: Vec<u8>,
    start: i64,
    /// Where the last write ended.
    end: Option<i64>,
    /// Set between a frame's header and its page: whether that frame commits.
    open_frame: Option<bool>,
}

/// What becomes of a write.
enum WriteDecision {
    /// It was added to the buffer.
    Keep,
    /// The buffer, which includes this write, is written now.
    WriteTogether(Vec<u8>, i64),
    /// The buffer is written, then this write by itself.
    WriteSeparately(Vec<u8>, i64),
}

impl WalBuffer {
    fn add(&mut self, data: &[u8], offset: i64) -> WriteDecision {
        let is_header = data.len() == FRAME_HEADER;
        // A header that does not follow the last write may only be rewritten in place: no page comes after it.
        if self.end != Some(offset) || self.open_frame.is_some() == is_header {
            self.end = Some(offset + data.len() as i64);
            self.open_frame = None;
            return WriteDecision::WriteSeparately(std::mem::take(&mut self.frames), self.start);
        }
        if self.frames.is_empty() {
            self.start = offset;
        }
        self.frames.extend_from_slice(data);
        self.end = Some(offset + data.len() as i64);
        match self.open_frame.take() {
            None => self.open_frame = Some(data[COMMIT_MARK] != [0; 4]),
            Some(commits) if commits || self.frames.len() >= MOST_BUFFERED => {
                return WriteDecision::WriteTogether(std::mem::take(&mut self.frames), self.start);
            }
            Some(_) => {}
        }
        WriteDecision::Keep
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The buffers of all open WAL descriptors.
#[derive(Default)]
pub struct WalBuffers {
    buffers: BTreeMap<c_int, WalBuffer>,
}

impl WalBuffers {
    pub fn add(&mut self, fd: c_int) {
        self.buffers.insert(fd, WalBuffer::default());
    }

    pub fn remove(&mut self, fd: c_int) {
        self.buffers.remove(&fd);
    }

    /// After the write lock was released: the buffered frames were rolled back.
    pub fn discard_uncommitted(&mut self, fds: impl Iterator<Item = c_int>) {
        for fd in fds {
            if let Some(buffer) = self.buffers.get_mut(&fd).filter(|buffer| !buffer.frames.is_empty()) {
                buffer.clear();
            }
        }
    }

    pub fn hold_frames(&self) -> bool {
        self.buffers.values().any(|buffer| !buffer.frames.is_empty())
    }
}

/// Replaces SQLite's `pwrite`.
pub unsafe extern "C" fn write(fd: c_int, data: *const c_void, length: usize, offset: libc::off_t) -> isize {
    let (decision, inode) = {
        let mut registry = locks::registry();
        // SAFETY: SQLite passes `length` bytes to write.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
        (registry.wals.buffers.get_mut(&fd).map(|buffer| buffer.add(bytes, offset)), registry.inode(fd))
    };
    if matches!(decision, Some(WriteDecision::Keep)) {
        return length as isize;
    }
    // The application may have closed the descriptor (`os.closerange`), and its number may be that of another file now.
    if inode.is_some() && locks::inode_of(fd) != inode {
        locks::set_errno(libc::EBADF);
        return -1;
    }
    let is_written = match decision {
        None | Some(WriteDecision::Keep) => true,
        Some(WriteDecision::WriteTogether(frames, start)) => {
            return if write_all(fd, frames, start) { length as isize } else { -1 };
        }
        Some(WriteDecision::WriteSeparately(frames, start)) => frames.is_empty() || write_all(fd, frames, start),
    };
    if !is_written {
        return -1;
    }
    // SAFETY: passed on as it came.
    unsafe { libc::pwrite(fd, data, length, offset) }
}

/// Replaces SQLite's `pread`: sees the buffered frames.
pub unsafe extern "C" fn read(fd: c_int, into: *mut c_void, length: usize, offset: libc::off_t) -> isize {
    if !write_buffered(fd) {
        return -1;
    }
    // SAFETY: passed on as it came.
    unsafe { libc::pread(fd, into, length, offset) }
}

/// Replaces SQLite's `ftruncate`.
pub unsafe extern "C" fn truncate(fd: c_int, length: libc::off_t) -> c_int {
    if !write_buffered(fd) {
        return -1;
    }
    // SAFETY: passed on as it came.
    unsafe { libc::ftruncate(fd, length) }
}

/// Writes a WAL over itself, and syncs it. After a failed sync the system counts pages as written that are not, and the
/// next sync would skip them.
pub fn rewrite(path: &Path) -> std::io::Result<()> {
    let file = match File::options().read(true).write(true).open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let (mut piece, mut offset) = (vec![0; MOST_BUFFERED], 0);
    loop {
        let length = file.read_at(&mut piece, offset)?;
        if length == 0 {
            return file.sync_data();
        }
        file.write_all_at(&piece[..length], offset)?;
        offset += length as u64;
    }
}

/// Writes the buffered frames, if any. Returns whether that succeeded.
fn write_buffered(fd: c_int) -> bool {
    let frames = {
        let mut registry = locks::registry();
        let Some(buffer) = registry.wals.buffers.get_mut(&fd).filter(|buffer| !buffer.frames.is_empty()) else {
            return true;
        };
        buffer.open_frame = None;
        (std::mem::take(&mut buffer.frames), buffer.start)
    };
    write_all(fd, frames.0, frames.1)
}

/// Writes the frames in one call, or in as many as the system needs. After an error they are not buffered again.
fn write_all(fd: c_int, mut frames: Vec<u8>, start: i64) -> bool {
    let mut written = 0;
    while written < frames.len() {
        // SAFETY: the bytes of `frames` that are still to be written.
        let code = unsafe {
            libc::pwrite(
                fd,
                frames.as_ptr().add(written).cast(),
                frames.len() - written,
                start + written as libc::off_t,
            )
        };
        match code {
            0 => {
                locks::set_errno(libc::ENOSPC);
                return false;
            }
            1.. => written += code as usize,
            _ if std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
            _ => return false,
        }
    }
    // The next commit reuses the allocation.
    frames.clear();
    if frames.capacity() <= 2 * MOST_BUFFERED {
        let mut registry = locks::registry();
        if let Some(buffer) = registry.wals.buffers.get_mut(&fd).filter(|buffer| buffer.frames.capacity() == 0) {
            buffer.frames = frames;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: [u8; 512] = [7; 512];

    fn header(commits: bool) -> [u8; FRAME_HEADER] {
        let mut header = [1; FRAME_HEADER];
        header[COMMIT_MARK].copy_from_slice(&u32::from(commits).to_be_bytes());
        header
    }

    fn buffer_ending_at(end: i64) -> WalBuffer {
        WalBuffer { end: Some(end), ..WalBuffer::default() }
    }

    #[test]
    fn frames_are_buffered_until_one_commits() {
        let mut buffer = buffer_ending_at(32);
        assert!(matches!(buffer.add(&header(false), 32), WriteDecision::Keep));
        assert!(matches!(buffer.add(&PAGE, 56), WriteDecision::Keep));
        assert!(matches!(buffer.add(&header(true), 568), WriteDecision::Keep));
        let WriteDecision::WriteTogether(written, 32) = buffer.add(&PAGE, 592) else {
            panic!("the commit must go out")
        };
        assert_eq!(written.len(), 2 * (24 + 512));
        assert!(buffer.frames.is_empty());
    }

    #[test]
    fn a_write_that_does_not_follow_the_last_is_written_by_itself() {
        let mut buffer = WalBuffer::default();
        assert!(
            matches!(buffer.add(&header(true), 9_000), WriteDecision::WriteSeparately(frames, _) if frames.is_empty())
        );
        assert!(matches!(buffer.add(&PAGE, 9_024), WriteDecision::WriteSeparately(frames, _) if frames.is_empty()));
        assert!(matches!(buffer.add(&header(false), 9_536), WriteDecision::Keep));
        assert!(
            matches!(buffer.add(&header(true), 32), WriteDecision::WriteSeparately(frames, 9_536) if frames.len() == FRAME_HEADER)
        );
        assert!(buffer.frames.is_empty() && buffer.open_frame.is_none());
    }

    #[test]
    fn headers_that_are_rewritten_are_not_buffered() {
        let mut buffer = buffer_ending_at(2 * 536 + 32);
        for frame in 0..2 {
            assert!(matches!(buffer.add(&header(true), 32 + frame * 536), WriteDecision::WriteSeparately(..)));
        }
        assert!(buffer.frames.is_empty());
    }

    #[test]
    fn rolled_back_frames_are_discarded_and_the_next_commit_stands_alone() {
        let mut wals = WalBuffers::default();
        wals.add(7);
        let buffer = wals.buffers.get_mut(&7).unwrap();
        buffer.end = Some(32);
        assert!(matches!(buffer.add(&header(false), 32), WriteDecision::Keep));
        assert!(matches!(buffer.add(&PAGE, 56), WriteDecision::Keep));
        assert!(wals.hold_frames());
        wals.discard_uncommitted([8].into_iter());
        assert!(wals.hold_frames(), "of another file");
        wals.discard_uncommitted([7].into_iter());
        assert!(!wals.hold_frames());
        let buffer = wals.buffers.get_mut(&7).unwrap();
        assert!(
            matches!(buffer.add(&header(true), 32), WriteDecision::WriteSeparately(frames, _) if frames.is_empty())
        );
    }

    #[test]
    fn a_long_transaction_is_written_in_parts() {
        let mut buffer = buffer_ending_at(32);
        let mut offset = 32;
        let mut written = 0;
        for _ in 0..2_000 {
            for data in [&header(false)[..], &PAGE[..]] {
                if let WriteDecision::WriteTogether(frames, _) = buffer.add(data, offset) {
                    written += frames.len();
                }
                offset += data.len() as i64;
            }
        }
        assert!(written >= 1_000_000 - MOST_BUFFERED && buffer.frames.len() <= MOST_BUFFERED, "{written}");
    }
}
