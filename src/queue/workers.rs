//! Who works on the file: loops that run, processes that hold items, and holders of worker leases.

use std::time::Duration;

use super::run::{Change, Verb};
use super::{Queue, Session};
use crate::error::{Error, Result};
use crate::model::parse_ms;
use crate::rules::lease;
use crate::rules::worker::{Kind, WorkerRecord};
use crate::store::{Held, LockWait, Scope, View};

/// How many records are read at once.
const MOST_RECORDS: usize = 1_000;
/// How many items in progress of one queue are listed.
const MOST_HELD: usize = 1_000;
/// How long a reader waits for other writers to remove the records of dead loops.
pub(super) const TIDY_LIMIT: Duration = Duration::from_millis(100);

/// A loop, or a process that holds items or a worker lease without one.
#[derive(Clone, Debug, PartialEq)]
pub struct Worker {
    pub name: String,
    pub pid: Option<i64>,
    pub host: Option<String>,
    /// When the loop began or the first of the items was claimed, in milliseconds since 1970.
    pub since: Option<i64>,
    /// `None` without a loop.
    pub kind: Option<Kind>,
    pub queues: Vec<String>,
    /// The items in progress, in the order of their ids.
    pub items: Vec<i64>,
    pub is_alive: bool,
    /// Whether the loop was asked to stop.
    pub is_stopping: bool,
    /// The liveness number that the claims of its process name.
    process: Option<i64>,
}

/// The workers of a file, and whether there are records of dead loops.
struct Found {
    workers: Vec<Worker>,
    has_dead: bool,
}

