//! `configure`, and the settings a queue has.

use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Queue;
use crate::python::interpreter_exit::Native;
use crate::python::settings;
use crate::queue::Durability;
use crate::rules::settings::{NAMES, Settings};

#[pymethods]
impl Queue {
    #[doc = concat!("configure($self, *", setting_options!(), ")\n--\n\n", words!(Queue.configure))]
    #[pyo3(signature = (**settings), text_signature = None)]
    fn configure(&self, py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let mut set = Settings::default();
        let mut forgotten = Vec::new();
        for (name, value) in settings.into_iter().flatten() {
            let name: String = name.extract()?;
            if value.is_none() && Settings::default().forget(&name) {
                forgotten.push(name);
            } else if value.is_none() || !settings::read(&mut set, &name, &value)? {
                let known = NAMES.join(", ");
                return Err(PyTypeError::new_err(format!("configure has no setting {name:?}; there are {known}")));
            }
        }
        Ok(py.native(|| self.core.configure(&set, &forgotten))?)
    }

    #[doc = words!(Queue.options)]
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
        let dict = self.own_options(py)?;
        settings::write(&dict, &settings)?;
        Ok(dict)
    }

    #[doc = words!(Queue._given)]
    #[getter]
    fn _given<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = self.own_options(py)?;
        settings::write(&dict, &self.core.options().settings)?;
        Ok(dict)
    }

    #[getter]
    fn _reopen_options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = self.own_options(py)?;
        dict.set_item("lease", self.core.own_lease_ms().map(|ms| ms as f64 / 1000.0))?;
        Ok(dict)
    }
}

impl Queue {
    /// The options that are no settings.
    fn own_options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = self.core.options();
        let patience = options.patience;
        let dict = PyDict::new(py);
        dict.set_item("durability", if options.durability == Durability::Full { "full" } else { "normal" })?;
        dict.set_item("busy_timeout", if patience == Duration::MAX { f64::INFINITY } else { patience.as_secs_f64() })?;
        dict.set_item("worker", options.worker.as_deref())?;
        Ok(dict)
    }
}
