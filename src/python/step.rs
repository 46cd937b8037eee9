//! `Item.step`, `sleep` and `gather`: what a handler does once, by name.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyString, PyTuple};

use super::convert::{duration_ms, json, text, to_python};
use super::enlist::{self, Enlistment};
use super::error::named;
use super::interpreter_exit::Native;
use super::item::Item;
use super::new_item::if_failed as read_if_failed;
use super::queue::within_limit;
use crate::error::Error;
use crate::model::{NewItem, read_json};
use crate::queue::Durable;

#[pymethods]
impl Item {
    #[doc = words!(Item.step)]
    #[pyo3(signature = (name, function, /, *arguments, connection = None, **named))]
    fn step<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyAny>,
        function: &Bound<'py, PyAny>,
        arguments: &Bound<'py, PyTuple>,
        connection: Option<&Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, item) = (slf.py(), slf.get());
        if let Some((known,)) = item._find_step(py, name)? {
            return Ok(known);
        }
        let result = function.call(arguments, named)?;
        if result.hasattr("__await__")? {
            // A coroutine that is never awaited would warn.
            let _ = result.call_method0("close");
            let text = format!("the function of step {name:?} must be awaited; use AsyncQueue, whose items await it");
            return Err(PyTypeError::new_err(text));
        }
        item._add_step(name, &result, connection)
    }

    #[doc = words!(Item._find_step)]
    #[pyo3(signature = (name, /))]
    fn _find_step<'py>(&self, py: Python<'py>, name: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>,)>> {
        let (held, core) = self.claim()?;
        let name = step_name(name)?;
        let found = py.native(|| core.find_step(held, &name)).map_err(|error| self.about_this(py, error.into()))?;
        let stored = self.found(py, found)?;
        stored.map(|stored| Ok((read_result(py, &stored)?,))).transpose()
    }

    #[doc = words!(Item._add_step)]
    #[pyo3(signature = (name, result, connection = None, /))]
    fn _add_step<'py>(
        &self,
        name: &Bound<'py, PyAny>,
        result: &Bound<'py, PyAny>,
        connection: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = result.py();
        let (held, core) = self.claim()?;
        let name = step_name(name)?;
        let what = format!("the result of step {name:?}");
        let stored =
            within_limit(py, &[core], |limit| json(&what, result, limit)).map_err(|error| about(py, error, &what))?;
        if let Some(connection) = connection {
            let steps = py.native(|| core.enlist_step(held, &name, stored.clone()));
            let steps = Enlistment::new(steps.map_err(|error| self.about_this(py, error.into()))?);
            enlist::run(connection, core.path(), steps).map_err(|error| self.about_this(py, error))?;
            return read_result(py, &stored);
        }
        py.native(|| core.add_step(held, &name, &stored)).map_err(|error| match error {
            error @ Error::TooLarge { .. } => about(py, error.into(), &what),
            error => self.about_this(py, error.into()),
        })?;
        read_result(py, &stored)
    }

    #[doc = words!(Item.sleep)]
    #[pyo3(signature = (name, seconds, /))]
    fn sleep(&self, py: Python<'_>, name: &Bound<'_, PyAny>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let (held, core) = self.claim()?;
        let (name, delay) = (step_name(name)?, duration_ms("a sleep", seconds)?);
        self.check_suspendable("sleep")?;
        let found =
            py.native(|| core.sleep_once(held, &name, delay)).map_err(|error| self.about_this(py, error.into()))?;
        self.found(py, found)
    }

    #[doc = words!(Item.gather)]
    #[pyo3(signature = (name, items, /, *, if_failed = None),
           text_signature = "($self, name, items, /, *, if_failed='cancel')")]
    fn gather(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        items: &Bound<'_, PyAny>,
        if_failed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Option<Item>>> {
        let (held, core) = self.claim()?;
        let name = step_name(name)?;
        let if_failed = read_if_failed(if_failed)?;
        self.check_suspendable("gather")?;
        let items = self.new_items(items)?;
        let found = py
            .native(|| core.gather(held, &name, items, if_failed))
            .map_err(|error| self.about_this(py, error.into()))?;
        let found = self.found(py, found)?;
        Ok(found.into_iter().map(|item| item.map(|item| Item::read(item, Some(core.clone())))).collect())
    }
}

impl Item {
    /// Returns what was found, or leaves the handler.
    fn found<T>(&self, py: Python<'_>, found: Durable<T>) -> PyResult<T> {
        match found {
            Durable::Found(value) => Ok(value),
            Durable::Suspended => {
                let text = format!("item {} is suspended; its handler is called again later", self.number());
                Err(named(py, "Suspended", text))
            }
        }
    }

    /// Only a loop or a block can end the claim of a handler that is left.
    fn check_suspendable(&self, verb: &str) -> PyResult<()> {
        if self.can_be_suspended() {
            return Ok(());
        }
        let text = format!(
            "item.{verb} leaves the handler, and a bare claim has none; use it in a handler of drain or work, or in \
             `with item:`"
        );
        Err(PyValueError::new_err(text))
    }

    fn new_items(&self, items: &Bound<'_, PyAny>) -> PyResult<Vec<NewItem>> {
        let is_one = items.is_instance_of::<PyString>()
            || items.is_instance_of::<PyBytes>()
            || items.is_instance_of::<PyByteArray>()
            || items.is_instance_of::<PyDict>();
        if is_one {
            return Err(PyTypeError::new_err("gather takes an iterable of contents and NewItems; for one give a list"));
        }
        items.try_iter()?.map(|item| self.new_item(&item?)).collect()
    }
}

fn step_name(name: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(text("the name of a step", Some(name))?.unwrap_or_default())
}

/// The result as every attempt gets it.
fn read_result<'py>(py: Python<'py>, stored: &str) -> PyResult<Bound<'py, PyAny>> {
    match read_json(stored) {
        Ok(value) => to_python(py, &value),
        Err(reason) => Err(named(py, "CorruptDatabaseError", format!("the result of a step {reason}"))),
    }
}

/// Adds to an error which step it is about.
fn about(py: Python<'_>, error: PyErr, what: &str) -> PyErr {
    let value = error.value(py);
    let said = value.to_string();
    if said.contains(what) {
        return error;
    }
    match value.setattr("args", (format!("{what}: {said}"),)) {
        Ok(()) => error,
        Err(failure) => failure,
    }
}