impl Queue {
    /// Lists the workers of the whole file, the longest-running first. Removes the records of dead loops.
    pub fn workers(&self) -> Result<Vec<Worker>> {
        let found = self.view(|view| self.find_workers(view, None))?;
        if found.has_dead {
            let wait = LockWait { limit: TIDY_LIMIT.min(self.options.patience), ..self.wait() };
            match self.run_within(Verb::Lease, wait, |tx| self.remove_dead_loops(tx)) {
                // The next loop that begins tries again.
                Ok(()) | Err(Error::Busy(_) | Error::DiskFull(_) | Error::Storage(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found.workers)
    }

    /// Lists the workers that serve this queue or hold items of it.
    pub(super) fn workers_in(&self, view: &dyn View) -> Result<Vec<Worker>> {
        Ok(self.find_workers(view, Some(self.name()))?.workers)
    }

    /// Whether a caller that has enqueued may rely on a worker to look for new items: the worker lease is live, or a
    /// loop serves the queue that was not asked to stop.
    pub fn worker_is_alive(&self) -> Result<bool> {
        self.view(|view| self.is_worker_alive_in(view))
    }

    pub(super) fn is_worker_alive_in(&self, view: &dyn View) -> Result<bool> {
        let store = &self.session()?.store;
        Ok(self.lease_holder_in(view, &lease::key(self.name()))?.is_some()
            || records(view)?.iter().any(|(_, record)| {
                record.as_ref().is_some_and(|record| record.will_look_at(self.name(), |number| store.is_alive(number)))
            }))
    }

    /// Removes the records of loops that ended without doing so.
    pub(super) fn remove_dead_loops(&self, tx: &Change) -> Result<()> {
        tx.lock(Scope::Workers)?;
        let store = &self.session()?.store;
        for (key, record) in records(tx.view())? {
            if !record.is_some_and(|record| store.is_alive(record.running)) {
                tx.clear_setting(&key)?;
            }
        }
        Ok(())
    }

    fn find_workers(&self, view: &dyn View, only: Option<&str>) -> Result<Found> {
        let session = self.session()?;
        let records = records(view)?;
        let live = records.iter().filter_map(|(_, record)| {
            let record = record.as_ref().filter(|record| session.store.is_alive(record.running))?;
            Some(Worker::of_loop(record, !session.store.is_alive(record.claiming)))
        });
        let mut workers = live.collect::<Vec<_>>();
        let has_dead = workers.len() < records.len();
        let mut queues = match only {
            Some(queue) => vec![queue.to_owned()],
            None => view.queues()?.into_iter().map(|(name, _)| name).collect(),
        };
        if only.is_none() && !queues.iter().any(|name| name == self.name()) {
            queues.push(self.name().to_owned());
        }
        for queue in &queues {
            for held in view.held(queue, MOST_HELD)? {
                self.attribute(&session, &mut workers, queue, held);
            }
            if let Some(holder) = self.lease_holder_in(view, &lease::key(queue))? {
                attribute_lease(&mut workers, queue, &holder);
            }
        }
        workers.retain(|worker| only.is_none_or(|queue| worker.queues.iter().any(|served| served == queue)));
        workers.iter_mut().for_each(|worker| worker.items.sort_unstable());
        workers.sort_by(|one, other| (one.since, &one.name).cmp(&(other.since, &other.name)));
        Ok(Found { workers, has_dead })
    }

    /// Adds an item in progress to the loop that serves its queue in the process that claimed it. Without such a loop,
    /// the process is a worker of its own.
    fn attribute(&self, session: &Session, workers: &mut Vec<Worker>, queue: &str, held: Held) {
        let is_claimed_by = |worker: &Worker| {
            worker.process == held.holder
                && (worker.kind.is_none() || worker.queues.iter().any(|served| served == queue))
                && (held.holder.is_some() && worker.kind.is_some() || Some(&worker.name) == held.worker.as_ref())
        };
        let place = workers.iter().position(is_claimed_by).unwrap_or_else(|| {
            workers.push(Worker {
                name: held.worker.clone().unwrap_or_else(|| "unknown".into()),
                pid: None,
                host: None,
                since: None,
                kind: None,
                queues: Vec::new(),
                items: Vec::new(),
                is_alive: held.holder.is_none_or(|holder| session.store.is_alive(holder)),
                is_stopping: false,
                process: held.holder,
            });
            workers.len() - 1
        });
        let worker = &mut workers[place];
        worker.items.push(held.id);
        if worker.kind.is_none() {
            let claimed = held.started_at.as_deref().and_then(parse_ms);
            worker.since = worker.since.into_iter().chain(claimed).min();
            worker.add_queue(queue);
        }
    }
}

impl Worker {
    fn of_loop(record: &WorkerRecord, is_stopping: bool) -> Self {
        Self {
            name: record.name.clone(),
            pid: Some(record.pid.into()),
            host: Some(record.host.clone()),
            since: Some(record.since),
            kind: Some(record.kind),
            queues: record.queues.clone(),
            items: Vec::new(),
            is_alive: true,
            is_stopping,
            process: record.process,
        }
    }

    fn add_queue(&mut self, queue: &str) {
        if !self.queues.iter().any(|known| known == queue) {
            self.queues.push(queue.to_owned());
        }
    }
}

/// The records of loops by their keys; `None` for one that cannot be read.
fn records(view: &dyn View) -> Result<Vec<(String, Option<WorkerRecord>)>> {
    let stored = view.worker_records(MOST_RECORDS)?;
    Ok(stored.into_iter().map(|(key, value)| (key, WorkerRecord::parse(&value))).collect())
}

/// Adds the holder of a worker lease, unless a loop of its process serves the queue.
fn attribute_lease(workers: &mut Vec<Worker>, queue: &str, holder: &lease::LeaseRecord) {
    let (pid, host) = (holder.pid.as_i64(), holder.hostname.as_str().map(str::to_owned));
    let is_same = |worker: &Worker| worker.pid == pid && worker.host == host;
    if workers.iter().any(|worker| is_same(worker) && worker.queues.iter().any(|served| served == queue)) {
        return;
    }
    let name = match (&host, pid) {
        (Some(host), Some(pid)) => format!("{host}:{pid}"),
        _ => "unknown".into(),
    };
    // A process that claims without a loop has the same name by default.
    let place = workers.iter().position(|worker| worker.kind.is_none() && worker.name == name);
    let place = place.unwrap_or_else(|| {
        workers.push(Worker {
            name,
            pid: None,
            host: None,
            since: None,
            kind: None,
            queues: Vec::new(),
            items: Vec::new(),
            is_alive: true,
            is_stopping: false,
            process: None,
        });
        workers.len() - 1
    });
    let worker = &mut workers[place];
    (worker.pid, worker.host, worker.is_alive) = (pid, host, true);
    worker.add_queue(queue);
}
