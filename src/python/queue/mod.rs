//! `Queue`: the class and its state; each verb is in the file of its name.

mod answer;
mod claim;
mod enqueue;
mod finish;
mod lease;
mod loops;
mod open;
mod read;
mod repair;
mod retention;
mod schedule;
mod settings;
mod target;
mod wait;

pub use retention::log_kept;
pub use wait::AwaitedEnd;

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyGenericAlias, PyType};

use super::enlist::Enlistment;
use super::error::exception_class;
use super::interpreter_exit::Native;
use super::item::Item;
use crate::model;
use crate::queue;

/// An argument that the caller may leave out or give as None.
type Arg<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

#[doc = concat!(
    "Queue(path, name='ingest', *, durability='full', busy_timeout=30.0, worker=None", setting_options!(), ")\n--\n\n",
    words!(Queue.__new__)
)]
#[pyclass(frozen, subclass, module = "membox_queue._native")]
pub struct Queue {
    pub core: Arc<queue::Queue>,
    /// Converts content between the queue's type and its stored form. Most queues have none.
    shape: PyOnceLock<Py<PyAny>>,
}

#[pymethods]
impl Queue {
    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, kind: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyGenericAlias::new(cls.py(), cls.as_any(), kind)?.into_any())
    }

    #[doc = words!(Queue._set_shape)]
    #[pyo3(signature = (shape, /))]
    fn _set_shape(&self, py: Python<'_>, shape: Py<PyAny>) -> PyResult<()> {
        self.shape.set(py, shape).map_err(|_| PyValueError::new_err("the queue has a type already"))
    }

    #[doc = words!(Queue._shape)]
    #[getter]
    fn _shape(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.shape.get(py).map(|shape| shape.clone_ref(py))
    }

    #[doc = words!(Queue.path)]
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.core.path()
    }

    #[doc = words!(Queue.name)]
    #[getter]
    fn name(&self) -> &str {
        self.core.name()
    }

    #[doc = words!(Queue.closed)]
    #[getter]
    fn closed(&self) -> bool {
        self.core.is_closed()
    }
}

impl Queue {
    /// Converts content to its stored form, for a queue that has a type.
    fn plain(&self, content: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
        let Some(shape) = self.shape.get(content.py()) else { return Ok(None) };
        Ok(Some(shape.bind(content.py()).call_method1("encode", (content,))?.unbind()))
    }

    /// Creates an item that was only read: converted to the queue's type if it fits, else as stored.
    fn shown(&self, py: Python<'_>, item: model::Item) -> PyResult<Item> {
        let is_here = item.queue == self.core.name();
        let item = Item::read(item, Some(self.core.clone()));
        match self.shape.get(py).filter(|_| is_here).map_or(Ok(()), |shape| item.fit(py, shape.bind(py))) {
            Err(error) if !error.is_instance_of::<PyException>(py) => Err(error),
            _ => Ok(item),
        }
    }
}

/// Reads a value that must not exceed `max_bytes` of these queues. If it does, the limit is read again, because it may
/// have been raised.
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

/// Runs a verb on the caller's own connection; `_run_steps` of the Python class knows the libraries.
pub fn on_connection<'py>(
    queue: &Bound<'py, Queue>,
    connection: &Bound<'py, PyAny>,
    steps: Enlistment,
) -> PyResult<Bound<'py, PyAny>> {
    queue.call_method1("_run_steps", (connection, steps))
}
