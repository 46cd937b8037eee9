//! `schedule`, `schedules` and `unschedule`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{Arg, Queue};
use crate::python::convert::{lease_ms, text};
use crate::python::interpreter_exit::Native;
use crate::python::item::{Details, Unique};
use crate::python::schedule::Schedule;
use crate::rules::tick::Timing;

#[pymethods]
impl Queue {
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
}

/// A time zone by its name, or one of zoneinfo's, which know theirs.
fn zone_name(tz: Arg) -> PyResult<Option<String>> {
    match tz.map(|tz| tz.getattr("key")) {
        Some(Ok(key)) => text("tz", Some(&key)),
        _ => text("tz", tz),
    }
}
