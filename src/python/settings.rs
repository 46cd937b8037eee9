//! Settings by the names of their arguments, both ways.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use super::convert::{count, duration_ms, lease_ms, positive, type_name};
use super::rate::Rate;
use super::retry::Retry;
use crate::rules::settings::Settings;

/// Reads one setting. Says whether there is one of that name.
pub fn read(settings: &mut Settings, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    match name {
        "lease" => settings.lease_ms = Some(lease_ms(name, value)?),
        "max_retries" => settings.max_retries = Some(count(name, value)?),
        "retry" => settings.retry = Some(expect::<Retry>(name, "a Retry", value)?.policy),
        "max_bytes" => settings.max_bytes = Some(positive(name, value)? as usize),
        "max_pending" => settings.max_pending = Some(positive(name, value)?.into()),
        "rate" => settings.rate = Some(expect::<Rate>(name, "a Rate", value)?.rate),
        "group_rate" => settings.group_rate = Some(expect::<Rate>(name, "a Rate", value)?.rate),
        "keep_for" => settings.keep_for_ms = Some(duration_ms(name, value)?),
        "keep_last" => settings.keep_last = Some(count(name, value)?.into()),
        "keep_failed_for" => settings.keep_failed_for_ms = Some(duration_ms(name, value)?),
        "keep_content" => settings.keep_content = Some(expect_bool(name, value)?),
        "group_limit" => settings.group_limit = Some(positive(name, value)?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn expect<'py, T: FromPyObjectOwned<'py>>(name: &str, what: &str, value: &Bound<'py, PyAny>) -> PyResult<T> {
    value.extract().map_err(|_| wrong(name, what, value))
}

fn expect_bool(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.cast::<PyBool>().map(|flag| flag.is_true()).map_err(|_| wrong(name, "a bool", value))
}

fn wrong(name: &str, what: &str, value: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{name} must be {what}, not {}", type_name(value)))
}

/// Writes settings into a dict; what says nothing is None.
pub fn write(dict: &Bound<'_, PyDict>, settings: &Settings) -> PyResult<()> {
    let seconds = |ms: Option<i64>| ms.map(|ms| ms as f64 / 1000.0);
    dict.set_item("lease", seconds(settings.lease_ms))?;
    dict.set_item("max_retries", settings.max_retries)?;
    dict.set_item("retry", settings.retry.map(|policy| Retry { policy }))?;
    dict.set_item("max_bytes", settings.max_bytes)?;
    dict.set_item("max_pending", settings.max_pending)?;
    dict.set_item("rate", settings.rate.map(|rate| Rate { rate }))?;
    dict.set_item("group_rate", settings.group_rate.map(|rate| Rate { rate }))?;
    dict.set_item("keep_for", seconds(settings.keep_for_ms))?;
    dict.set_item("keep_last", settings.keep_last)?;
    dict.set_item("keep_failed_for", seconds(settings.keep_failed_for_ms))?;
    dict.set_item("keep_content", settings.keep_content)?;
    dict.set_item("group_limit", settings.group_limit)
}
