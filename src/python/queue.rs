//! `Queue`: every verb once: arguments → detach → verb → result.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyString};

use super::CLOCK;
use super::attempt::Attempt;
use super::convert::{count, datetime, duration_ms, integer, json, lease_ms, positive, seconds, text};
use super::drain::Drain;
use super::ending;
use super::item::{Details, Item, Unique, group as group_name, new_item};
use super::lock::Lock;
use super::retry::Retry;
use crate::error::Error;
use crate::item::{Counts, NewItem, OnDuplicate, Status};
use crate::outcome::Settled;
use crate::queue::{self, Claim, Durability, Filter, From, Held, Options};
use crate::sqlite::Statement;
use crate::sync::Mutex;

type Arg<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

#[pyclass(frozen, subclass, module = "membox_queue._native")]
pub struct Queue {
    core: Arc<queue::Queue>,
}

#[pymethods]
impl Queue {
    #[new]
    #[pyo3(signature = (path, name = "ingest", *, lease = None, max_retries = None, retry = None, durability = "full",
                        max_bytes = None, busy_timeout = None, worker = None, group_limit = None, max_pending = None),
           text_signature = "(path, name='ingest', *, lease=60.0, max_retries=3, retry=None, durability='full', max_bytes=67108864, busy_timeout=30.0, worker=None, group_limit=None, max_pending=None)")]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        name: &str,
        lease: Arg,
        max_retries: Arg,
        retry: Option<Retry>,
        durability: &str,
        max_bytes: Arg,
        busy_timeout: Arg,
        worker: Arg,
        group_limit: Arg,
        max_pending: Arg,
    ) -> PyResult<Self> {
        let standard = Options::default();
        let durability = match durability {
            "full" => Durability::Full,
            "normal" => Durability::Normal,
            other => {
                return Err(PyValueError::new_err(format!("durability must be 'full' or 'normal', not {other:?}")));
            }
        };
        let options = Options {
            name: name.to_owned(),
            lease_ms: lease.map_or(Ok(standard.lease_ms), |lease| lease_ms("lease", lease))?,
            max_retries: max_retries.map_or(Ok(standard.max_retries), |max| count("max_retries", max))?,
            retry: retry.map(|retry| retry.policy),
            durability,
            max_bytes: max_bytes
                .map_or(Ok(standard.max_bytes), |max| positive("max_bytes", max).map(|max| max as usize))?,
            patience: busy_timeout.map_or(Ok(standard.patience), |limit| patience("busy_timeout", limit))?,
            interrupted: super::signals::interrupted,
            worker: text("worker", worker)?,
            group_limit: group_limit.map(|limit| positive("group_limit", limit)).transpose()?,
            max_pending: max_pending.map(|max| positive("max_pending", max).map(i64::from)).transpose()?,
            clock: CLOCK.clone(),
        };
        Ok(Self { core: py.detach(|| queue::Queue::open(&path, options))? })
    }

    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.core.path()
    }

    #[getter]
    fn name(&self) -> &str {
        self.core.name()
    }

    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = self.core.options();
        let patience = options.patience;
        let dict = PyDict::new(py);
        dict.set_item("lease", options.lease_ms as f64 / 1000.0)?;
        dict.set_item("max_retries", options.max_retries)?;
        dict.set_item("retry", options.retry.clone().map(|policy| Retry { policy }))?;
        dict.set_item("durability", if options.durability == Durability::Full { "full" } else { "normal" })?;
        dict.set_item("max_bytes", options.max_bytes)?;
        dict.set_item("busy_timeout", if patience == Duration::MAX { f64::INFINITY } else { patience.as_secs_f64() })?;
        dict.set_item("worker", options.worker.as_deref())?;
        dict.set_item("group_limit", options.group_limit)?;
        dict.set_item("max_pending", options.max_pending)?;
        Ok(dict)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.core.is_closed()
    }

    #[pyo3(signature = (content, *, project = None, source_path = None, doc_date = None, priority = None, delay = None,
                        run_at = None, max_retries = None, headers = None, group = None, key = None, key_ttl = None,
                        on_duplicate = None,
                        connection = None, wait = None),
           text_signature = "($self, content, *, project=None, source_path=None, doc_date=None, priority=0, delay=None, run_at=None, max_retries=None, headers=None, group=None, key=None, key_ttl=None, on_duplicate='return', connection=None, wait=0.0)")]
    #[allow(clippy::too_many_arguments)]
    fn enqueue(
        &self,
        py: Python<'_>,
        content: &Bound<'_, PyAny>,
        project: Arg,
        source_path: Arg,
        doc_date: Arg,
        priority: Arg,
        delay: Arg,
        run_at: Arg,
        max_retries: Arg,
        headers: Arg,
        group: Arg,
        key: Arg,
        key_ttl: Arg,
        on_duplicate: Arg,
        connection: Arg,
        wait: Arg,
    ) -> PyResult<i64> {
        let unique = Unique { key, key_ttl, on_duplicate };
        let details =
            Details { project, source_path, doc_date, priority, delay, run_at, max_retries, headers, group, unique };
        let item = details.read(content, self.core.options().max_bytes)?;
        match connection {
            None => Ok(self.put(py, vec![item], wait)?[0]),
            Some(connection) => self.enqueue_on(py, connection, item),
        }
    }

    #[pyo3(signature = (items, *, wait = None), text_signature = "($self, items, *, wait=0.0)")]
    fn enqueue_many(&self, py: Python<'_>, items: &Bound<'_, PyAny>, wait: Arg) -> PyResult<Vec<i64>> {
        // These are iterable too, and would become one item a letter, byte or key.
        if items.is_instance_of::<PyString>()
            || items.is_instance_of::<PyBytes>()
            || items.is_instance_of::<PyByteArray>()
            || items.is_instance_of::<PyDict>()
        {
            return Err(PyTypeError::new_err("enqueue_many takes an iterable of contents; for one use enqueue"));
        }
        let limit = self.core.options().max_bytes;
        let items = items.try_iter()?.map(|item| new_item(&item?, limit)).collect::<PyResult<Vec<_>>>()?;
        self.put(py, items, wait)
    }

    #[pyo3(signature = (*, wait = None, lease = None, group = None),
           text_signature = "($self, *, wait=0.0, lease=None, group=None)")]
    fn claim(&self, py: Python<'_>, wait: Arg, lease: Arg, group: Arg) -> PyResult<Option<Item>> {
        let from = group_name(group)?.map_or(From::Queue, From::Group);
        Ok(self.take(py, 1, from, wait, lease)?.pop())
    }

    #[pyo3(signature = (limit, *, wait = None, lease = None, group = None),
           text_signature = "($self, limit, *, wait=0.0, lease=None, group=None)")]
    fn claim_many(
        &self,
        py: Python<'_>,
        limit: &Bound<'_, PyAny>,
        wait: Arg,
        lease: Arg,
        group: Arg,
    ) -> PyResult<Vec<Item>> {
        let from = group_name(group)?.map_or(From::Queue, From::Group);
        self.take(py, positive("limit", limit)? as usize, from, wait, lease)
    }

    #[pyo3(signature = (*, wait = None, lease = None), text_signature = "($self, *, wait=0.0, lease=None)")]
    fn claim_group(&self, py: Python<'_>, wait: Arg, lease: Arg) -> PyResult<Vec<Item>> {
        self.take(py, usize::MAX, From::WholeGroup, wait, lease)
    }

    #[pyo3(signature = (item, result = None))]
    fn mark_done(&self, py: Python<'_>, item: &Item, result: Arg) -> PyResult<bool> {
        let held = item.held()?;
        let limit = self.core.options().max_bytes;
        let result = result.map(|result| json("the result", result, limit)).transpose()?;
        Ok(py.detach(|| self.core.mark_done(held, result))?)
    }

    #[pyo3(signature = (items))]
    fn mark_done_many(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<usize> {
        let items = items
            .try_iter()?
            .map(|item| item?.cast_into::<Item>().map_err(PyErr::from))
            .collect::<PyResult<Vec<_>>>()?;
        let held = items.iter().map(|item| Ok(&**item.get().held()?)).collect::<PyResult<Vec<&Held>>>()?;
        Ok(py.detach(|| self.core.mark_done_many(&held))?)
    }

    #[pyo3(signature = (item, error, retry_in = None, give_up = false))]
    fn mark_failed(
        &self,
        py: Python<'_>,
        item: &Item,
        error: &Bound<'_, PyAny>,
        retry_in: Arg,
        give_up: bool,
    ) -> PyResult<bool> {
        let held = item.held()?;
        let retry_in = retry_in.map(|delay| duration_ms("retry_in", delay)).transpose()?;
        let ending = ending::of_failure(py, error, retry_in, give_up)?;
        Ok(py.detach(|| self.core.finish(held, ending))? != Settled::Lost)
    }

    #[pyo3(signature = (item, delay = None), text_signature = "($self, item, delay=0.0)")]
    fn release(&self, py: Python<'_>, item: &Item, delay: Arg) -> PyResult<bool> {
        let held = item.held()?;
        let delay = delay.map_or(Ok(0), |delay| duration_ms("delay", delay))?;
        Ok(py.detach(|| self.core.release(held, delay))?)
    }

    #[pyo3(signature = (item, seconds))]
    fn extend(&self, py: Python<'_>, item: &Item, seconds: &Bound<'_, PyAny>) -> PyResult<bool> {
        let held = item.held()?;
        let lease_ms = lease_ms("the lease", seconds)?;
        Ok(py.detach(|| self.core.extend(held, lease_ms))?)
    }

    #[pyo3(signature = (max_retries = None, *, delay = None),
           text_signature = "($self, max_retries=None, *, delay=0.0)")]
    fn retry_failed(&self, py: Python<'_>, max_retries: Arg, delay: Arg) -> PyResult<usize> {
        let max_retries = max_retries.map(|max| count("max_retries", max)).transpose()?;
        let delay = delay.map_or(Ok(0), |delay| duration_ms("delay", delay))?;
        Ok(py.detach(|| self.core.retry_failed(max_retries, delay))?)
    }

    #[pyo3(signature = (id))]
    fn replay(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
        let id = integer("id", id)?;
        Ok(py.detach(|| self.core.replay(id))?)
    }

    #[pyo3(signature = (id))]
    fn run_now(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = integer("id", id)?;
        Ok(py.detach(|| self.core.run_now(id))?)
    }

    #[pyo3(signature = (id))]
    fn cancel(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = integer("id", id)?;
        Ok(py.detach(|| self.core.cancel(id))?)
    }

    #[pyo3(signature = (status = "failed"))]
    fn purge(&self, py: Python<'_>, status: &str) -> PyResult<usize> {
        let status = parse_status(status)?;
        Ok(py.detach(|| self.core.purge(status))?)
    }

    #[pyo3(signature = (older_than, *, status = "done"))]
    fn prune(&self, py: Python<'_>, older_than: &Bound<'_, PyAny>, status: &str) -> PyResult<usize> {
        let (status, age_ms) = (parse_status(status)?, duration_ms("older_than", older_than)?);
        Ok(py.detach(|| self.core.prune(status, age_ms))?)
    }

    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.core.compact())?)
    }

    #[pyo3(signature = (name, *, ttl = None, wait = None), text_signature = "($self, name, *, ttl=30.0, wait=0.0)")]
    fn lock(&self, name: &str, ttl: Arg, wait: Arg) -> PyResult<Lock> {
        Ok(Lock {
            queue: self.core.clone(),
            name: name.to_owned(),
            ttl_ms: ttl.map_or(Ok(30_000), |ttl| lease_ms("ttl", ttl))?,
            wait: wait.map_or(Ok(Duration::ZERO), |wait| patience("wait", wait))?,
            held: Mutex::default(),
        })
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.core.stats())?;
        let dict = PyDict::new(py);
        dict.set_item("counts", counts_dict(py, stats.counts)?)?;
        dict.set_item("oldest_pending_age", stats.oldest_pending_ms.map(|ms| ms as f64 / 1000.0))?;
        dict.set_item("next_due_at", datetime(py, stats.next_due)?)?;
        dict.set_item("groups", stats.groups)?;
        dict.set_item("paused", stats.paused)?;
        dict.set_item("worker_is_alive", stats.worker_is_alive)?;
        Ok(dict)
    }

    fn pause(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.detach(|| self.core.pause())?)
    }

    fn resume(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.detach(|| self.core.resume())?)
    }

    #[getter]
    fn paused(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.detach(|| self.core.is_paused())?)
    }

    #[pyo3(signature = (id))]
    fn history(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Vec<Attempt>> {
        let id = integer("id", id)?;
        Ok(py.detach(|| self.core.history(id))?.into_iter().map(Attempt).collect())
    }

    fn group_counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for counts in py.detach(|| self.core.group_counts())? {
            let of_group = PyDict::new(py);
            of_group.set_item("pending", counts.pending)?;
            of_group.set_item("processing", counts.processing)?;
            dict.set_item(counts.group, of_group)?;
        }
        Ok(dict)
    }

    #[pyo3(signature = (id))]
    fn retry(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = integer("id", id)?;
        Ok(py.detach(|| self.core.retry(id))?)
    }

    #[pyo3(signature = (id))]
    fn delete(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = integer("id", id)?;
        Ok(py.detach(|| self.core.delete(id))?)
    }

    #[pyo3(signature = (id = None, *, key = None))]
    fn get(&self, py: Python<'_>, id: Arg, key: Arg) -> PyResult<Option<Item>> {
        let found = match (id, text("key", key)?) {
            (Some(id), None) => {
                let id = integer("id", id)?;
                py.detach(|| self.core.get(id))?
            }
            (None, Some(key)) => py.detach(|| self.core.get_by_key(&key))?,
            _ => return Err(PyTypeError::new_err("get takes an id or a key")),
        };
        Ok(found.map(Item::read))
    }

    #[pyo3(signature = (status = None, *, project = None, limit = None, after = None, newest_first = false),
           text_signature = "($self, status=None, *, project=None, limit=50, after=None, newest_first=False)")]
    fn items(
        &self,
        py: Python<'_>,
        status: Option<&str>,
        project: Arg,
        limit: Arg,
        after: Arg,
        newest_first: bool,
    ) -> PyResult<Vec<Item>> {
        let status = status.map(parse_status).transpose()?;
        let filter = Filter {
            status,
            project: text("project", project)?,
            after: after.map(|after| integer("after", after)).transpose()?,
            limit: limit.map_or(Ok(50), |limit| positive("limit", limit))? as usize,
            newest_first,
        };
        Ok(py.detach(|| self.core.items(&filter))?.into_iter().map(Item::read).collect())
    }

    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = py.detach(|| self.core.counts())?;
        counts_dict(py, counts)
    }

    fn pending(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(py.detach(|| self.core.pending())?)
    }

    #[pyo3(signature = (limit = None), text_signature = "($self, limit=5)")]
    fn failures(&self, py: Python<'_>, limit: Arg) -> PyResult<Vec<Item>> {
        let limit = limit.map_or(Ok(5), |limit| positive("limit", limit))? as usize;
        Ok(py.detach(|| self.core.failures(limit))?.into_iter().map(Item::read).collect())
    }

    #[pyo3(signature = (ttl = None), text_signature = "($self, ttl=60.0)")]
    fn acquire_worker_lease(&self, py: Python<'_>, ttl: Arg) -> PyResult<bool> {
        let ttl_ms = ttl_ms(ttl)?;
        Ok(py.detach(|| self.core.acquire_worker_lease(ttl_ms))?)
    }

    fn refresh_worker_lease(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.detach(|| self.core.refresh_worker_lease())?)
    }

    fn release_worker_lease(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.detach(|| self.core.release_worker_lease())?)
    }

    fn worker_is_alive(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.detach(|| self.core.worker_is_alive())?)
    }

    #[pyo3(signature = (ttl = None), text_signature = "($self, ttl=60.0)")]
    fn _begin_drain(&self, py: Python<'_>, ttl: Arg) -> PyResult<Option<Drain>> {
        Drain::begin(py, &self.core, ttl_ms(ttl)?)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.core.close())?)
    }
}

