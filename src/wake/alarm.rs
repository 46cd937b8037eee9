//! What one sleeper sleeps on: a bell of this process, and events of the log's file. No thread, and no descriptor of the
//! database or its log: inotify watches a path without opening it.

use std::ffi::{CString, c_int};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::sync::Mutex;

/// Without file events the file is looked at this often.
const WITHOUT_EVENTS: Duration = Duration::from_millis(20);

pub struct Alarm {
    bell: OwnedFd,
    events: Option<Events>,
    is_blind: bool,
}

struct Events {
    inotify: OwnedFd,
    log: PathBuf,
    is_watched: Mutex<bool>,
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Woken {
    /// Somebody wrote to the file, or may have.
    pub touched: bool,
    /// A signal came.
    pub interrupted: bool,
}

impl Alarm {
    /// `log` is what commits are written to; `None` in memory.
    pub fn new(log: Option<PathBuf>) -> Result<Self> {
        // SAFETY: makes a descriptor that nobody else knows.
        let bell = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).ok_or_else(|| {
            Error::Storage(format!("the system refused an eventfd: {}", std::io::Error::last_os_error()))
        })?;
        // The number of inotify instances is limited; without one we look more often.
        let events = log.clone().and_then(Events::new);
        Ok(Self { bell, is_blind: log.is_some() && events.is_none(), events })
    }

    pub fn ring(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: writes eight bytes of ours. It can only fail when the count is full, and then the bell rings already.
        unsafe { libc::write(self.bell.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Forgets what rang before.
    pub fn reset(&self) {
        drain(&self.bell);
        let _ = self.events.as_ref().map(Events::were_any);
    }

    /// Sleeps until rung, or `limit`. File events end a sleep too, unless it is one of the short ones that follow them.
    pub fn sleep(&self, limit: Duration, in_haste: bool) -> Woken {
        let limit = if self.is_blind { limit.min(WITHOUT_EVENTS) } else { limit };
        let events = self.events.as_ref().filter(|_| !in_haste);
        let fresh = events.is_some_and(Events::watch);
        let entry = |fd: c_int| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut waits = [entry(self.bell.as_raw_fd()), entry(events.map_or(-1, |events| events.inotify.as_raw_fd()))];
        let time = libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos().into() };
        if fresh {
            // Something may have been written before the watch began.
            return Woken { touched: true, interrupted: false };
        }
        // SAFETY: two valid entries, a valid time and no mask.
        let code = unsafe { libc::ppoll(waits.as_mut_ptr(), waits.len() as libc::nfds_t, &time, std::ptr::null()) };
        let interrupted = code < 0;
        if code > 0 && waits[0].revents != 0 {
            drain(&self.bell);
        }
        let touched = self.is_blind || self.events.as_ref().is_some_and(Events::were_any);
        Woken { touched, interrupted }
    }
}

impl Events {
    fn new(log: PathBuf) -> Option<Self> {
        // SAFETY: as above.
        let inotify = owned(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) })?;
        Some(Self { inotify, log, is_watched: Mutex::new(false) })
    }

    /// Watches the log if it does not yet. Says whether the watch is new.
    fn watch(&self) -> bool {
        let mut is_watched = self.is_watched.lock();
        if *is_watched {
            return false;
        }
        let Ok(path) = CString::new(self.log.as_os_str().as_bytes()) else { return false };
        let what = libc::IN_MODIFY | libc::IN_MOVE_SELF | libc::IN_DELETE_SELF;
        // SAFETY: a NUL-terminated path.
        *is_watched = unsafe { libc::inotify_add_watch(self.inotify.as_raw_fd(), path.as_ptr(), what) } >= 0;
        *is_watched
    }

    /// Takes the events that have come in. A log that was removed is watched anew when there is one again.
    fn were_any(&self) -> bool {
        let mut buffer = [0u8; 1024];
        let mut any = false;
        loop {
            // SAFETY: reads into a buffer of ours.
            let read = unsafe { libc::read(self.inotify.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
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

fn drain(bell: &OwnedFd) {
    let mut count = [0u8; 8];
    // SAFETY: reads eight bytes into a buffer of ours; nothing to read is fine too.
    unsafe { libc::read(bell.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
}

fn owned(fd: c_int) -> Option<OwnedFd> {
    // SAFETY: just made, and known to nobody else.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}
