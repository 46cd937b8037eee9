//! How one thread sleeps on Linux: until another thread of the process wakes it, or the WAL file changes. It needs no
//! helper thread and opens neither database nor WAL: inotify watches a path without opening it.

use std::ffi::{CString, c_int};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::sync::Mutex;

/// How often the file is checked if there are no file events.
const WITHOUT_EVENTS: Duration = Duration::from_millis(20);

/// Wakes one sleeping thread.
pub struct Alarm {
    wake_signal: OwnedFd,
    /// The thread has not woken yet. Waking it again would be a needless system call.
    is_set: AtomicBool,
}

/// File events of the WAL, which show commits of other processes. If the system refuses them (inotify instances and
/// watches are limited), sleeps are short instead.
pub struct Events {
    inotify: Option<OwnedFd>,
    /// The WAL file; `None` in memory.
    log: Option<PathBuf>,
    is_watched: Mutex<bool>,
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Woken {
    /// A process wrote to the file, or may have.
    pub touched: bool,
    /// File events are not available, so a write may have gone unnoticed.
    pub is_blind: bool,
    /// A signal came.
    pub interrupted: bool,
}

impl Alarm {
    pub fn new() -> Result<Self> {
        // SAFETY: creates a descriptor that nothing else uses.
        let wake_signal =
            owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).ok_or_else(|| {
                Error::Storage(format!("the system refused an eventfd: {}", std::io::Error::last_os_error()))
            })?;
        Ok(Self { wake_signal, is_set: AtomicBool::new(false) })
    }

    pub fn wake(&self) {
        if self.is_set.swap(true, Ordering::SeqCst) {
            return;
        }
        let one = 1u64.to_ne_bytes();
        // SAFETY: writes eight bytes from our buffer. It fails only if the counter is full, and then the thread wakes
        // anyway.
        unsafe { libc::write(self.wake_signal.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Sleeps until woken, at most for `limit`. File events also wake a thread that watches, unless `in_haste`: those
    /// short sleeps follow an event.
    pub fn sleep(&self, limit: Duration, watch: Option<&Events>, in_haste: bool) -> Woken {
        let before = watch.filter(|_| !in_haste).map_or(WatchState::Well, Events::watch);
        if before == WatchState::Anew {
            // Something may have been written before the watch began.
            return Woken { touched: true, ..Woken::default() };
        }
        let is_blind = before == WatchState::Blindly;
        let limit = if is_blind { limit.min(WITHOUT_EVENTS) } else { limit };
        let events = watch.filter(|_| !in_haste).and_then(|watch| watch.inotify.as_ref());
        let entry = |fd: c_int| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut waits = [entry(self.wake_signal.as_raw_fd()), entry(events.map_or(-1, AsRawFd::as_raw_fd))];
        let time = libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos().into() };
        // SAFETY: two valid entries, a valid time and no mask.
        let code = unsafe { libc::ppoll(waits.as_mut_ptr(), waits.len() as libc::nfds_t, &time, std::ptr::null()) };
        let interrupted = code < 0;
        if code > 0 && waits[0].revents != 0 {
            drain(&self.wake_signal);
            // Cleared after draining. A thread that wakes it in between writes nothing, but the look that follows sees its
            // change.
            self.is_set.store(false, Ordering::SeqCst);
        }
        Woken { touched: watch.is_some_and(Events::were_any), is_blind, interrupted }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WatchState {
    Well,
    Anew,
    Blindly,
}

impl Events {
    pub fn new(log: Option<PathBuf>) -> Self {
        // SAFETY: creates a descriptor that nothing else uses.
        let make = || owned(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) });
        Self { inotify: log.as_ref().and_then(|_| make()), log, is_watched: Mutex::new(false) }
    }

    /// Discards events of earlier writes.
    pub fn reset(&self) {
        self.were_any();
    }

    /// Watches the WAL file, unless it is already watched.
    fn watch(&self) -> WatchState {
        let Some(log) = &self.log else { return WatchState::Well };
        let Some(inotify) = &self.inotify else { return WatchState::Blindly };
        let mut is_watched = self.is_watched.lock();
        if *is_watched {
            return WatchState::Well;
        }
        let Ok(path) = CString::new(log.as_os_str().as_bytes()) else { return WatchState::Blindly };
        let what = libc::IN_MODIFY | libc::IN_MOVE_SELF | libc::IN_DELETE_SELF;
        // SAFETY: a NUL-terminated path.
        *is_watched = unsafe { libc::inotify_add_watch(inotify.as_raw_fd(), path.as_ptr(), what) } >= 0;
        if *is_watched { WatchState::Anew } else { WatchState::Blindly }
    }

    /// Reads all pending events; returns whether there were any. A WAL file that was removed is watched again once it
    /// exists.
    fn were_any(&self) -> bool {
        let Some(inotify) = &self.inotify else { return false };
        let mut buffer = [0u8; 1024];
        let mut any = false;
        loop {
            // SAFETY: reads into our buffer.
            let read = unsafe { libc::read(inotify.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
            let Ok(read @ 1..) = usize::try_from(read) else { return any };
            any = true;
            let mut rest = &buffer[..read];
            while rest.len() >= size_of::<libc::inotify_event>() {
                // SAFETY: the kernel writes whole events, each followed by its name.
                let event = unsafe { rest.as_ptr().cast::<libc::inotify_event>().read_unaligned() };
                if event.mask & (libc::IN_IGNORED | libc::IN_MOVE_SELF | libc::IN_DELETE_SELF) != 0 {
                    *self.is_watched.lock() = false;
                }
                rest = rest.get(size_of::<libc::inotify_event>() + event.len as usize..).unwrap_or_default();
            }
        }
    }
}

fn drain(wake_signal: &OwnedFd) {
    let mut count = [0u8; 8];
    // SAFETY: reads eight bytes into our buffer; it is harmless if there is nothing to read.
    unsafe { libc::read(wake_signal.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
}

fn owned(fd: c_int) -> Option<OwnedFd> {
    // SAFETY: the descriptor was just created, and nothing else uses it.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}