impl Queue {
    /// Enqueues, waiting for room if the queue is full and the caller has time.
    fn put(&self, py: Python<'_>, items: Vec<NewItem>, wait: Arg) -> PyResult<Vec<i64>> {
        let wait = wait.map_or(Ok(Duration::ZERO), |wait| patience("wait", wait))?;
        if wait.is_zero() {
            return Ok(py.detach(|| self.core.enqueue_many(items))?);
        }
        let started = Instant::now();
        loop {
            match py.detach(|| self.core.enqueue_many(items.clone())) {
                Err(Error::Full { .. }) if started.elapsed() < wait => {}
                outcome => return Ok(outcome?),
            }
            let left = wait.saturating_sub(started.elapsed());
            py.detach(|| self.core.nap(left))?;
            py.check_signals()?;
        }
    }

    /// Their library runs the statements, in their transaction.
    fn enqueue_on(&self, py: Python<'_>, connection: &Bound<'_, PyAny>, item: NewItem) -> PyResult<i64> {
        let statements = self.core.enqueue_statements(item)?;
        let given = |statement: &Statement| -> PyResult<(&'static str, Vec<Py<PyAny>>)> {
            let values = statement.values.iter().map(|value| sql_value(py, value));
            Ok((statement.sql, values.collect::<PyResult<_>>()?))
        };
        let on_duplicate = match statements.on_duplicate {
            OnDuplicate::Return => "return",
            OnDuplicate::Raise => "raise",
            OnDuplicate::Replace => "replace",
        };
        let arguments = (
            connection,
            self.core.path(),
            statements.find.as_ref().map(given).transpose()?,
            given(&statements.replace)?,
            given(&statements.insert)?,
            on_duplicate,
            statements.key,
        );
        py.import("membox_queue.own_transaction")?.getattr("enqueue")?.call1(arguments)?.extract()
    }

