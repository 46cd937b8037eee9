//! `Queue`: every verb once: arguments → detach → verb → result.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyException, PyTimeoutError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyGenericAlias, PyList, PyString, PyType};

use super::CLOCK;
use super::attempt::Attempt;
use super::convert::{count, datetime, duration_ms, integer, json, lease_ms, positive, seconds, text};
use super::crew::Crew;
use super::ending;
use super::error::exception_class;
use super::item::{Details, Item, Unique, claimed, group as group_name, new_item, when};
use super::leaving::{self, Native};
use super::lock::Lock;
use super::schedule::Schedule;
use super::settings;
use super::watcher::{ClaimPlan, Watcher, as_seconds};
use crate::clock::parse_ms;
use crate::ending::Meaning;
use crate::error::Error;
use crate::item::{Counts, NewItem, OnDuplicate, Status};
use crate::lease::Record;
use crate::queue::{self, Claim, Durability, Filter, From, Held, Options, Plan};
use crate::schedule::Timing;
use crate::settings::Settings;
use crate::sqlite::Kept;
use crate::sync::Mutex;

type Arg<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

#[pyclass(frozen, subclass, module = "membox_queue._native")]
pub struct Queue {
    pub core: Arc<queue::Queue>,
    /// What turns content of the queue's type into what is stored, and back; most queues have none.
    shape: PyOnceLock<Py<PyAny>>,
}

