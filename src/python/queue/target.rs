//! Which items a verb is about: one by its id or its key, or several.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use super::Arg;
use super::read::parse_status;
use crate::python::convert::{integer, text};
use crate::queue::{Target, Targets};

pub enum Which {
    One(Target),
    Several(Targets),
}

/// Reads the arguments of a verb on one item.
pub fn one(verb: &str, id: Arg, key: Arg) -> PyResult<Target> {
    match (id, text("key", key)?) {
        (Some(id), None) => Ok(Target::Id(integer("id", id)?)),
        (None, Some(key)) if key.is_empty() => Err(PyValueError::new_err("key must not be empty")),
        (None, Some(key)) => Ok(Target::Key(key)),
        (None, None) => Err(PyTypeError::new_err(format!("{verb} takes an id or a key"))),
        (Some(_), Some(_)) => Err(PyTypeError::new_err(format!("{verb} takes an id or a key, not both"))),
    }
}

/// Reads the arguments of a verb on one item or several.
pub fn one_or_several(verb: &str, id: Arg, key: Arg, status: Arg) -> PyResult<Which> {
    match (id, key, text("status", status)?) {
        (None, None, Some(status)) => Ok(Which::Several(Targets::Status(parse_status(&status)?))),
        (None, None, None) => Err(PyTypeError::new_err(format!("{verb} takes an id, several ids, key=… or status=…"))),
        (Some(ids), None, None) if is_several(ids) => {
            let ids = ids.try_iter()?.map(|id| integer("id", &id?)).collect::<PyResult<_>>()?;
            Ok(Which::Several(Targets::Ids(ids)))
        }
        (id, key, None) if id.is_none() || key.is_none() => one(verb, id, key).map(Which::One),
        _ => Err(PyTypeError::new_err(format!("{verb} takes only one of: an id, several ids, key=…, status=…"))),
    }
}

/// A text is iterable too, but never several ids.
fn is_several(ids: &Bound<'_, PyAny>) -> bool {
    let is_text =
        ids.is_instance_of::<PyString>() || ids.is_instance_of::<PyBytes>() || ids.is_instance_of::<PyByteArray>();
    !is_text && ids.hasattr("__iter__").unwrap_or(false)
}
