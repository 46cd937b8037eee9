//! The protections, each of which a test can leave out to show what it is for.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Whether a file was opened in this process.
pub(super) static USED: AtomicBool = AtomicBool::new(false);

/// A part of the cure that can be left out, so that tests can show what it is for.
pub struct Protection(AtomicBool);

/// Locks that survive a close, and closes that spare the locks of others.
pub static LOCKS: Protection = Protection(AtomicBool::new(false));
/// What is done around a fork.
pub static FORK: Protection = Protection(AtomicBool::new(false));
/// The second line: a commit to a log that is no longer the file's is not acknowledged.
pub static COMMIT_CHECK: Protection = Protection(AtomicBool::new(false));

impl Protection {
    /// Only before the first open.
    #[cfg_attr(not(feature = "python"), allow(dead_code))]
    pub fn switch_off(&self) -> Result<()> {
        if USED.load(Ordering::SeqCst) {
            return Err(Error::Invalid("a queue was opened in this process already".into()));
        }
        self.0.store(true, Ordering::SeqCst);
        Ok(())
    }

    pub fn is_off(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