    fn take(&self, py: Python<'_>, limit: usize, from: From, wait: Arg, lease: Arg) -> PyResult<Vec<Item>> {
        let how = Claim { limit, from, lease_ms: lease.map(|lease| lease_ms("lease", lease)).transpose()? };
        let wait = wait.map(|wait| patience("wait", wait)).transpose()?;
        let held = match wait {
            None | Some(Duration::ZERO) => py.detach(|| self.core.claim(&how))?,
            Some(wait) => self.wait_and_take(py, &how, wait)?,
        };
        Ok(held.into_iter().map(|held| Item::claimed(Arc::new(held), self.core.clone())).collect())
    }

    /// Short sleeps without the GIL, and a look at Python's signals between them.
    fn wait_and_take(&self, py: Python<'_>, how: &Claim, wait: Duration) -> PyResult<Vec<Held>> {
        let started = Instant::now();
        loop {
            let left = wait.saturating_sub(started.elapsed());
            let held = py.detach(|| self.core.claim_or_nap(how, left))?;
            if !held.is_empty() || left.is_zero() {
                return Ok(held);
            }
            py.check_signals()?;
        }
    }
}

/// A time to wait; `inf` means without end.
fn patience(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let limit = seconds(what, value)?;
    if limit == f64::INFINITY {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(limit)
        .map_err(|_| PyValueError::new_err(format!("{what} must be a number of seconds, zero or more, not {limit}")))
}

fn ttl_ms(ttl: Arg) -> PyResult<i64> {
    ttl.map_or(Ok(crate::lease::DEFAULT_TTL_MS), |ttl| lease_ms("ttl", ttl))
}

fn parse_status(status: &str) -> PyResult<Status> {
    Status::parse(status).ok_or_else(|| {
        let known = Status::ALL.map(Status::as_str).join(", ");
        PyValueError::new_err(format!("status must be one of {known}, not {status:?}"))
    })
}

fn counts_dict(py: Python<'_>, counts: Counts) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (status, count) in [
        (Status::Pending, counts.pending),
        (Status::Processing, counts.processing),
        (Status::Done, counts.done),
        (Status::Failed, counts.failed),
        (Status::Blocked, counts.blocked),
        (Status::Cancelled, counts.cancelled),
    ] {
        dict.set_item(status.as_str(), count)?;
    }
    Ok(dict)
}

/// A value as Python's database modules take it.
fn sql_value(py: Python<'_>, value: &rusqlite::types::Value) -> PyResult<Py<PyAny>> {
    use rusqlite::types::Value;
    Ok(match value {
        Value::Null => py.None(),
        Value::Integer(number) => number.into_pyobject(py)?.into_any().unbind(),
        Value::Real(number) => number.into_pyobject(py)?.into_any().unbind(),
        Value::Text(text) => PyString::new(py, text).into_any().unbind(),
        Value::Blob(bytes) => PyBytes::new(py, bytes).into_any().unbind(),
    })
}