#[pymethods]
impl Queue {
    #[new]
    #[pyo3(signature = (path, name = "ingest", *, lease = None, max_retries = None, retry = None, durability = "full",
                        max_bytes = None, busy_timeout = None, worker = None, group_limit = None, max_pending = None,
                        rate = None, group_rate = None, keep_for = None, keep_last = None, keep_failed_for = None,
                        keep_content = None),
           text_signature = "(path, name='ingest', *, lease=None, max_retries=None, retry=None, durability='full', max_bytes=None, busy_timeout=30.0, worker=None, group_limit=None, max_pending=None, rate=None, group_rate=None, keep_for=None, keep_last=None, keep_failed_for=None, keep_content=None)")]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        name: &str,
        lease: Arg,
        max_retries: Arg,
        retry: Arg,
        durability: &str,
        max_bytes: Arg,
        busy_timeout: Arg,
        worker: Arg,
        group_limit: Arg,
        max_pending: Arg,
        rate: Arg,
        group_rate: Arg,
        keep_for: Arg,
        keep_last: Arg,
        keep_failed_for: Arg,
        keep_content: Arg,
    ) -> PyResult<Self> {
        let standard = Options::default();
        let durability = match durability {
            "full" => Durability::Full,
            "normal" => Durability::Normal,
            other => {
                return Err(PyValueError::new_err(format!("durability must be 'full' or 'normal', not {other:?}")));
            }
        };
        let given = [
            ("lease", lease),
            ("max_retries", max_retries),
            ("retry", retry),
            ("max_bytes", max_bytes),
            ("group_limit", group_limit),
            ("max_pending", max_pending),
            ("rate", rate),
            ("group_rate", group_rate),
            ("keep_for", keep_for),
            ("keep_last", keep_last),
            ("keep_failed_for", keep_failed_for),
            ("keep_content", keep_content),
        ];
        let mut settings = Settings::default();
        for (name, value) in given {
            if let Some(value) = value {
                settings::read(&mut settings, name, value)?;
            }
        }
        let options = Options {
            name: name.to_owned(),
            settings,
            durability,
            patience: busy_timeout.map_or(Ok(standard.patience), |limit| patience("busy_timeout", limit))?,
            interrupted: super::signals::interrupted,
            warn: super::warnings::warn,
            worker: worker_name(worker)?,
            clock: CLOCK.clone(),
        };
        Ok(Self { core: py.native(|| queue::Queue::open(&path, options))?, shape: PyOnceLock::new() })
    }

    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, kind: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyGenericAlias::new(cls.py(), cls.as_any(), kind)?.into_any())
    }

    #[pyo3(signature = (shape, /))]
    fn _take_shape(&self, py: Python<'_>, shape: Py<PyAny>) -> PyResult<()> {
        self.shape.set(py, shape).map_err(|_| PyValueError::new_err("the queue has a type already"))
    }

    #[getter]
    fn _shape(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.shape.get(py).map(|shape| shape.clone_ref(py))
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
        let settings = py.native(|| self.core.latest_settings());
        let settings = Settings {
            lease_ms: Some(settings.lease_ms()),
            max_retries: Some(settings.max_retries()),
            max_bytes: Some(settings.max_bytes()),
            keep_content: Some(settings.keeps_content()),
            group_limit: Some(settings.group_limit()),
            ..settings
        };
        self.describe(py, &settings)
    }

    #[getter]
    fn _given<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.describe(py, &self.core.given())
    }

    #[pyo3(signature = (**settings))]
    fn configure(&self, py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let mut set = Settings::default();
        let mut forgotten = Vec::new();
        for (name, value) in settings.into_iter().flatten() {
            let name: String = name.extract()?;
            if value.is_none() && Settings::default().forget(&name) {
                forgotten.push(name);
            } else if value.is_none() || !settings::read(&mut set, &name, &value)? {
                let known = crate::settings::NAMES.join(", ");
                return Err(PyTypeError::new_err(format!("configure has no setting {name:?}; there are {known}")));
            }
        }
        Ok(py.native(|| self.core.configure(&set, &forgotten))?)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.core.is_closed()
    }

    #[pyo3(signature = (content, *, project = None, source_path = None, doc_date = None, priority = None, delay = None,
                        run_at = None, max_retries = None, headers = None, group = None, key = None, key_ttl = None,
                        on_duplicate = None,
                        connection = None, wait = None, spawn = None),
           text_signature = "($self, content, *, project=None, source_path=None, doc_date=None, priority=0, delay=None, run_at=None, max_retries=None, headers=None, group=None, key=None, key_ttl=None, on_duplicate='return', connection=None, wait=0.0, spawn=None)")]
    #[allow(clippy::too_many_arguments)]
    fn enqueue(
        slf: &Bound<'_, Self>,
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
        spawn: Arg,
    ) -> PyResult<i64> {
        let (py, queue) = (slf.py(), slf.get());
        let unique = Unique { key, key_ttl, on_duplicate };
        let details =
            Details { project, source_path, doc_date, priority, delay, run_at, max_retries, headers, group, unique };
        let item = queue.read(&details, content)?;
        check_spawn(slf, spawn)?;
        if connection.is_some() && spawn.is_some() {
            let said = "a worker cannot see your open transaction; call spawn_worker after your commit";
            return Err(PyValueError::new_err(said));
        }
        if connection.is_some() && wait.is_some_and(|wait| wait.ne(0.0).unwrap_or(true)) {
            let said =
                "wait cannot be given with connection: room is made by others, whom your open transaction holds up";
            return Err(PyValueError::new_err(said));
        }
        let id = match connection {
            None => queue.put(py, vec![item], wait)?[0],
            Some(connection) => queue.enqueue_on(py, connection, item)?,
        };
        spawn_worker(slf, spawn)?;
        Ok(id)
    }

    #[pyo3(signature = (items, *, wait = None, spawn = None), text_signature = "($self, items, *, wait=0.0, spawn=None)")]
    fn enqueue_many(slf: &Bound<'_, Self>, items: &Bound<'_, PyAny>, wait: Arg, spawn: Arg) -> PyResult<Vec<i64>> {
        // These are iterable too, and would become one item a letter, byte or key.
        if items.is_instance_of::<PyString>()
            || items.is_instance_of::<PyBytes>()
            || items.is_instance_of::<PyByteArray>()
            || items.is_instance_of::<PyDict>()
        {
            return Err(PyTypeError::new_err("enqueue_many takes an iterable of contents; for one use enqueue"));
        }
        let (py, queue) = (slf.py(), slf.get());
        let plain = |content: &Bound<'_, PyAny>| queue.plain(content);
        let items = items.try_iter()?.enumerate().map(|(place, item)| {
            let item = item?;
            let read = |limit| new_item(&item, limit, plain);
            within_limit(py, &[&queue.core], read).map_err(|error| at_place(py, error, place))
        });
        let items = items.collect::<PyResult<Vec<_>>>()?;
        check_spawn(slf, spawn)?;
        let ids = queue.put(py, items, wait)?;
        spawn_worker(slf, spawn)?;
        Ok(ids)
    }

    #[pyo3(signature = (*, wait = None, lease = None, group = None, worker = None),
           text_signature = "($self, *, wait=0.0, lease=None, group=None, worker=None)")]
    fn claim(&self, py: Python<'_>, wait: Arg, lease: Arg, group: Arg, worker: Arg) -> PyResult<Option<Item>> {
        let from = group_name(group)?.map_or(From::Queue, From::Group);
        Ok(self.take(py, how(1, from, lease, worker)?, wait)?.pop())
    }

    #[pyo3(signature = (limit, kind, wait, lease, group, worker, /))]
    #[allow(clippy::too_many_arguments)]
    fn _plan_claim(
        &self,
        limit: &Bound<'_, PyAny>,
        kind: &str,
        wait: Arg,
        lease: Arg,
        group: Arg,
        worker: Arg,
    ) -> PyResult<ClaimPlan> {
        let (limit, from) = match (kind, group_name(group)?) {
            ("group", group) => (most(Some(limit).filter(|limit| !limit.is_none()))?, From::WholeGroup(group)),
            (_, Some(group)) => (positive("limit", limit)? as usize, From::Group(group)),
            _ => (positive("limit", limit)? as usize, From::Queue),
        };
        let wait = wait.map(|wait| patience("wait", wait)).transpose()?.unwrap_or_default();
        Ok(ClaimPlan { how: how(limit, from, lease, worker)?, wait })
    }

    #[pyo3(signature = (plan, left, /))]
    fn _claim(&self, py: Python<'_>, plan: &ClaimPlan, left: f64) -> PyResult<Vec<Item>> {
        leaving::check(py)?;
        let left = Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX);
        self.take_fitting(py, &plan.how, || match plan.wait {
            Duration::ZERO => Ok(py.native(|| self.core.claim(&plan.how))?),
            _ => Ok(py.native(|| self.core.claim_if_promising(&plan.how, left))?),
        })
    }

    #[pyo3(signature = (id, /))]
    fn _ended(&self, py: Python<'_>, id: i64) -> PyResult<Option<Item>> {
        leaving::check(py)?;
        py.native(|| self.core.ended_by_now(id))?.map(|item| self.shown(py, item)).transpose()
    }

    fn _watcher(&self, py: Python<'_>) -> PyResult<Watcher> {
        Ok(Watcher(Arc::new(py.native(|| self.core.watcher())?)))
    }

    #[getter]
    fn _database(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.native(|| self.core.database_number())?)
    }

    #[staticmethod]
    #[pyo3(signature = (what, value, /))]
    fn _seconds(what: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(as_seconds(patience(what, value)?))
    }

    #[staticmethod]
    #[pyo3(signature = (id, /))]
    fn _id(id: &Bound<'_, PyAny>) -> PyResult<i64> {
        integer("id", id)
    }

    #[pyo3(signature = (limit, *, wait = None, lease = None, group = None, worker = None),
           text_signature = "($self, limit, *, wait=0.0, lease=None, group=None, worker=None)")]
    fn claim_many(
        &self,
        py: Python<'_>,
        limit: &Bound<'_, PyAny>,
        wait: Arg,
        lease: Arg,
        group: Arg,
        worker: Arg,
    ) -> PyResult<Vec<Item>> {
        let from = group_name(group)?.map_or(From::Queue, From::Group);
        self.take(py, how(positive("limit", limit)? as usize, from, lease, worker)?, wait)
    }

    #[pyo3(signature = (group = None, *, limit = None, wait = None, lease = None, worker = None),
           text_signature = "($self, group=None, *, limit=None, wait=0.0, lease=None, worker=None)")]
    fn claim_group(
        &self,
        py: Python<'_>,
        group: Arg,
        limit: Arg,
        wait: Arg,
        lease: Arg,
        worker: Arg,
    ) -> PyResult<Vec<Item>> {
        self.take(py, how(most(limit)?, From::WholeGroup(group_name(group)?), lease, worker)?, wait)
    }

    #[pyo3(signature = (item, result = None))]
    fn mark_done(&self, py: Python<'_>, item: &Bound<'_, PyAny>, result: Arg) -> PyResult<bool> {
        let held = claimed(item)?;
        let read = |limit| result.map(|result| json("the result", result, limit)).transpose();
        let result = within_limit(py, &[&self.core], read)?;
        Ok(py.native(|| self.core.mark_done(held, result))?)
    }

    #[pyo3(signature = (items))]
    fn mark_done_many(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<usize> {
        let items = items.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let held = items.iter().map(|item| Ok(&**claimed(item)?)).collect::<PyResult<Vec<&Held>>>()?;
        Ok(py.native(|| self.core.mark_done_many(&held))?)
    }

    #[pyo3(signature = (item, error, retry_in = None, give_up = false))]
    fn mark_failed(
        &self,
        py: Python<'_>,
        item: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        retry_in: Arg,
        give_up: bool,
    ) -> PyResult<bool> {
        let held = claimed(item)?;
        let retry_in = retry_in.map(|delay| duration_ms("retry_in", delay)).transpose()?;
        let ending = ending::of_failure(error, retry_in, give_up)?;
        Ok(py.native(|| self.core.finish(held, ending))?.took_effect())
    }

    #[pyo3(signature = (item, delay = None), text_signature = "($self, item, delay=0.0)")]
    fn release(&self, py: Python<'_>, item: &Bound<'_, PyAny>, delay: Arg) -> PyResult<bool> {
        let held = claimed(item)?;
        let delay = delay.map_or(Ok(0), |delay| duration_ms("delay", delay))?;
        Ok(py.native(|| self.core.release(held, delay))?)
    }

    #[pyo3(signature = (item, seconds))]
    fn extend(&self, py: Python<'_>, item: &Bound<'_, PyAny>, seconds: &Bound<'_, PyAny>) -> PyResult<bool> {
        let held = claimed(item)?;
        let lease_ms = duration_ms("the lease", seconds)?;
        if lease_ms == 0 {
            return Err(PyValueError::new_err(
                "the lease must be longer than a millisecond; release() gives an item back",
            ));
        }
        Ok(py.native(|| self.core.extend(held, lease_ms))?)
    }

    #[pyo3(signature = (max_retries = None, *, delay = None),
           text_signature = "($self, max_retries=None, *, delay=0.0)")]
    fn retry_failed(&self, py: Python<'_>, max_retries: Arg, delay: Arg) -> PyResult<usize> {
        let max_retries = max_retries.map(|max| count("max_retries", max)).transpose()?;
        let delay = delay.map_or(Ok(0), |delay| duration_ms("delay", delay))?;
        Ok(py.native(|| self.core.retry_failed(max_retries, delay))?)
    }

    #[pyo3(signature = (*, delay = None), text_signature = "($self, *, delay=0.0)")]
    fn retry_all(&self, py: Python<'_>, delay: Arg) -> PyResult<usize> {
        let delay = delay.map_or(Ok(0), |delay| duration_ms("delay", delay))?;
        Ok(py.native(|| self.core.retry_all(delay))?)
    }

    #[pyo3(signature = (id))]
    fn replay(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
        let id = integer("id", id)?;
        Ok(py.native(|| self.core.replay(id))?)
    }

    #[pyo3(signature = (id))]
    fn run_now(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = integer("id", id)?;
        Ok(py.native(|| self.core.run_now(id))?)
    }

    #[pyo3(signature = (id, delay = None, *, run_at = None))]
    fn run_later(&self, py: Python<'_>, id: &Bound<'_, PyAny>, delay: Arg, run_at: Arg) -> PyResult<bool> {
        if delay.is_none() && run_at.is_none() {
            return Err(PyTypeError::new_err("run_later takes a delay or run_at; for now there is run_now"));
        }
        let (id, when) = (integer("id", id)?, when(delay, run_at)?);
        Ok(py.native(|| self.core.run_later(id, when))?)
    }

    #[pyo3(signature = (id))]
    fn cancel(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = integer("id", id)?;
        Ok(py.native(|| self.core.cancel(id))?)
    }

    #[pyo3(signature = (status = "failed"))]
    fn purge(&self, py: Python<'_>, status: &str) -> PyResult<usize> {
        let status = parse_status(status)?;
        let (removed, kept) = py.native(|| self.core.purge(status))?;
        tell_kept(py, kept)?;
        Ok(removed)
    }

    #[pyo3(signature = (older_than, *, status = "done"))]
    fn prune(&self, py: Python<'_>, older_than: &Bound<'_, PyAny>, status: &str) -> PyResult<usize> {
        let (status, age_ms) = (parse_status(status)?, duration_ms("older_than", older_than)?);
        let (removed, kept) = py.native(|| self.core.prune(status, age_ms))?;
        tell_kept(py, kept)?;
        Ok(removed)
    }

    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.native(|| self.core.compact())?)
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
        let stats = py.native(|| self.core.stats())?;
        let dict = PyDict::new(py);
        dict.set_item("counts", counts_dict(py, stats.counts)?)?;
        dict.set_item("oldest_pending_age", stats.oldest_pending_ms.map(|ms| ms as f64 / 1000.0))?;
        dict.set_item("next_due_at", datetime(py, stats.next_due)?)?;
        dict.set_item("delayed", stats.delayed)?;
        dict.set_item("stuck", stats.stuck)?;
        dict.set_item("groups", stats.groups)?;
        dict.set_item("paused", stats.paused)?;
        dict.set_item("worker_is_alive", stats.worker.is_some())?;
        dict.set_item("worker", stats.worker.map(|worker| worker_dict(py, &worker)).transpose()?)?;
        Ok(dict)
    }

    #[pyo3(signature = (*, ticks))]
    fn _next_due<'py>(&self, py: Python<'py>, ticks: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, py.native(|| self.core.next_due(ticks))?)
    }

    #[pyo3(signature = (*, thorough = true))]
    fn check<'py>(&self, py: Python<'py>, thorough: bool) -> PyResult<Bound<'py, PyDict>> {
        let health = py.native(|| self.core.check(thorough))?;
        let dict = PyDict::new(py);
        dict.set_item("faults", health.faults)?;
        dict.set_item("mended", health.mended)?;
        dict.set_item("stuck", health.stuck)?;
        dict.set_item("unknown_status", health.unknown_status)?;
        let kept = PyDict::new(py);
        for Kept { id, table } in health.kept {
            match kept.get_item(&table)? {
                Some(ids) => ids.cast_into::<PyList>()?.append(id)?,
                None => kept.set_item(table, [id])?,
            }
        }
        dict.set_item("kept_by_foreign_keys", kept)?;
        dict.set_item("writer", health.writer)?;
        dict.set_item("own_locks", health.own_locks)?;
        dict.set_item("file_bytes", health.file_bytes)?;
        dict.set_item("free_bytes", health.free_bytes)?;
        dict.set_item("wal_bytes", health.wal_bytes)?;
        dict.set_item("schema_version", health.schema_version)?;
        Ok(dict)
    }

    fn backup(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        Ok(py.native(|| self.core.backup(&path))?)
    }

    fn queues<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let queues = py.native(|| self.core.queues())?;
        let dict = PyDict::new(py);
        for (name, counts) in queues {
            dict.set_item(name, counts_dict(py, counts)?)?;
        }
        Ok(dict)
    }

    fn pause(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.pause())?)
    }

    fn resume(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.resume())?)
    }

    #[getter]
    fn paused(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.is_paused())?)
    }

    #[pyo3(signature = (id))]
    fn history(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Vec<Attempt>> {
        let id = integer("id", id)?;
        Ok(py.native(|| self.core.history(id))?.into_iter().map(Attempt).collect())
    }

    fn group_counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for counts in py.native(|| self.core.group_counts())? {
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
        Ok(py.native(|| self.core.retry(id))?)
    }

    #[pyo3(signature = (id))]
    fn delete(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = integer("id", id)?;
        Ok(py.native(|| self.core.delete(id))?)
    }

    #[pyo3(signature = (id = None, *, key = None))]
    fn get(&self, py: Python<'_>, id: Arg, key: Arg) -> PyResult<Option<Item>> {
        let found = match (id, text("key", key)?) {
            (Some(id), None) => {
                let id = integer("id", id)?;
                py.native(|| self.core.get(id))?
            }
            (None, Some(key)) => py.native(|| self.core.get_by_key(&key))?,
            _ => return Err(PyTypeError::new_err("get takes an id or a key")),
        };
        found.map(|item| self.shown(py, item)).transpose()
    }

    #[pyo3(signature = (status = None, *, project = None, group = None, limit = None, after = None, newest_first = false),
           text_signature = "($self, status=None, *, project=None, group=None, limit=50, after=None, newest_first=False)")]
    #[allow(clippy::too_many_arguments)]
    fn items(
        &self,
        py: Python<'_>,
        status: Option<&str>,
        project: Arg,
        group: Arg,
        limit: Arg,
        after: Arg,
        newest_first: bool,
    ) -> PyResult<Vec<Item>> {
        let status = status.map(parse_status).transpose()?;
        let filter = Filter {
            status,
            project: text("project", project)?,
            group: group_name(group)?,
            after: after.map(|after| integer("after", after)).transpose()?,
            limit: limit.map_or(Ok(50), |limit| positive("limit", limit))? as usize,
            newest_first,
        };
        py.native(|| self.core.items(&filter))?.into_iter().map(|item| self.shown(py, item)).collect()
    }

    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = py.native(|| self.core.counts())?;
        counts_dict(py, counts)
    }

    fn pending(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(py.native(|| self.core.pending())?)
    }

    #[pyo3(signature = (limit = None), text_signature = "($self, limit=5)")]
    fn failures(&self, py: Python<'_>, limit: Arg) -> PyResult<Vec<Item>> {
        let limit = limit.map_or(Ok(5), |limit| positive("limit", limit))? as usize;
        py.native(|| self.core.failures(limit))?.into_iter().map(|item| self.shown(py, item)).collect()
    }

    #[pyo3(signature = (limit = None), text_signature = "($self, limit=50)")]
    fn running(&self, py: Python<'_>, limit: Arg) -> PyResult<Vec<Item>> {
        let limit = limit.map_or(Ok(50), |limit| positive("limit", limit))? as usize;
        Ok(py.native(|| self.core.running(limit))?.into_iter().map(Item::read).collect())
    }

    #[pyo3(signature = (ttl = None), text_signature = "($self, ttl=60.0)")]
    fn acquire_worker_lease(&self, py: Python<'_>, ttl: Arg) -> PyResult<bool> {
        let ttl_ms = ttl_ms(ttl)?;
        Ok(py.native(|| self.core.acquire_worker_lease(ttl_ms))?)
    }

    fn refresh_worker_lease(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.refresh_worker_lease())?)
    }

    fn release_worker_lease(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.release_worker_lease())?)
    }

    fn worker_is_alive(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.worker_is_alive())?)
    }

    #[pyo3(signature = (name, content, *, cron = None, every = None, tz = None, project = None, source_path = None,
                        doc_date = None, priority = None, max_retries = None, headers = None, group = None, key = None),
           text_signature = "($self, name, content, *, cron=None, every=None, tz='UTC', project=None, source_path=None, doc_date=None, priority=0, max_retries=None, headers=None, group=None, key=None)")]
    #[allow(clippy::too_many_arguments)]
    fn schedule(
        &self,
        py: Python<'_>,
        name: &str,
        content: &Bound<'_, PyAny>,
        cron: Arg,
        every: Arg,
        tz: Arg,
        project: Arg,
        source_path: Arg,
        doc_date: Arg,
        priority: Arg,
        max_retries: Arg,
        headers: Arg,
        group: Arg,
        key: Arg,
    ) -> PyResult<Schedule> {
        let unique = Unique { key, key_ttl: None, on_duplicate: None };
        let (delay, run_at) = (None, None);
        let details =
            Details { project, source_path, doc_date, priority, delay, run_at, max_retries, headers, group, unique };
        let item = self.read(&details, content)?;
        let tz = zone_name(tz)?;
        let timing = match (text("cron", cron)?, every) {
            (Some(pattern), None) => Timing::Cron { pattern, tz: tz.unwrap_or_else(|| "UTC".into()) },
            (None, Some(every)) if tz.as_deref().is_none_or(|tz| tz == "UTC") => {
                Timing::Every(lease_ms("every", every)?)
            }
            (None, Some(_)) => return Err(PyValueError::new_err("tz says how to read cron; every needs none")),
            _ => return Err(PyValueError::new_err("give either cron or every")),
        };
        Ok(Schedule(py.native(|| self.core.schedule(name, timing, item))?))
    }

    fn schedules(&self, py: Python<'_>) -> PyResult<Vec<Schedule>> {
        Ok(py.native(|| self.core.schedules())?.into_iter().map(Schedule).collect())
    }

    #[pyo3(signature = (name))]
    fn unschedule(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(py.native(|| self.core.unschedule(name))?)
    }

    #[pyo3(signature = (id, timeout = None), text_signature = "($self, id, timeout=None)")]
    fn wait(&self, py: Python<'_>, id: &Bound<'_, PyAny>, timeout: Arg) -> PyResult<Item> {
        let id = integer("id", id)?;
        let limit = timeout.map_or(Ok(Duration::MAX), |timeout| patience("timeout", timeout))?;
        let started = Instant::now();
        let mut waiting = py.native(|| self.core.wait_for_ending(id))?;
        loop {
            let left = limit.saturating_sub(started.elapsed());
            if let Some(item) = py.native(|| self.core.ended_or_sleep(&mut waiting, id, left))? {
                return self.shown(py, item);
            }
            if left.is_zero() {
                return Err(PyTimeoutError::new_err(format!(
                    "item {id} has not ended within {} s",
                    limit.as_secs_f64()
                )));
            }
            py.check_signals()?;
            leaving::check(py)?;
        }
    }

    #[pyo3(signature = (seconds, /))]
    fn _announce_worker(&self, py: Python<'_>, seconds: f64) -> PyResult<Option<String>> {
        let ttl_ms = crate::clock::millis("seconds", seconds)?;
        Ok(py.native(|| self.core.announce_worker(ttl_ms))?)
    }

    #[pyo3(signature = (announcement, seconds, /))]
    fn _confirm_worker(&self, py: Python<'_>, announcement: &str, seconds: f64) -> PyResult<bool> {
        let ttl_ms = crate::clock::millis("seconds", seconds)?;
        Ok(py.native(|| self.core.confirm_worker(announcement, ttl_ms))?)
    }

    #[pyo3(signature = (announcement, /))]
    fn _withdraw_worker(&self, py: Python<'_>, announcement: &str) -> PyResult<bool> {
        Ok(py.native(|| self.core.withdraw_worker(announcement))?)
    }

    #[pyo3(signature = (ttl, /))]
    fn _take_over_worker_lease(&self, py: Python<'_>, ttl: f64) -> PyResult<bool> {
        let ttl_ms = crate::clock::millis("ttl", ttl)?;
        Ok(py.native(|| self.core.take_over_worker_lease(ttl_ms))?)
    }

    #[pyo3(signature = (ttl, /))]
    fn _refresh_process_lease(&self, py: Python<'_>, ttl: f64) -> PyResult<bool> {
        let ttl_ms = crate::clock::millis("ttl", ttl)?;
        Ok(py.native(|| self.core.refresh_process_lease(ttl_ms))?)
    }

    fn _release_process_lease(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.release_process_lease())?)
    }

    #[pyo3(signature = (ttl, /))]
    fn _is_worker_younger_than(&self, py: Python<'_>, ttl: f64) -> PyResult<bool> {
        let ttl_ms = crate::clock::millis("ttl", ttl)?;
        Ok(py.native(|| self.core.is_worker_younger_than(ttl_ms))?)
    }

    fn tend(&self, py: Python<'_>) -> PyResult<()> {
        tell_kept(py, py.native(|| self.core.tend(|| false))?)
    }

    #[pyo3(signature = (others, *, slots, exclusive, stays, linger, limit, whole_groups, max_runtime, ttl, takes_over = false))]
    #[allow(clippy::too_many_arguments)]
    fn _begin_crew(
        &self,
        py: Python<'_>,
        others: Vec<Bound<'_, Queue>>,
        slots: &Bound<'_, PyAny>,
        exclusive: bool,
        stays: bool,
        linger: &Bound<'_, PyAny>,
        limit: Arg,
        whole_groups: bool,
        max_runtime: Arg,
        ttl: Arg,
        takes_over: bool,
    ) -> PyResult<Option<Crew>> {
        let plan = Plan {
            slots: count("concurrency", slots)? as usize,
            exclusive,
            takes_over,
            stays,
            linger_ms: duration_ms("linger", linger)?,
            limit: limit.map(|limit| positive("limit", limit).map(u64::from)).transpose()?,
            whole_groups,
            max_runtime: max_runtime.map(|longest| patience("max_runtime", longest)).transpose()?,
            ttl_ms: ttl_ms(ttl)?,
        };
        let queues = std::iter::once(self.core.clone()).chain(others.iter().map(|other| other.get().core.clone()));
        Crew::begin(py, queues.collect(), plan)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.native(|| self.core.close())?)
    }
}

