//! Conversion of values between Python and Rust: JSON both ways, durations, times, numbers.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::model::{Content, LATEST_MS, Stored, millis};
use crate::rules::lease::DEFAULT_TTL_MS;

/// Deeper values are refused, because every JSON parser must be able to read what is stored.
const DEEPEST: usize = 100;

/// Converts the content given to `enqueue`. Text and bytes are stored as such, everything else as JSON.
pub fn content(value: &Bound<'_, PyAny>, limit: usize) -> PyResult<Stored> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        return Ok(Stored::text(utf8("content", text)?));
    }
    if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        return Ok(Stored::bytes(bytes.as_bytes()));
    }
    Ok(Stored::json(json("content", value, limit)?))
}

/// Returns JSON text that reads back as an equal value. The error names the place of a value that would not.
pub fn json(what: &str, value: &Bound<'_, PyAny>, limit: usize) -> PyResult<String> {
    let mut writer = JsonWriter { what, limit, way: Vec::new(), text: Vec::new() };
    writer.value(value)?;
    Ok(String::from_utf8(writer.text).expect("JSON is written from valid strings only"))
}

pub fn headers(value: Option<&Bound<'_, PyAny>>, limit: usize) -> PyResult<Option<String>> {
    let Some(value) = value else { return Ok(None) };
    if !value.is_instance_of::<PyDict>() {
        return Err(PyTypeError::new_err(format!("headers must be a dict, not {}", type_name(value))));
    }
    json("headers", value, limit).map(Some)
}

/// Writes JSON and checks it in one pass. The limit applies while writing: a small value that refers to itself many
/// times can expand to an enormous text.
struct JsonWriter<'a> {
    what: &'a str,
    limit: usize,
    way: Vec<String>,
    text: Vec<u8>,
}

impl JsonWriter<'_> {
    fn value(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.text.len() > self.limit {
            return Err(Error::TooLarge { size: self.text.len(), limit: self.limit }.into());
        }
        if value.is_none() {
            return self.put(&());
        }
        if let Ok(flag) = value.cast_exact::<PyBool>() {
            return self.put(&flag.is_true());
        }
        if let Ok(text) = value.cast_exact::<PyString>() {
            return match text.to_str() {
                Ok(text) => self.put(text),
                Err(_) => Err(lone_surrogate(&self.place())),
            };
        }
        if let Ok(number) = value.cast_exact::<PyInt>() {
            return self.integer(number);
        }
        if let Ok(number) = value.cast_exact::<PyFloat>() {
            if !number.value().is_finite() {
                return self.bad_value(&format!("is {}, which JSON cannot carry", number.value()));
            }
            return self.put(&number.value());
        }
        if self.way.len() >= DEEPEST {
            return self.bad_value(&format!("is nested more than {DEEPEST} levels deep, or contains itself"));
        }
        if let Ok(list) = value.cast_exact::<PyList>() {
            return self.elements(list.iter());
        }
        if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            return self.elements(tuple.iter());
        }
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            return self.members(dict);
        }
        let name = type_name(value);
        let article = if name.starts_with(['A', 'E', 'I', 'O', 'a', 'e', 'i', 'o']) { "an" } else { "a" };
        self.bad_type(&format!("is {article} {name}, which {}", advice(value)))
    }

    fn put<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> PyResult<()> {
        serde_json::to_writer(&mut self.text, value).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn integer(&mut self, number: &Bound<'_, PyInt>) -> PyResult<()> {
        if let Ok(number) = number.extract::<i64>() {
            return self.put(&number);
        }
        match number.extract::<u64>() {
            Ok(number) => self.put(&number),
            Err(_) => {
                self.bad_value("is an integer beyond 64 bits, which JSON readers do not keep exactly; use a string")
            }
        }
    }

    fn elements<'py>(&mut self, elements: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<()> {
        self.text.push(b'[');
        for (index, element) in elements.enumerate() {
            if index > 0 {
                self.text.push(b',');
            }
            self.way.push(format!("[{index}]"));
            self.value(&element)?;
            self.way.pop();
        }
        self.text.push(b']');
        Ok(())
    }

    fn members(&mut self, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        self.text.push(b'{');
        for (index, (key, member)) in dict.iter().enumerate() {
            let Ok(name) = key.cast_exact::<PyString>() else {
                return self.bad_type(&format!("has a key of type {}; JSON keys are strings", type_name(&key)));
            };
            let Ok(name) = name.to_str() else { return Err(lone_surrogate(&format!("a key of {}", self.place()))) };
            if index > 0 {
                self.text.push(b',');
            }
            self.put(name)?;
            self.text.push(b':');
            self.way.push(format!("[{name:?}]"));
            self.value(&member)?;
            self.way.pop();
        }
        self.text.push(b'}');
        Ok(())
    }

    /// The path to the current value, truncated for a value that contains itself.
    fn place(&self) -> String {
        let shown = self.way.len().min(8);
        let rest = if self.way.len() > shown { "…" } else { "" };
        format!("{}{}{rest}", self.what, self.way[..shown].concat())
    }

    fn bad_value<T>(&self, text: &str) -> PyResult<T> {
        Err(PyValueError::new_err(format!("{} {text}", self.place())))
    }

    fn bad_type<T>(&self, text: &str) -> PyResult<T> {
        Err(PyTypeError::new_err(format!("{} {text}", self.place())))
    }
}

