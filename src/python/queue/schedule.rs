//! `schedule`, `schedules` and `unschedule`.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{Arg, Queue};
use crate::python::convert::{lease_ms, text};
use crate::python::enlist::Enlistment;
use crate::python::interpreter_exit::Native;
use crate::python::new_item::ItemOptions;
use crate::python::schedule::Schedule;
use crate::rules::tick::Timing;

#[pymethods]
impl Queue {
    #[doc = concat!(
        "schedule($self, name, content, *, cron=None, every=None, tz='UTC'", repeated_item_options!(),
        ", connection=None)\n--\n\n", words!(Queue.schedule)
    )]
    #[pyo3(signature = (name, content, *, cron = None, every = None, tz = None, connection = None, **options),
           text_signature = None)]
    #[allow(clippy::too_many_arguments)]
    fn schedule<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        content: &Bound<'_, PyAny>,
        cron: Arg,
        every: Arg,
        tz: Arg,
        connection: Arg<'_, 'py>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, queue) = (slf.py(), slf.get());
        let item = queue.new_item(content, &ItemOptions::read_repeated("Queue.schedule", options)?)?;
        let tz = zone_name(tz)?;
        let timing = match (text("cron", cron)?, every) {
            (Some(pattern), None) => Timing::Cron { pattern, tz: tz.unwrap_or_else(|| "UTC".into()) },
            (None, Some(every)) if tz.as_deref().is_none_or(|tz| tz == "UTC") => {
                Timing::Every(lease_ms("every", every)?)
            }
            (None, Some(_)) => return Err(PyValueError::new_err("tz says how to read cron; every needs none")),
            _ => return Err(PyValueError::new_err("give either cron or every")),
        };
        match connection {
            None => Schedule(py.native(|| queue.core.schedule(name, timing, item))?).into_bound_py_any(py),
            Some(connection) => {
                let steps = Enlistment::new(py.native(|| queue.core.enlist_schedule(name, timing, item))?);
                slf.call_method1("_run_steps", (connection, steps))
            }
        }
    }

    #[doc = words!(Queue.schedules)]
    fn schedules(&self, py: Python<'_>) -> PyResult<Vec<Schedule>> {
        Ok(py.native(|| self.core.schedules())?.into_iter().map(Schedule).collect())
    }

    #[doc = words!(Queue.unschedule)]
    #[pyo3(signature = (name))]
    fn unschedule(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(py.native(|| self.core.unschedule(name))?)
    }
}

/// Reads a time zone: its name, or a `zoneinfo` object, which has a name.
fn zone_name(tz: Arg) -> PyResult<Option<String>> {
    match tz.map(|tz| tz.getattr("key")) {
        Some(Ok(key)) => text("tz", Some(&key)),
        _ => text("tz", tz),
    }
}
