//! `Next`: what a handler lets its item go on with.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PyGenericAlias, PyType};

use super::convert::{content, count, duration_ms, headers, integer, text};
use super::destination::{Destination, plain};
use super::new_item::{Need, NewItem, group, if_failed, needs, new_needs, shortened, when};
use super::options::given;
use super::queue::Queue;
use crate::model::{NextStage, Stored};
use crate::queue;
use crate::rules::settings::MOST_BYTES;

options! {
    /// What may change from one stage to the next, besides the queue and the content.
    NextOptions, next_options! {
        delay = "None",
        run_at = "None",
        priority = "...",
        group = "...",
        headers = "...",
        project = "...",
        max_retries = "...",
        expires = "...",
        after = "()",
        if_failed = "'cancel'",
    }
}

impl NextOptions<'_> {
    fn stage(&self) -> PyResult<NextStage> {
        Ok(NextStage {
            when: when(given(&self.delay), given(&self.run_at))?,
            priority: given(&self.priority).map(|priority| integer("priority", priority)).transpose()?,
            group: changed(&self.group, |value| group(Some(value)).map(Option::unwrap_or_default))?,
            headers: changed(&self.headers, |value| headers(Some(value), MOST_BYTES).map(Option::unwrap_or_default))?,
            project: changed(&self.project, |value| text("project", Some(value)).map(Option::unwrap_or_default))?,
            max_retries: changed(&self.max_retries, |value| count("max_retries", value))?,
            expires: changed(&self.expires, |value| duration_ms("expires", value))?,
            if_failed: if_failed(given(&self.if_failed))?,
            ..NextStage::default()
        })
    }
}

/// Reads what an option changes: `None` if it was left out, `Some(None)` if None was given, which removes it.
fn changed<'py, T>(
    option: &Option<Bound<'py, PyAny>>,
    read: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Option<Option<T>>> {
    match option.as_ref().filter(|value| !value.is(PyEllipsis::get(value.py()))) {
        None => Ok(None),
        Some(value) if value.is_none() => Ok(Some(None)),
        Some(value) => Ok(Some(Some(read(value)?))),
    }
}

/// An argument for which None is a value like any other; `None` here if it was left out.
struct Given<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(Some(value.to_owned())))
    }
}

#[doc = concat!("Next(content=..., *, queue=None", next_options!(), ")\n--\n\n", words!(Next))]
#[pyclass(frozen, module = "membox_queue")]
pub struct Next {
    /// The content as it was given; `None` if it stays.
    content: Option<Py<PyAny>>,
    destination: Option<Destination>,
    after: Vec<Need>,
    stage: NextStage,
    /// The options as they were given.
    options: Py<PyDict>,
}

#[pymethods]
impl Next {
    #[new]
    #[pyo3(signature = (content = Given(None), *, queue = None, **options), text_signature = None)]
    fn new(
        py: Python<'_>,
        content: Given<'_>,
        queue: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let shown = PyDict::new(py);
        queue.map(|queue| shown.set_item("queue", queue)).transpose()?;
        options.map(|options| shown.update(options.as_mapping())).transpose()?;
        let options = NextOptions::read("Next.__new__", options)?;
        let mut stage = options.stage()?;
        let after = needs(given(&options.after))?;
        let destination = queue.map(Destination::read).transpose()?;
        stage.queue = destination.as_ref().map(|destination| destination.name.clone());
        let content = content.0.filter(|content| !content.is(PyEllipsis::get(py)));
        Ok(Self { content: content.map(Bound::unbind), destination, after, stage, options: shown.unbind() })
    }

    #[doc = words!(Next._encoded)]
    #[pyo3(signature = (queue, shape, /))]
    fn _encoded(&self, py: Python<'_>, queue: &Bound<'_, Queue>, shape: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let stage = self.stage(py, &queue.get().core, shape)?;
        Ok(Self { content: None, destination: None, after: Vec::new(), stage, options: self.options.clone_ref(py) })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let content = self.content.as_ref().map(|content| Ok::<_, PyErr>(content.bind(py).repr()?.to_string()));
        let mut parts = content.transpose()?.into_iter().collect::<Vec<_>>();
        for (name, value) in self.options.bind(py) {
            parts.push(format!("{name}={}", value.repr()?));
        }
        let parts = parts.iter().map(|part| shortened(part, |text| Ok(text.into()))).collect::<PyResult<Vec<_>>>()?;
        Ok(format!("<Next {}>", parts.join(", ")))
    }

    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, kind: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyGenericAlias::new(cls.py(), cls.as_any(), kind)?.into_any())
    }
}

impl Next {
    /// The stage, with its content converted by the type of the queue that it goes into. `shape` is the type of the
    /// caller's own queue.
    pub fn stage(&self, py: Python<'_>, own: &queue::Queue, shape: Option<&Bound<'_, PyAny>>) -> PyResult<NextStage> {
        let child = |content: &Bound<'_, PyAny>, new: Option<&NewItem>| {
            plain(content, own, shape, new.and_then(NewItem::destination))
        };
        let after = new_needs(py, &self.after, MOST_BYTES, &child)?;
        let after = if self.after.is_empty() { self.stage.after.clone() } else { after };
        let stage = NextStage { after, ..self.stage.clone() };
        let Some(given) = self.content.as_ref().map(|content| content.bind(py)) else { return Ok(stage) };
        let shaped = plain(given, own, shape, self.destination.as_ref())?;
        let content: Stored = content(shaped.as_ref().map_or(given, |shaped| shaped.bind(py)), MOST_BYTES)?;
        Ok(NextStage { content: Some(content), ..stage })
    }

    /// The stage of one that was encoded before.
    pub fn encoded_stage(&self) -> PyResult<NextStage> {
        match self.content {
            None if self.after.is_empty() => Ok(self.stage.clone()),
            _ => Err(PyValueError::new_err("the content of Next was not converted")),
        }
    }
}
