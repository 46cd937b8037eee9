//! Reading: items, counts, statistics, health, backup.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::{Arg, Queue, target};
use crate::model::{Counts, Status, parse_ms};
use crate::python::attempt::Attempt;
use crate::python::convert::{datetime, integer, positive, text};
use crate::python::interpreter_exit::Native;
use crate::python::item::Item;
use crate::python::new_item::group as group_name;
use crate::python::node::Node;
use crate::python::worker_info::WorkerInfo;
use crate::queue::{Filter, Worker};
use crate::rules::lease::LeaseRecord;
use crate::store::ReferencedItem;

#[pymethods]
impl Queue {
    #[doc = words!(Queue.get)]
    #[pyo3(signature = (id = None, *, key = None))]
    fn get(&self, py: Python<'_>, id: Arg, key: Arg) -> PyResult<Option<Item>> {
        let item = target::one("get", id, key)?;
        let found = py.native(|| self.core.get(item))?;
        found.map(|item| self.shown(py, item)).transpose()
    }

    #[doc = words!(Queue.items)]
    #[pyo3(signature = (status = None, *, project = None, group = None, limit = None, after = None, newest_first = false,
                        home = false),
           text_signature = "($self, status=None, *, project=None, group=None, limit=50, after=None, newest_first=False, home=False)")]
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
        home: bool,
    ) -> PyResult<Vec<Item>> {
        let status = status.map(parse_status).transpose()?;
        let filter = Filter {
            status,
            project: text("project", project)?,
            group: group_name(group)?,
            after: after.map(|after| integer("after", after)).transpose()?,
            limit: limit.map_or(Ok(50), |limit| positive("limit", limit))? as usize,
            newest_first,
            home,
        };
        py.native(|| self.core.items(&filter))?.into_iter().map(|item| self.shown(py, item)).collect()
    }

    #[doc = words!(Queue.failures)]
    #[pyo3(signature = (limit = None), text_signature = "($self, limit=5)")]
    fn failures(&self, py: Python<'_>, limit: Arg) -> PyResult<Vec<Item>> {
        let limit = limit.map_or(Ok(5), |limit| positive("limit", limit))? as usize;
        py.native(|| self.core.failures(limit))?.into_iter().map(|item| self.shown(py, item)).collect()
    }

    #[doc = words!(Queue.running)]
    #[pyo3(signature = (limit = None), text_signature = "($self, limit=50)")]
    fn running(&self, py: Python<'_>, limit: Arg) -> PyResult<Vec<Item>> {
        let limit = limit.map_or(Ok(50), |limit| positive("limit", limit))? as usize;
        Ok(py
            .native(|| self.core.running(limit))?
            .into_iter()
            .map(|item| Item::read(item, Some(self.core.clone())))
            .collect())
    }

    #[doc = words!(Queue.history)]
    #[pyo3(signature = (id = None, *, key = None))]
    fn history(&self, py: Python<'_>, id: Arg, key: Arg) -> PyResult<Vec<Attempt>> {
        let item = target::one("history", id, key)?;
        Ok(py.native(|| self.core.history(&item))?.into_iter().map(Attempt).collect())
    }

    #[doc = words!(Queue.counts)]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = py.native(|| self.core.counts())?;
        counts_dict(py, counts)
    }

    #[doc = words!(Queue.pending)]
    fn pending(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(py.native(|| self.core.pending())?)
    }

    #[doc = words!(Queue._uncovered)]
    fn _uncovered(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(py.native(|| self.core.uncovered())?)
    }

    #[doc = words!(Queue.tree)]
    #[pyo3(signature = (id = None, *, key = None, limit = None),
           text_signature = "($self, id=None, *, key=None, limit=1000)")]
    fn tree(&self, py: Python<'_>, id: Arg, key: Arg, limit: Arg) -> PyResult<Option<Py<Node>>> {
        let item = target::one("tree", id, key)?;
        let limit = limit.map_or(Ok(1000), |limit| positive("limit", limit))? as usize;
        let tree = py.native(|| self.core.tree(&item, limit))?;
        tree.map(|root| Node::shown(py, root, &|item| self.shown(py, item))).transpose()
    }

    #[doc = words!(Queue.group_counts)]
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

    #[doc = words!(Queue.queues)]
    fn queues<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let queues = py.native(|| self.core.queues())?;
        let dict = PyDict::new(py);
        for (name, counts) in queues {
            dict.set_item(name, counts_dict(py, counts)?)?;
        }
        Ok(dict)
    }

    #[doc = words!(Queue.paused)]
    #[getter]
    fn paused(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.is_paused())?)
    }

    #[doc = words!(Queue.stats)]
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
        dict.set_item("worker_is_alive", stats.worker_is_alive)?;
        dict.set_item("worker", stats.worker.map(|worker| worker_dict(py, &worker)).transpose()?)?;
        dict.set_item("workers", shown_workers(py, stats.workers)?)?;
        Ok(dict)
    }

    #[doc = words!(Queue.workers)]
    fn workers(&self, py: Python<'_>) -> PyResult<Vec<Py<WorkerInfo>>> {
        let found = py.native(|| self.core.workers())?;
        shown_workers(py, found)
    }

    #[doc = words!(Queue._next_due)]
    #[pyo3(signature = (*, ticks))]
    fn _next_due<'py>(&self, py: Python<'py>, ticks: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, py.native(|| self.core.next_due(ticks))?)
    }

    #[doc = words!(Queue.check)]
    #[pyo3(signature = (*, thorough = true))]
    fn check<'py>(&self, py: Python<'py>, thorough: bool) -> PyResult<Bound<'py, PyDict>> {
        let health = py.native(|| self.core.check(thorough))?;
        let dict = PyDict::new(py);
        dict.set_item("faults", health.faults)?;
        dict.set_item("mended", health.recreated)?;
        dict.set_item("stuck", health.stuck)?;
        dict.set_item("unknown_status", health.unknown_status)?;
        let kept = PyDict::new(py);
        for ReferencedItem { id, table } in health.kept {
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

    #[doc = words!(Queue.backup)]
    fn backup(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        Ok(py.native(|| self.core.backup(&path))?)
    }
}

pub fn parse_status(status: &str) -> PyResult<Status> {
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

fn shown_workers(py: Python<'_>, workers: Vec<Worker>) -> PyResult<Vec<Py<WorkerInfo>>> {
    workers.into_iter().map(|worker| Py::new(py, WorkerInfo(worker))).collect()
}

/// The holder of the worker lease. A record of membox may have other types in its fields.
fn worker_dict<'py>(py: Python<'py>, worker: &LeaseRecord) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("pid", worker.pid.as_i64())?;
    dict.set_item("hostname", worker.hostname.as_str())?;
    dict.set_item("heartbeat", datetime(py, parse_ms(&worker.heartbeat))?)?;
    Ok(dict)
}