fn advice(value: &Bound<'_, PyAny>) -> &'static str {
    if value.is_instance_of::<PyBytes>() {
        "JSON cannot carry; enqueue bytes as the whole content, or encode them as text"
    } else if value.is_instance_of::<PyDict>() || value.is_instance_of::<PyString>() || value.is_instance_of::<PyInt>()
    {
        "would not come back as the same type; convert it to the plain dict, str or int it is based on"
    } else if type_name(value) == "NewItem" {
        "is an element of enqueue_many; give enqueue its content and its options"
    } else {
        "JSON cannot carry; convert it to str, bytes, int, float, bool, None, list or dict"
    }
}

pub fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().qualname().map_or_else(|_| "value of unknown type".into(), |name| name.to_string())
}

/// Returns the text of a string; a ValueError if it has lone surrogates.
pub fn utf8(what: &str, text: &Bound<'_, PyString>) -> PyResult<String> {
    match text.to_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(lone_surrogate(what)),
    }
}

fn lone_surrogate(what: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{what} contains a lone surrogate, which is not valid Unicode; clean it with text.encode(errors='replace').decode()"
    ))
}

/// Returns the text of a string, with invalid Unicode escaped.
pub fn utf8_or_escaped(text: &Bound<'_, PyString>) -> PyResult<String> {
    match text.to_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => {
            let escaped = text.call_method1("encode", ("utf-8", "backslashreplace"))?;
            Ok(String::from_utf8_lossy(escaped.cast::<PyBytes>()?.as_bytes()).into_owned())
        }
    }
}

/// Converts stored content to what was enqueued.
pub fn content_to_python<'py>(py: Python<'py>, content: &Content) -> PyResult<Bound<'py, PyAny>> {
    match content {
        Content::Text(text) => Ok(PyString::new(py, text).into_any()),
        Content::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
        Content::Json(value) => to_python(py, value),
    }
}

/// Converts a JSON value to Python.
pub fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    pythonize::pythonize(py, value).map_err(PyErr::from)
}

pub fn object_to_python<'py>(py: Python<'py>, members: &Map<String, Value>) -> PyResult<Bound<'py, PyAny>> {
    pythonize::pythonize(py, members).map_err(PyErr::from)
}

/// Returns content that has not been enqueued yet as it was given.
pub fn stored_to_python<'py>(py: Python<'py>, stored: &Stored) -> PyResult<Bound<'py, PyAny>> {
    match Content::from_stored(stored.kind, stored.text.clone()) {
        Ok(Content::Bytes(bytes)) => Ok(PyBytes::new(py, &bytes).into_any()),
        Ok(Content::Json(value)) => to_python(py, &value),
        Ok(Content::Text(text)) | Err((_, text)) => Ok(PyString::new(py, &text).into_any()),
    }
}

