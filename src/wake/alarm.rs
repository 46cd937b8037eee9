//! What a sleeper sleeps on: a bell of this process, and events of the log's file. No thread, and no descriptor of the
//! database or its log: inotify watches a path without opening it.

use std::ffi::{CString, c_int};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::sync::Mutex;

/// Without file events the file is looked at this often.
const WITHOUT_EVENTS: Duration = Duration::from_millis(20);

/// What one sleeper is woken by.
pub struct Alarm {
    bell: OwnedFd,
    /// The sleeper has not heard it yet: ringing again would cost a call of the system for nothing.
    is_rung: AtomicBool,
}

/// What the log's file tells of other processes. Where the system refuses to tell (the number of its instances and
/// watches is limited), sleeps are short instead.
pub struct Events {
    inotify: Option<OwnedFd>,
    /// What commits are written to; `None` in memory.
    log: Option<PathBuf>,
    is_watched: Mutex<bool>,
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Woken {
    /// Somebody wrote to the file, or may have.
    pub touched: bool,
    /// Nobody would have told.
    pub is_blind: bool,
    /// A signal came.
    pub interrupted: bool,
}

impl Alarm {
    pub fn new() -> Result<Self> {
        // SAFETY: makes a descriptor that nobody else knows.
        let bell = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).ok_or_else(|| {
            Error::Storage(format!("the system refused an eventfd: {}", std::io::Error::last_os_error()))
        })?;
        Ok(Self { bell, is_rung: AtomicBool::new(false) })
    }

    pub fn ring(&self) {
        if self.is_rung.swap(true, Ordering::SeqCst) {
            return;
        }
        let one = 1u64.to_ne_bytes();
        // SAFETY: writes eight bytes of ours. It can only fail when the count is full, and then the bell rings already.
        unsafe { libc::write(self.bell.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Sleeps until rung, or `limit`. Who keeps watch is woken by file events too, unless the sleep is one of the short
    /// ones that follow them.
    pub fn sleep(&self, limit: Duration, watch: Option<&Events>, in_haste: bool) -> Woken {
        let before = watch.filter(|_| !in_haste).map_or(Watching::Well, Events::watch);
        if before == Watching::Anew {
            // Something may have been written before the watch began.
            return Woken { touched: true, ..Woken::default() };
        }
        let is_blind = before == Watching::Blindly;
        let limit = if is_blind { limit.min(WITHOUT_EVENTS) } else { limit };
        let events = watch.filter(|_| !in_haste).and_then(|watch| watch.inotify.as_ref());
        let entry = |fd: c_int| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut waits = [entry(self.bell.as_raw_fd()), entry(events.map_or(-1, AsRawFd::as_raw_fd))];
        let time = libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos().into() };
        // SAFETY: two valid entries, a valid time and no mask.
        let code = unsafe { libc::ppoll(waits.as_mut_ptr(), waits.len() as libc::nfds_t, &time, std::ptr::null()) };
        let interrupted = code < 0;
        if code > 0 && waits[0].revents != 0 {
            drain(&self.bell);
            // In this order: who rings before it does not write, but is seen by the look that follows.
            self.is_rung.store(false, Ordering::SeqCst);
        }
        Woken { touched: watch.is_some_and(Events::were_any), is_blind, interrupted }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Watching {
    Well,
    Anew,
    Blindly,
}

impl Events {
    pub fn new(log: Option<PathBuf>) -> Self {
        // SAFETY: as above.
        let make = || owned(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) });
        Self { inotify: log.as_ref().and_then(|_| make()), log, is_watched: Mutex::new(false) }
    }

    /// Forgets what was written before.
    pub fn reset(&self) {
        self.were_any();
    }

    /// Watches the log if it does not yet.
    fn watch(&self) -> Watching {
        let Some(log) = &self.log else { return Watching::Well };
        let Some(inotify) = &self.inotify else { return Watching::Blindly };
        let mut is_watched = self.is_watched.lock();
        if *is_watched {
            return Watching::Well;
        }
        let Ok(path) = CString::new(log.as_os_str().as_bytes()) else { return Watching::Blindly };
        let what = libc::IN_MODIFY | libc::IN_MOVE_SELF | libc::IN_DELETE_SELF;
        // SAFETY: a NUL-terminated path.
        *is_watched = unsafe { libc::inotify_add_watch(inotify.as_raw_fd(), path.as_ptr(), what) } >= 0;
        if *is_watched { Watching::Anew } else { Watching::Blindly }
    }

    /// Takes the events that have come in. A log that was removed is watched anew when there is one again.
    fn were_any(&self) -> bool {
        let Some(inotify) = &self.inotify else { return false };
        let mut buffer = [0u8; 1024];
        let mut any = false;
        loop {
            // SAFETY: reads into a buffer of ours.
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

fn drain(bell: &OwnedFd) {
    let mut count = [0u8; 8];
    // SAFETY: reads eight bytes into a buffer of ours; nothing to read is fine too.
    unsafe { libc::read(bell.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
}

fn owned(fd: c_int) -> Option<OwnedFd> {
    // SAFETY: just made, and known to nobody else.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}
