//! The queue that an item goes into, as `queue=` gives it: by its name, or as an object, whose type converts the content.

use std::path::PathBuf;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::convert::text;
use super::queue::Queue;
use crate::queue;
use crate::rules::name;

pub struct Destination {
    pub name: String,
    object: Option<Py<PyAny>>,
}

impl Destination {
    pub fn read(queue: &Bound<'_, PyAny>) -> PyResult<Self> {
        if queue.is_instance_of::<PyString>() {
            let name = text("queue", Some(queue))?.unwrap_or_default();
            name::check("a queue's name", &name)?;
            return Ok(Self { name, object: None });
        }
        // An AsyncQueue opens its file later, and is known by the same attributes.
        match (queue.getattr("name"), queue.hasattr("_shape")?) {
            (Ok(name), true) => Ok(Self { name: name.extract()?, object: Some(queue.clone().unbind()) }),
            _ => {
                let kind = queue.get_type().qualname()?;
                Err(PyTypeError::new_err(format!("queue must be a name or a Queue of the same file, not {kind}")))
            }
        }
    }
}

/// Converts content to its stored form by the type of the queue it goes into; `None` if that has no type. Without a
/// destination that is the caller's own queue. Of a queue given by its name only the caller's own type is known.
pub fn plain(
    content: &Bound<'_, PyAny>,
    own: &queue::Queue,
    own_shape: Option<&Bound<'_, PyAny>>,
    destination: Option<&Destination>,
) -> PyResult<Option<Py<PyAny>>> {
    let object = destination.and_then(|destination| destination.object.as_ref());
    let shape = match object.map(|object| object.bind(content.py())) {
        Some(object) => {
            check_is_beside(own, object)?;
            Some(object.getattr("_shape")?).filter(|shape| !shape.is_none())
        }
        None => own_shape.filter(|_| destination.is_none_or(|each| each.name == own.name())).cloned(),
    };
    shape.map(|shape| Ok(shape.call_method1("encode", (content,))?.unbind())).transpose()
}

/// Refuses a queue of another file.
fn check_is_beside(own: &queue::Queue, other: &Bound<'_, PyAny>) -> PyResult<()> {
    // An AsyncQueue has the queue it has opened.
    let opened = other.getattr_opt("_queue")?.filter(|queue| !queue.is_none());
    let is_beside = match opened.as_ref().unwrap_or(other).cast::<Queue>() {
        Ok(queue) => queue.get().core.is_beside(own),
        Err(_) => {
            let path = other.getattr("path")?.extract::<Option<PathBuf>>()?;
            path.is_some() && path == own.path()
        }
    };
    if is_beside {
        return Ok(());
    }
    let shown = |path: Option<PathBuf>| path.map_or_else(|| "memory".into(), |path| path.display().to_string());
    let (there, here) = (shown(other.getattr("path")?.extract()?), shown(own.path()));
    let name = other.getattr("name")?;
    let text = format!(
        "the queue {name:?} is in {there}, not in {here}: what is written together must be in one file. Open it there"
    );
    Err(PyValueError::new_err(text))
}