/// Reads seconds from a number or a timedelta.
pub fn seconds(what: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    if value.is_instance_of::<PyDelta>() {
        return value.call_method0("total_seconds")?.extract();
    }
    let wrong = || PyTypeError::new_err(format!("{what} must be seconds or a timedelta, not {}", type_name(value)));
    if value.is_instance_of::<PyString>() {
        return Err(wrong());
    }
    value.extract::<f64>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            PyValueError::new_err(format!("{what} is too large"))
        } else {
            wrong()
        }
    })
}

pub fn duration_ms(what: &str, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    Ok(millis(what, seconds(what, value)?)?)
}

/// Reads how long to wait; `inf` means without limit.
pub fn patience(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let limit = seconds(what, value)?;
    if limit == f64::INFINITY {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(limit)
        .map_err(|_| PyValueError::new_err(format!("{what} must be a number of seconds, zero or more, not {limit}")))
}

/// Reads how long a worker lease lasts without a heartbeat.
pub fn ttl_ms(ttl: Option<&Bound<'_, PyAny>>) -> PyResult<i64> {
    ttl.map_or(Ok(DEFAULT_TTL_MS), |ttl| lease_ms("ttl", ttl))
}

/// Reads the duration of a lease, which must be positive.
pub fn lease_ms(what: &str, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    match duration_ms(what, value)? {
        0 => Err(PyValueError::new_err(format!("{what} must be longer than a millisecond"))),
        ms => Ok(ms),
    }
}

/// Converts an aware datetime to milliseconds since 1970.
pub fn instant_ms(what: &str, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    if !value.is_instance_of::<PyDateTime>() {
        return Err(PyTypeError::new_err(format!("{what} must be a datetime, not {}", type_name(value))));
    }
    if value.call_method0("utcoffset")?.is_none() {
        return Err(PyValueError::new_err(format!(
            "{what} must be an aware datetime; give it a tzinfo, e.g. timezone.utc"
        )));
    }
    let seconds: f64 = value.call_method0("timestamp")?.extract()?;
    Ok(((seconds * 1000.0).round() as i64).clamp(0, LATEST_MS))
}

/// Converts milliseconds since 1970 to an aware datetime in UTC.
pub fn datetime<'py>(py: Python<'py>, ms: Option<i64>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(ms) = ms else { return Ok(None) };
    let moment = jiff::Timestamp::from_millisecond(ms.clamp(0, LATEST_MS)).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    Ok(Some(moment.into_pyobject(py)?.into_any()))
}

pub fn integer(what: &str, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
        let given = type_name(value);
        let advice = if given == "Item" { "; pass its id" } else { "" };
        return Err(PyTypeError::new_err(format!("{what} must be an int, not {given}{advice}")));
    }
    value.extract().map_err(|_| PyValueError::new_err(format!("{what} does not fit 64 bits")))
}

/// Reads a count: zero or more, and small enough for every engine.
pub fn count(what: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    u32::try_from(integer(what, value)?)
        .map_err(|_| PyValueError::new_err(format!("{what} must be between 0 and {}", u32::MAX)))
}

/// Reads a count of at least one.
pub fn positive(what: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    match integer(what, value)? {
        ..1 => Err(PyValueError::new_err(format!("{what} must be at least 1"))),
        _ => count(what, value),
    }
}

/// Reads a path given as text or as a path object.
pub fn path_text(what: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    let Some(value) = value else { return Ok(None) };
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(utf8(what, text)?));
    }
    let path: PathBuf = value
        .extract()
        .map_err(|_| PyTypeError::new_err(format!("{what} must be str or a path, not {}", type_name(value))))?;
    path.into_os_string()
        .into_string()
        .map(Some)
        .map_err(|_| PyValueError::new_err(format!("{what} is not valid Unicode")))
}

/// Reads a date given as text or as a date.
pub fn date_text(what: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    let Some(value) = value else { return Ok(None) };
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(utf8(what, text)?));
    }
    if value.is_instance_of::<PyDate>() {
        return Ok(Some(value.call_method0("isoformat")?.extract()?));
    }
    Err(PyTypeError::new_err(format!("{what} must be str or a date, not {}", type_name(value))))
}

pub fn text(what: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    let Some(value) = value else { return Ok(None) };
    match value.cast::<PyString>() {
        Ok(text) => Ok(Some(utf8(what, text)?)),
        Err(_) => Err(PyTypeError::new_err(format!("{what} must be str, not {}", type_name(value)))),
    }
}
