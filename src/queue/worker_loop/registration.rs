//! A loop's registration: the record and the liveness locks by which others see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::super::Queue;
use super::super::lease::this_process;
use super::super::run::Verb;
use super::super::workers::TIDY_LIMIT;
use super::{Plan, WorkerLoop};
use crate::error::{Error, Result};
use crate::rules::worker::{Kind, WorkerRecord};
use crate::store::{Liveness, LockWait, Scope};
use crate::sync::Mutex;

/// How long a loop waits for other writers before it goes on without being registered.
const REGISTER_LIMIT: Duration = Duration::from_secs(1);

pub(super) struct Registration {
    record: WorkerRecord,
    key: String,
    running: Mutex<Option<Arc<dyn Liveness>>>,
    claiming: Mutex<Option<Arc<dyn Liveness>>>,
    is_written: AtomicBool,
    /// Set by the transaction that found nothing left.
    is_removed: AtomicBool,
}

impl Registration {
    /// Returns `None` where a dead loop cannot be told from a live one: there, callers see only the worker lease.
    pub fn new(queues: &[Arc<Queue>], plan: &Plan) -> Result<Option<Self>> {
        let first = &queues[0];
        let store = &first.session()?.store;
        let (Some(running), Some(claiming)) = (store.new_liveness(), store.new_liveness()) else { return Ok(None) };
        let process = this_process();
        let mut names = Vec::new();
        for queue in queues {
            if !names.iter().any(|name| name == queue.name()) {
                names.push(queue.name().to_owned());
            }
        }
        let record = WorkerRecord {
            name: first.session()?.worker_name.to_string(),
            pid: process.pid,
            host: process.hostname.to_owned(),
            since: first.options().clock.now().ms(),
            kind: if plan.stays { Kind::Work } else { Kind::Drain },
            queues: names,
            running: running.number(),
            claiming: claiming.number(),
            looks_again: !plan.exclusive && plan.limit.is_none(),
            process: store.liveness().map(|liveness| liveness.number()),
        };
        Ok(Some(Self {
            key: record.key(),
            record,
            running: Mutex::new(Some(running)),
            claiming: Mutex::new(Some(claiming)),
            is_written: AtomicBool::new(false),
            is_removed: AtomicBool::new(false),
        }))
    }
}

impl WorkerLoop {
    /// Writes the record, unless that is done. If other writers or a full disk prevent it, the loop goes on without; its
    /// claims report the cause.
    pub(super) fn register(&self) -> Result<()> {
        let Some(registration) = &self.registration else { return Ok(()) };
        let is_known =
            registration.is_written.load(Ordering::Acquire) || registration.is_removed.load(Ordering::Acquire);
        if is_known || self.stopping.load(Ordering::SeqCst) {
            return Ok(());
        }
        let first = self.first();
        let wait = LockWait { limit: REGISTER_LIMIT.min(first.options().patience), ..first.wait() };
        let written = first.run_within(Verb::Lease, wait, |tx| {
            tx.lock(Scope::Workers)?;
            first.remove_dead_loops(tx)?;
            if registration.record.looks_again {
                // An announced worker has started, or is not needed any more.
                for queue in &self.queues {
                    tx.clear_setting(&queue.announcement_key())?;
                }
            }
            tx.set_setting(&registration.key, &registration.record.render())
        });
        match written {
            Ok(()) => registration.is_written.store(true, Ordering::Release),
            Err(Error::Busy(_) | Error::DiskFull(_) | Error::Storage(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Whether an enqueuer may rely on this loop to look again, so that it must leave in the transaction that finds
    /// nothing left.
    pub(super) fn is_relied_upon(&self) -> bool {
        let is_counted = |registration: &Registration| {
            registration.record.looks_again && registration.is_written.load(Ordering::Acquire)
        };
        self.plan.exclusive || self.registration.as_ref().is_some_and(is_counted)
    }

    /// The key of the record, which the transaction that finds nothing left removes.
    pub(super) fn registration_key(&self) -> Option<&str> {
        self.registration.as_ref().map(|registration| registration.key.as_str())
    }

    /// Called after that transaction.
    pub(super) fn mark_unregistered(&self) {
        if let Some(registration) = &self.registration {
            registration.is_removed.store(true, Ordering::Release);
        }
    }

    /// From now on, no enqueuer relies on this loop.
    pub(super) fn show_stopping(&self) {
        if let Some(registration) = &self.registration {
            registration.claiming.lock().take();
        }
    }

    /// Ends the registration. Its liveness is what counts; a record that cannot be removed now is removed by the next
    /// loop that begins.
    pub(super) fn unregister(&self) {
        let Some(registration) = &self.registration else { return };
        self.show_stopping();
        let was_running = registration.running.lock().take().is_some();
        let is_left =
            registration.is_written.load(Ordering::Acquire) && !registration.is_removed.load(Ordering::Acquire);
        if was_running && is_left {
            let first = self.first();
            let wait =
                LockWait { limit: TIDY_LIMIT.min(first.options().patience), interrupted: || false, ..first.wait() };
            let key = &registration.key;
            let _ = first.run_within(Verb::Lease, wait, |tx| tx.clear_setting(key));
        }
    }

    /// Ends the registration as the death of the process would.
    pub(super) fn drop_liveness(&self) {
        if let Some(registration) = &self.registration {
            self.show_stopping();
            registration.running.lock().take();
        }
    }
}