impl Queue {
    /// Enqueues, waiting for room if the queue is full and the caller has time.
    fn put(&self, py: Python<'_>, items: Vec<NewItem>, wait: Arg) -> PyResult<Vec<i64>> {
        let wait = wait.map_or(Ok(Duration::ZERO), |wait| patience("wait", wait))?;
        if wait.is_zero() {
            return Ok(py.native(|| self.core.enqueue_many(items))?);
        }
        let started = Instant::now();
        let mut waiting = py.native(|| self.core.wait_for_work())?;
        loop {
            match py.native(|| self.core.enqueue_many(items.clone())) {
                Err(Error::Full { .. }) if started.elapsed() < wait => {}
                outcome => return Ok(outcome?),
            }
            let left = wait.saturating_sub(started.elapsed());
            py.native(|| self.core.sleep(&mut waiting, left))?;
            super::signals::check(py)?;
            leaving::check(py)?;
        }
    }

    /// Their library runs the statements, in their transaction.
    fn enqueue_on(&self, py: Python<'_>, connection: &Bound<'_, PyAny>, item: NewItem) -> PyResult<i64> {
        let statements = py.native(|| self.core.enqueue_statements(item))?;
        let given = PyDict::new(py);
        for (name, statement) in [
            ("find", statements.find.as_ref()),
            ("free", statements.free.as_ref()),
            ("replace", Some(&statements.replace)),
            ("insert", Some(&statements.insert)),
            ("counts", Some(&statements.counts)),
        ] {
            let Some(statement) = statement else { continue };
            let values = statement.values.iter().map(|value| sql_value(py, value)).collect::<PyResult<Vec<_>>>()?;
            given.set_item(name, (statement.sql, values))?;
        }
        let on_duplicate = match statements.on_duplicate {
            OnDuplicate::Return => "return",
            OnDuplicate::Raise => "raise",
            OnDuplicate::Replace => "replace",
        };
        let arguments = (connection, self.core.path(), given, on_duplicate, statements.key, statements.max_pending);
        py.import("membox_queue.connections.drive")?.getattr("enqueue")?.call1(arguments)?.extract()
    }

