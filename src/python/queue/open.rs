//! Opening and closing a queue.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use super::{Arg, Queue};
use crate::python::convert::{patience, text};
use crate::python::interpreter_exit::Native;
use crate::python::{CLOCK, options, settings, signals, warnings};
use crate::queue::{self, Durability, Options};
use crate::rules::settings::{NAMES, Settings};

#[pymethods]
impl Queue {
    #[new]
    #[pyo3(signature = (path, name = "ingest", *, durability = "full", busy_timeout = None, worker = None, **settings),
           text_signature = None)]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        name: &str,
        durability: &str,
        busy_timeout: Arg,
        worker: Arg,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        options::read("Queue.__new__", settings, |name, _| Ok(NAMES.contains(&name)))?;
        let standard = Options::default();
        let durability = match durability {
            "full" => Durability::Full,
            "normal" => Durability::Normal,
            other => {
                return Err(PyValueError::new_err(format!("durability must be 'full' or 'normal', not {other:?}")));
            }
        };
        let mut given = Settings::default();
        for (name, value) in settings.into_iter().flatten().filter(|(_, value)| !value.is_none()) {
            settings::read(&mut given, name.extract()?, &value)?;
        }
        let options = Options {
            name: name.to_owned(),
            settings: given,
            durability,
            patience: busy_timeout.map_or(Ok(standard.patience), |limit| patience("busy_timeout", limit))?,
            interrupted: signals::interrupted,
            warn: warnings::warn,
            worker: worker_name(worker)?,
            clock: CLOCK.clone(),
        };
        Ok(Self { core: py.native(|| queue::Queue::open(&path, options))?, shape: PyOnceLock::new() })
    }

    #[doc = words!(Queue.close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.native(|| self.core.close())?)
    }
}

/// The worker name on claims, shown to operators.
fn worker_name(worker: Arg) -> PyResult<Option<String>> {
    match text("worker", worker)? {
        Some(name) if name.trim().is_empty() => {
            Err(PyValueError::new_err("worker must not be empty; leave it out for host and process"))
        }
        name => Ok(name),
    }
}
