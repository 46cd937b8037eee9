//! `enqueue` and `enqueue_many`.

use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyString};

use super::{Arg, Queue, within_limit};
use crate::model::NewItem;
use crate::python::convert::{content as stored, patience};
use crate::python::destination::plain;
use crate::python::enlist::Enlistment;
use crate::python::interpreter_exit::Native;
use crate::python::new_item::{ItemOptions, NewItem as PyNewItem, needs, new_item, new_needs};
use crate::python::options::given;
use crate::python::waits;

#[pymethods]
impl Queue {
    #[doc = concat!(
        "enqueue($self, content, *", item_options!(), ", connection=None, wait=0.0, spawn=None)\n--\n\n",
        words!(Queue.enqueue)
    )]
    #[pyo3(signature = (content, *, connection = None, wait = None, spawn = None, **options), text_signature = None)]
    fn enqueue(
        slf: &Bound<'_, Self>,
        content: &Bound<'_, PyAny>,
        connection: Arg,
        wait: Arg,
        spawn: Arg,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<i64>> {
        let (py, queue) = (slf.py(), slf.get());
        let item = queue.new_item(content, &ItemOptions::read("Queue.enqueue", options)?)?;
        check_spawn(slf, spawn)?;
        check_connection(connection, wait, spawn)?;
        let id = match connection {
            None => queue.put(py, vec![item], wait)?[0],
            Some(connection) => {
                let steps = Enlistment::new(py.native(|| queue.core.enlist(item))?);
                slf.call_method1("_run_steps", (connection, steps))?.get_item(0)?.extract()?
            }
        };
        spawn_worker(slf, spawn)?;
        Ok(id)
    }

    #[doc = words!(Queue.enqueue_many)]
    #[pyo3(signature = (items, *, connection = None, wait = None, spawn = None),
           text_signature = "($self, items, *, connection=None, wait=0.0, spawn=None)")]
    fn enqueue_many(
        slf: &Bound<'_, Self>,
        items: &Bound<'_, PyAny>,
        connection: Arg,
        wait: Arg,
        spawn: Arg,
    ) -> PyResult<Vec<Option<i64>>> {
        // These are iterable too, and would become one item per letter, byte or key.
        if items.is_instance_of::<PyString>()
            || items.is_instance_of::<PyBytes>()
            || items.is_instance_of::<PyByteArray>()
            || items.is_instance_of::<PyDict>()
        {
            return Err(PyTypeError::new_err("enqueue_many takes an iterable of contents; for one use enqueue"));
        }
        let (py, queue) = (slf.py(), slf.get());
        let plain = |content: &Bound<'_, PyAny>, new: Option<&PyNewItem>| queue.plain_of(content, new);
        let items = items.try_iter()?.enumerate().map(|(place, item)| {
            let item = item?;
            let read = |limit| new_item(&item, limit, &plain);
            within_limit(py, &[&queue.core], read).map_err(|error| at_place(py, error, place))
        });
        let items = items.collect::<PyResult<Vec<_>>>()?;
        check_spawn(slf, spawn)?;
        check_connection(connection, wait, spawn)?;
        let ids = match connection {
            None => queue.put(py, items, wait)?,
            Some(connection) => {
                let steps = Enlistment::new(py.native(|| queue.core.enlist_many(items))?);
                slf.call_method1("_run_steps", (connection, steps))?.extract()?
            }
        };
        spawn_worker(slf, spawn)?;
        Ok(ids)
    }
}

impl Queue {
    /// Enqueues the items. If the queue is full, waits for room as long as the caller allows.
    fn put(&self, py: Python<'_>, items: Vec<NewItem>, wait: Arg) -> PyResult<Vec<Option<i64>>> {
        let wait = wait.map_or(Ok(Duration::ZERO), |wait| patience("wait", wait))?;
        waits::for_room(py, &self.core, items, wait)
    }

    /// Reads an item to enqueue, with its content converted by the queue's type.
    pub(super) fn new_item(&self, content: &Bound<'_, PyAny>, options: &ItemOptions<'_>) -> PyResult<NewItem> {
        let plain = self.plain(content)?;
        let content = plain.as_ref().map_or(content, |plain| plain.bind(content.py()));
        let py = content.py();
        let after = needs(given(&options.after))?;
        let plain = |content: &Bound<'_, PyAny>, new: Option<&PyNewItem>| self.plain_of(content, new);
        within_limit(py, &[&self.core], |limit| {
            let item = options.item(stored(content, limit)?, limit)?;
            Ok(NewItem { after: new_needs(py, &after, limit, &plain)?, ..item })
        })
    }

    /// Converts content by the type of the queue that an item goes into.
    fn plain_of(&self, content: &Bound<'_, PyAny>, new: Option<&PyNewItem>) -> PyResult<Option<Py<PyAny>>> {
        let shape = self.shape.get(content.py()).map(|shape| shape.bind(content.py()));
        plain(content, &self.core, shape, new.and_then(PyNewItem::destination))
    }
}

/// Refuses what cannot be done in a transaction that only the caller can commit.
fn check_connection(connection: Arg, wait: Arg, spawn: Arg) -> PyResult<()> {
    if connection.is_none() {
        return Ok(());
    }
    if spawn.is_some() {
        let text = "a worker cannot see your open transaction; call spawn_worker after your commit";
        return Err(PyValueError::new_err(text));
    }
    if wait.is_some_and(|wait| wait.ne(0.0).unwrap_or(true)) {
        let text = "wait cannot be given with connection: room is made by others, whom your open transaction holds up";
        return Err(PyValueError::new_err(text));
    }
    Ok(())
}

/// Refuses a worker that could not start, before anything is written.
fn check_spawn(queue: &Bound<'_, Queue>, handler: Arg) -> PyResult<()> {
    handler.map_or(Ok(()), |handler| queue.call_method1("_check_spawn", (handler,)).map(drop))
}

/// Starts the worker that `spawn=` asks for, once the items are stored.
fn spawn_worker(queue: &Bound<'_, Queue>, handler: Arg) -> PyResult<()> {
    handler.map_or(Ok(()), |handler| queue.call_method1("spawn_worker", (handler,)).map(drop))
}

/// Adds to an error which element of a batch it is about.
fn at_place(py: Python<'_>, error: PyErr, place: usize) -> PyErr {
    let value = error.value(py);
    match value.setattr("args", (format!("items[{place}]: {value}"),)) {
        Ok(()) => error,
        Err(failure) => failure,
    }
}