    fn take(&self, py: Python<'_>, how: Claim, wait: Arg) -> PyResult<Vec<Item>> {
        let wait = wait.map(|wait| patience("wait", wait)).transpose()?.unwrap_or_default();
        let started = Instant::now();
        self.take_fitting(py, &how, || {
            if wait.is_zero() {
                return Ok(py.native(|| self.core.claim(&how))?);
            }
            self.wait_and_take(py, &how, wait.saturating_sub(started.elapsed()))
        })
    }

    /// Claims until something fits the queue's shape, or nothing is there.
    fn take_fitting(
        &self,
        py: Python<'_>,
        how: &Claim,
        claim: impl Fn() -> PyResult<Vec<Held>>,
    ) -> PyResult<Vec<Item>> {
        loop {
            let held = claim()?;
            let is_empty = held.is_empty();
            let items = held.into_iter().map(|held| Item::claimed(Arc::new(held), self.core.clone())).collect();
            let Some(shape) = self.shape.get(py) else { return Ok(items) };
            let fitting = self.sort_out(py, shape.bind(py), items, matches!(how.from, From::WholeGroup(_)))?;
            if is_empty || !fitting.is_empty() {
                return Ok(fitting);
            }
        }
    }

    /// The items whose content has the queue's shape; the others are failed. Of items that must keep their order, those
    /// behind one that failed are given back.
    fn sort_out(
        &self,
        py: Python<'_>,
        shape: &Bound<'_, PyAny>,
        items: Vec<Item>,
        in_order: bool,
    ) -> PyResult<Vec<Item>> {
        let mut fitting = Vec::with_capacity(items.len());
        let mut left = items.into_iter();
        while let Some(item) = left.next() {
            let Err(error) = item.fit(py, shape) else {
                fitting.push(item);
                continue;
            };
            let meaning = ending::in_handler(error.value(py), false)?;
            let is_misfit = meaning == Meaning::Failed;
            let back = if !is_misfit {
                self.give_back(py, fitting.drain(..).chain(left.by_ref()))
            } else if in_order {
                self.give_back(py, left.by_ref())
            } else {
                Ok(())
            };
            let ended = match ending::of_raised(error.value(py), meaning)? {
                Some(ending) => py.native(|| self.core.finish(item.held()?, ending).map(drop).map_err(PyErr::from)),
                None => Ok(()),
            };
            if let Err(failure) = back.and(ended) {
                self.give_back(py, fitting.into_iter().chain(left)).ok();
                return Err(failure);
            }
            if !is_misfit {
                return Err(error);
            }
        }
        Ok(fitting)
    }

