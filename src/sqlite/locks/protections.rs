//! The protections of this folder, each of which a test can switch off to show what it prevents.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Whether this process has opened a file.
pub(super) static USED: AtomicBool = AtomicBool::new(false);

/// A protection that tests can switch off.
pub struct Protection(AtomicBool);

/// Locks that survive a close, and closes that keep the locks of other copies.
pub static LOCKS: Protection = Protection(AtomicBool::new(false));
/// What `fork.rs` does around a fork.
pub static FORK: Protection = Protection(AtomicBool::new(false));
/// The second line of defence: a commit to a WAL that is no longer the file's is not acknowledged.
pub static COMMIT_CHECK: Protection = Protection(AtomicBool::new(false));

impl Protection {
    /// Fails after the first open.
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
