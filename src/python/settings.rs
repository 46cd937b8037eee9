//! Settings by argument name: one table reads them, writes them and shows them in a signature.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use super::convert::{count, duration_ms, lease_ms, positive, type_name};
use super::rate::Rate;
use super::retry::Retry;
use crate::rules::{self, settings::Settings};

type Given<'a, 'py> = &'a Bound<'py, PyAny>;

macro_rules! settings {
    ($($name:ident, $field:ident, $read:expr, $write:expr;)*) => {
        /// Reads one setting. Returns whether there is a setting of that name.
        pub fn read(settings: &mut Settings, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
            match name {
                $(stringify!($name) => settings.$field = Some($read(name, value)?),)*
                _ => return Ok(false),
            }
            Ok(true)
        }

        /// Writes all settings into a dict; one that is not set is None.
        pub fn write(dict: &Bound<'_, PyDict>, settings: &Settings) -> PyResult<()> {
            $(dict.set_item(stringify!($name), settings.$field.map($write))?;)*
            Ok(())
        }

        /// Returns the value that a setting's JSON stands for.
        pub fn value<'py>(py: Python<'py>, name: &str, json: &str) -> PyResult<Bound<'py, PyAny>> {
            match name {
                $(stringify!($name) => {
                    let settings = Settings { $field: serde_json::from_str(json).ok(), ..Settings::default() };
                    settings.$field.map($write).into_bound_py_any(py)
                })*
                _ => Ok(py.None().into_bound(py)),
            }
        }

        macro_rules! setting_options {
            () => { concat!($(", ", stringify!($name), "=None"),*) };
        }
    };
}

settings! {
    // name, field, from Python, to Python
    lease, lease_ms, lease_ms, seconds;
    max_retries, max_retries, count, same;
    retry, retry, policy, |policy| Retry { policy };
    max_bytes, max_bytes, size, same;
    max_pending, max_pending, |name, value| positive(name, value).map(i64::from), same;
    rate, rate, rate, |rate| Rate { rate };
    group_rate, group_rate, rate, |rate| Rate { rate };
    keep_for, keep_for_ms, duration_ms, seconds;
    keep_last, keep_last, |name, value| count(name, value).map(i64::from), same;
    keep_failed_for, keep_failed_for_ms, duration_ms, seconds;
    keep_content, keep_content, flag, same;
    group_limit, group_limit, positive, same;
}

fn size(name: &str, value: Given) -> PyResult<usize> {
    Ok(positive(name, value)? as usize)
}

fn policy(name: &str, value: Given) -> PyResult<rules::retry::Retry> {
    Ok(expect::<Retry>(name, "a Retry", value)?.policy)
}

fn rate(name: &str, value: Given) -> PyResult<rules::rate::Rate> {
    Ok(expect::<Rate>(name, "a Rate", value)?.rate)
}

fn flag(name: &str, value: Given) -> PyResult<bool> {
    value.cast::<PyBool>().map(|flag| flag.is_true()).map_err(|_| wrong(name, "a bool", value))
}

fn expect<'py, T: FromPyObjectOwned<'py>>(name: &str, what: &str, value: &Bound<'py, PyAny>) -> PyResult<T> {
    value.extract().map_err(|_| wrong(name, what, value))
}

fn wrong(name: &str, what: &str, value: Given) -> PyErr {
    PyTypeError::new_err(format!("{name} must be {what}, not {}", type_name(value)))
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

fn same<T>(value: T) -> T {
    value
}