    /// Releases items uncounted; the last of a batch first, so that each goes by itself.
    fn give_back(&self, py: Python<'_>, items: impl Iterator<Item = Item>) -> PyResult<()> {
        for item in items.collect::<Vec<_>>().iter().rev() {
            let held = item.held()?;
            py.native(|| self.core.release(held, 0))?;
        }
        Ok(())
    }

    /// Content in the form that can be stored, for a queue that has a type.
    fn plain(&self, content: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
        let Some(shape) = self.shape.get(content.py()) else { return Ok(None) };
        Ok(Some(shape.bind(content.py()).call_method1("encode", (content,))?.unbind()))
    }

    fn read(&self, details: &Details<'_, '_>, content: &Bound<'_, PyAny>) -> PyResult<NewItem> {
        let plain = self.plain(content)?;
        let content = plain.as_ref().map_or(content, |plain| plain.bind(content.py()));
        within_limit(content.py(), &[&self.core], |limit| details.read(content, limit))
    }

    /// An item that was only read: in the queue's shape if it fits, else as it is stored.
    fn shown(&self, py: Python<'_>, item: crate::item::Item) -> PyResult<Item> {
        let item = Item::read(item);
        match self.shape.get(py).map_or(Ok(()), |shape| item.fit(py, shape.bind(py))) {
            Err(error) if !error.is_instance_of::<PyException>(py) => Err(error),
            _ => Ok(item),
        }
    }

