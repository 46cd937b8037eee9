//! The wording of busy errors and warnings: which process or connection has the write lock, and what to do.

use std::time::{Duration, Instant};

use super::super::locks::{self, Holder, Kind, Obstacle};
use super::{Database, Place, Wait};
use crate::error::Error;

/// A call that has waited this long for another connection of its own process warns: its own caller may hold the lock.
const WARN_AFTER: Duration = Duration::from_secs(1);

pub(super) fn busy(place: &Place, limit: Duration) -> Error {
    Error::Busy(format!("waited {limit:?} for the write lock, and nothing was changed: {}", why_busy(place)))
}

/// Explains what holds the lock, as far as the system tells.
fn why_busy(place: &Place) -> String {
    let obstacle = match place {
        Place::File(path) => locks::obstacle(path),
        Place::Memory(_) => None,
    };
    match obstacle {
        None | Some(Obstacle { holder: Holder::Unknown, kind: Kind::Writes }) => {
            "another connection or thread has an open transaction; if it is yours, commit it or roll it back before \
             calling the queue"
                .to_owned()
        }
        Some(Obstacle { holder, kind }) => {
            let is_here = holder == Holder::ThisProcess;
            let who = match holder {
                Holder::ThisProcess => {
                    "another connection of this very process (your own sqlite3, SQLAlchemy, …)".into()
                }
                Holder::Process(pid) => format!("process {pid}"),
                Holder::Unknown => "another connection".into(),
            };
            let what = match kind {
                Kind::Writes if is_here => {
                    "has an open write transaction; commit it or roll it back before calling the queue, which would \
                     otherwise wait for you"
                }
                Kind::Writes => "has an open write transaction",
                Kind::Reads => {
                    "reads the file, which is not in WAL mode yet and can be switched to it only while no other \
                     connection reads; finish its cursor or transaction, and open the queue again"
                }
                Kind::Excludes => {
                    "keeps the file for itself alone (PRAGMA locking_mode=EXCLUSIVE, or an exclusive transaction); close \
                     it, or let it use the normal locking mode"
                }
            };
            format!("{who} {what}")
        }
    }
}

impl Database {
    /// Warns once if the call has waited long for another connection of its own process, which may be its own caller's.
    pub(super) fn warn_of_own_transaction(&self, wait: Wait, started: Instant, has_warned: &mut bool) {
        if !*has_warned && started.elapsed() >= WARN_AFTER && self.is_held_up_by_this_process() {
            *has_warned = true;
            let why = why_busy(&self.place);
            let text = format!("has waited {WARN_AFTER:?} for the write lock, and goes on waiting: {why}");
            (wait.warn)(&self.about(Error::Busy(text)).to_string());
        }
    }

    /// Returns whether a connection of this process that is not ours has an open write transaction.
    pub fn is_held_up_by_this_process(&self) -> bool {
        let Place::File(path) = &self.place else { return false };
        let own = Obstacle { holder: Holder::ThisProcess, kind: Kind::Writes };
        locks::obstacle(path) == Some(own)
    }
}
