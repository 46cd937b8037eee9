//! Opening and closing a queue.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::{Arg, Queue};
use crate::python::convert::{patience, text};
use crate::python::interpreter_exit::Native;
use crate::python::{CLOCK, settings, signals, warnings};
use crate::queue::{self, Durability, Options};
use crate::rules::settings::Settings;

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
            interrupted: signals::interrupted,
            warn: warnings::warn,
            worker: worker_name(worker)?,
            clock: CLOCK.clone(),
        };
        Ok(Self { core: py.native(|| queue::Queue::open(&path, options))?, shape: PyOnceLock::new() })
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.native(|| self.core.close())?)
    }
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