    /// Short sleeps without the GIL, and a look at Python's signals between them.
    fn wait_and_take(&self, py: Python<'_>, how: &Claim, wait: Duration) -> PyResult<Vec<Held>> {
        let started = Instant::now();
        let mut waiting = py.native(|| self.core.wait_for_work())?;
        loop {
            leaving::check(py)?;
            let left = wait.saturating_sub(started.elapsed());
            let held = py.native(|| self.core.claim_or_sleep(&mut waiting, how, left))?;
            if !held.is_empty() || left.is_zero() {
                return Ok(held);
            }
            py.check_signals()?;
        }
    }

    fn describe<'py>(&self, py: Python<'py>, settings: &Settings) -> PyResult<Bound<'py, PyDict>> {
        let options = self.core.options();
        let patience = options.patience;
        let dict = PyDict::new(py);
        dict.set_item("durability", if options.durability == Durability::Full { "full" } else { "normal" })?;
        dict.set_item("busy_timeout", if patience == Duration::MAX { f64::INFINITY } else { patience.as_secs_f64() })?;
        dict.set_item("worker", options.worker.as_deref())?;
        settings::write(&dict, settings)?;
        Ok(dict)
    }
}

fn how(limit: usize, from: From, lease: Arg, worker: Arg) -> PyResult<Claim> {
    let lease_ms = lease.map(|lease| lease_ms("lease", lease)).transpose()?;
    Ok(Claim { limit, lease_ms, worker: text("worker", worker)?, from })
}

/// Reads something for one of these queues, no longer than `max_bytes`. A limit that holds no more refuses nobody.
pub fn within_limit<T>(
    py: Python<'_>,
    queues: &[&Arc<queue::Queue>],
    read: impl Fn(usize) -> PyResult<T>,
) -> PyResult<T> {
    let limit = queues.iter().map(|queue| queue.settings().settings.max_bytes()).max().unwrap_or(0);
    let outcome = read(limit);
    let Err(error) = &outcome else { return outcome };
    if !error.is_instance(py, &exception_class(py, "PayloadTooLargeError")?) {
        return outcome;
    }
    let latest = py.native(|| queues.iter().map(|queue| queue.latest_settings().max_bytes()).max().unwrap_or(0));
    if latest > limit { read(latest) } else { outcome }
}

/// Refuses a worker that could not begin, before anything is written.
/// Says in the log that items were not removed because rows of other tables refer to them.
pub fn tell_kept(py: Python<'_>, kept: Option<Kept>) -> PyResult<()> {
    let Some(Kept { id, table }) = kept else { return Ok(()) };
    let words = "items to which foreign keys refer are not removed: item %d, to which the table %s refers, is one of them; \
                 check() lists them";
    let logger = py.import("logging")?.call_method1("getLogger", ("membox_queue",))?;
    logger.call_method1("warning", (words, id, table))?;
    Ok(())
}

fn check_spawn(queue: &Bound<'_, Queue>, handler: Arg) -> PyResult<()> {
    let Some(handler) = handler else { return Ok(()) };
    queue.py().import("membox_queue.workers.names")?.call_method1("check_spawn", (queue, handler)).map(drop)
}

/// What `spawn=` asks for, once the items are there.
fn spawn_worker(queue: &Bound<'_, Queue>, handler: Arg) -> PyResult<()> {
    handler.map_or(Ok(()), |handler| queue.call_method1("spawn_worker", (handler,)).map(drop))
}

/// A time zone by its name, or one of zoneinfo's, which know theirs.
fn zone_name(tz: Arg) -> PyResult<Option<String>> {
    match tz.map(|tz| tz.getattr("key")) {
        Some(Ok(key)) => text("tz", Some(&key)),
        _ => text("tz", tz),
    }
}

/// How many items of a group are taken at most.
fn most(limit: Arg) -> PyResult<usize> {
    Ok(limit.map(|limit| positive("limit", limit)).transpose()?.map_or(usize::MAX, |limit| limit as usize))
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

/// Who holds claims, for people to read.
fn worker_name(worker: Arg) -> PyResult<Option<String>> {
    match text("worker", worker)? {
        Some(name) if name.trim().is_empty() => {
            Err(PyValueError::new_err("worker must not be empty; leave it out for host and process"))
        }
        name => Ok(name),
    }
}

/// Says which element of a batch an error is about.
fn at_place(py: Python<'_>, error: PyErr, place: usize) -> PyErr {
    let value = error.value(py);
    match value.setattr("args", (format!("items[{place}]: {value}"),)) {
        Ok(()) => error,
        Err(failure) => failure,
    }
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

/// Who holds the worker lease; membox may have written something else in places.
fn worker_dict<'py>(py: Python<'py>, worker: &Record) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("pid", worker.pid.as_i64())?;
    dict.set_item("hostname", worker.hostname.as_str())?;
    dict.set_item("heartbeat", datetime(py, parse_ms(&worker.heartbeat))?)?;
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
