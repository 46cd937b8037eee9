//! `Item` and `NewItem`: frozen views of the core's nouns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyGenericAlias, PyString, PyType};

use super::convert::{content, count, date_text, datetime, duration_ms, headers, instant_ms, integer};
use super::convert::{object_to_python, path_text, text, to_python, type_name};
use super::ending;
use super::error::named;
use super::interpreter_exit::Native;
use super::warnings;
use crate::error::Error;
use crate::heartbeat::Beat;
use crate::model::LATEST_MS;
use crate::model::{self, Content, Key, KeyName, OnDuplicate, Status, Stored, When, read_json};
use crate::queue::{self, Held};
use crate::rules::outcome::{Ending, Settled};
use crate::rules::settings::MOST_BYTES;
use crate::sync::Mutex;

/// An item as it was when it was claimed or read.
#[pyclass(frozen, module = "membox_queue")]
pub struct Item {
    source: Source,
    content: PyOnceLock<Py<PyAny>>,
    headers: PyOnceLock<Py<PyAny>>,
    result: PyOnceLock<Py<PyAny>>,
    /// Whether the loop that handles it was asked to stop.
    stopping: Arc<AtomicBool>,
}

enum Source {
    Claimed { held: Arc<Held>, queue: Arc<queue::Queue>, beat: Mutex<Option<Beat>> },
    Read(Box<model::Item>),
}

impl Item {
    fn from_source(source: Source) -> Self {
        let [content, headers, result] = [const { PyOnceLock::new() }; 3];
        Self { source, content, headers, result, stopping: Arc::default() }
    }

    pub fn claimed(held: Arc<Held>, queue: Arc<queue::Queue>) -> Self {
        Self::from_source(Source::Claimed { held, queue, beat: Mutex::default() })
    }

    /// A claimed item that tells its handler when the loop was asked to stop.
    pub fn in_loop(held: Arc<Held>, queue: Arc<queue::Queue>, stopping: Arc<AtomicBool>) -> Self {
        Self { stopping, ..Self::claimed(held, queue) }
    }

    pub fn read(item: model::Item) -> Self {
        Self::from_source(Source::Read(Box::new(item)))
    }

    fn item(&self) -> &model::Item {
        match &self.source {
            Source::Claimed { held, .. } => &held.item,
            Source::Read(item) => item,
        }
    }

    /// Gives the content the shape of its queue, before anybody has read it; an error leaves it as it was stored.
    pub fn fit(&self, py: Python<'_>, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        let made = shape.call_method1("decode", (self.raw_content(py)?,))?;
        // Whoever has read it meanwhile has read it as it was stored, and so do all others.
        let _ = self.content.set(py, made.unbind());
        self.item().content.store(None);
        Ok(())
    }

    /// The content as Python has it, or will have it.
    fn raw_content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.item().content.load_full().as_deref() {
            Some(Content::Text(text)) => Ok(PyString::new(py, text).into_any()),
            Some(Content::Bytes(bytes)) => Ok(PyBytes::new(py, bytes).into_any()),
            Some(Content::Json(value)) => to_python(py, value),
            // It is forgotten only once Python has it.
            None => Ok(self.content.get(py).map_or_else(|| py.None(), |made| made.clone_ref(py)).into_bound(py)),
        }
    }

    /// The claim, for verbs that need one.
    pub fn held(&self) -> PyResult<&Arc<Held>> {
        match &self.source {
            Source::Claimed { held, .. } => Ok(held),
            Source::Read(item) => Err(PyValueError::new_err(format!(
                "item {} was only read, not claimed; pass an item that claim() returned",
                item.id
            ))),
        }
    }
}

/// An item as an argument of a verb that needs its claim; an id proves none.
pub fn claimed<'a>(item: &'a Bound<'_, PyAny>) -> PyResult<&'a Arc<Held>> {
    let item = item.cast::<Item>().map_err(|_| {
        PyTypeError::new_err(format!(
            "item must be an Item that claim() returned, which holds the receipt, not {}",
            type_name(item)
        ))
    })?;
    item.get().held()
}

#[pymethods]
impl Item {
    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, kind: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyGenericAlias::new(cls.py(), cls.as_any(), kind)?.into_any())
    }

    #[pyo3(signature = (shape, /))]
    fn _fit(&self, py: Python<'_>, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        self.fit(py, shape)
    }

    #[getter]
    fn id(&self) -> i64 {
        self.item().id
    }

    #[getter]
    fn queue(&self) -> &str {
        &self.item().queue
    }

    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = self.content.get_or_try_init(py, || Ok::<_, PyErr>(self.raw_content(py)?.unbind()))?;
        self.item().content.store(None);
        Ok(made.bind(py).clone())
    }

    #[getter]
    fn project(&self) -> Option<&str> {
        self.item().project.as_deref()
    }

    #[getter]
    fn source_path(&self) -> Option<&str> {
        self.item().source_path.as_deref()
    }

    #[getter]
    fn doc_date(&self) -> Option<&str> {
        self.item().doc_date.as_deref()
    }

    #[getter]
    fn status(&self) -> &str {
        &self.item().status
    }

    #[getter]
    fn retries(&self) -> u32 {
        self.item().retries
    }

    #[getter]
    fn error(&self) -> Option<&str> {
        self.item().error.as_deref()
    }

    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = self.result.get_or_try_init(py, || {
            let Some(stored) = &self.item().result else { return Ok::<_, PyErr>(py.None()) };
            if let Ok(value) = read_json(stored) {
                return Ok(to_python(py, &value)?.unbind());
            }
            // Another program wrote it. Python keeps integers of any length; else its text is worth more than nothing.
            let text = PyString::new(py, stored).into_any();
            if model::integer_beyond_64_bits(stored).is_none() {
                return Ok(text.unbind());
            }
            Ok(py.import("json")?.call_method1("loads", (stored,)).unwrap_or(text).unbind())
        })?;
        Ok(made.bind(py).clone())
    }

    #[getter]
    fn priority(&self) -> i64 {
        self.item().priority
    }

    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = self.headers.get_or_try_init(py, || {
            let none = serde_json::Map::new();
            let headers = self.item().headers.as_ref().unwrap_or(&none);
            Ok::<_, PyErr>(object_to_python(py, headers)?.unbind())
        })?;
        Ok(made.bind(py).clone())
    }

    #[getter]
    fn group(&self) -> Option<&str> {
        self.item().group.as_deref()
    }

    #[getter]
    fn key(&self) -> Option<&str> {
        self.item().key.as_deref()
    }

    #[getter]
    fn attempt(&self) -> i64 {
        self.item().attempt
    }

    #[getter]
    fn worker(&self) -> Option<&str> {
        self.item().worker.as_deref()
    }

    #[getter]
    fn max_retries(&self) -> Option<u32> {
        self.item().max_retries
    }

    #[getter]
    fn enqueued_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, Some(self.item().enqueued_ms().unwrap_or(0)))
    }

    #[getter]
    fn started_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.item().started_ms())
    }

    #[getter]
    fn finished_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.item().finished_ms())
    }

    #[getter]
    fn run_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.item().run_at)
    }

    #[getter]
    fn lease_until<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.item().lease_until)
    }

    #[getter]
    fn lost(&self, py: Python<'_>) -> PyResult<bool> {
        let Source::Claimed { held, queue, .. } = &self.source else { return Ok(false) };
        if held.is_known_lost() || held.is_settled() || queue.is_closed() {
            return Ok(held.is_known_lost());
        }
        Ok(py.native(|| queue.is_lost(held))?)
    }

    #[getter]
    fn cancelled(&self, py: Python<'_>) -> PyResult<bool> {
        match &self.source {
            Source::Read(item) => Ok(item.status == Status::Cancelled.as_str()),
            Source::Claimed { queue, .. } if queue.is_closed() => Ok(false),
            Source::Claimed { held, queue, .. } => Ok(py.native(|| queue.is_cancelled(held))?),
        }
    }

    #[getter]
    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    #[getter]
    fn _known_lost(&self) -> bool {
        matches!(&self.source, Source::Claimed { held, .. } if held.is_known_lost())
    }

    #[getter]
    fn _settled(&self) -> bool {
        matches!(&self.source, Source::Claimed { held, .. } if held.is_settled())
    }

    #[getter]
    fn progress(&self) -> Option<f64> {
        self.item().progress
    }

    #[getter]
    fn progress_note(&self) -> Option<&str> {
        self.item().progress_note.as_deref()
    }

    #[pyo3(signature = (fraction, note = None))]
    fn set_progress(
        &self,
        py: Python<'_>,
        fraction: &Bound<'_, PyAny>,
        note: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let held = self.held()?;
        let number: f64 = fraction.extract().map_err(|_| PyTypeError::new_err("fraction must be a number"))?;
        if !(0.0..=1.0).contains(&number) {
            return Err(PyValueError::new_err(format!("fraction must be between 0 and 1, not {number}")));
        }
        let note = text("note", note)?;
        let Source::Claimed { queue, .. } = &self.source else { return Ok(false) };
        Ok(py.native(|| queue.set_progress(held, number, note))?)
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.cancelled(py)? {
            return Err(self.called_off(py));
        }
        if self.lost(py)? { Err(self.stale(py)) } else { Ok(()) }
    }

    fn __enter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().held()?;
        if let Source::Claimed { held, queue, beat } = &slf.get().source {
            slf.py().native(|| -> crate::Result<()> {
                let started = queue.keep_alive(held, None)?;
                *beat.lock() = Some(started);
                Ok(())
            })?;
        }
        Ok(slf)
    }

    #[pyo3(signature = (kind, exception, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = (kind, traceback);
        self.leave(py, exception, None)
    }

    #[pyo3(signature = (exception, is_cancelled, /))]
    fn _leave(&self, py: Python<'_>, exception: &Bound<'_, PyAny>, is_cancelled: bool) -> PyResult<bool> {
        self.leave(py, exception, Some(is_cancelled))
    }

    fn __repr__(&self) -> String {
        let item = self.item();
        format!("<Item {} of queue '{}', {}, attempt {}>", item.id, item.queue, item.status, item.attempt)
    }
}

impl Item {
    /// Ends the claim when its block was left, by an exception or without one.
    fn leave(&self, py: Python<'_>, exception: &Bound<'_, PyAny>, is_cancelled: Option<bool>) -> PyResult<bool> {
        let Source::Claimed { held, queue, beat } = &self.source else { return Ok(false) };
        let ending = if exception.is_none() {
            Some(Ending::Done { result: None })
        } else {
            ending::of_raised(exception, ending::in_block(exception, is_cancelled)?)?
        };
        let settled = py.native(|| {
            *beat.lock() = None;
            let Some(ending) = ending else { return Ok(Settled::Released) };
            // The body may have recorded the end itself, with a result or a reason of its own.
            held.settled().map_or_else(|| queue.finish(held, ending), Ok)
        });
        match settled {
            Ok(Settled::Lost) if exception.is_none() => Err(self.stale(py)),
            Ok(Settled::Cancelled) if exception.is_none() => Err(self.called_off(py)),
            Ok(_) => Ok(false),
            Err(error) if exception.is_none() => Err(error.into()),
            // The body's own exception matters more than that its end could not be recorded.
            Err(error) => {
                let text = format!("membox_queue could not record this: {error}");
                if exception.call_method1("add_note", (&text,)).is_err() {
                    warnings::warn(&text);
                }
                Ok(false)
            }
        }
    }

    fn stale(&self, py: Python<'_>) -> PyErr {
        match &self.source {
            Source::Claimed { held, queue, .. } => py.native(|| queue.why_stale(held)).unwrap_or_else(|error| error),
            Source::Read(item) => Error::Stale { id: item.id, why: "it was only read".into() },
        }
        .into()
    }

    fn called_off(&self, py: Python<'_>) -> PyErr {
        let text = format!("item {} was cancelled while it was being worked on", self.item().id);
        named(py, "StaleClaimError", text)
    }
}

/// An item to enqueue, with its options; for `enqueue_many`.
#[pyclass(frozen, module = "membox_queue")]
pub struct NewItem {
    #[pyo3(get)]
    content: Py<PyAny>,
    item: model::NewItem,
    /// Only a queue that knows its type may be able to store the content.
    is_foreign: bool,
}

#[pymethods]
impl NewItem {
    #[new]
    #[pyo3(signature = (content, *, project = None, source_path = None, doc_date = None, priority = None, delay = None,
                        run_at = None, max_retries = None, headers = None, group = None, key = None, key_ttl = None,
                        on_duplicate = None),
           text_signature = "(content, *, project=None, source_path=None, doc_date=None, priority=0, delay=None, run_at=None, max_retries=None, headers=None, group=None, key=None, key_ttl=None, on_duplicate='return')")]
    #[allow(clippy::too_many_arguments)]
    fn new(
        content: &Bound<'_, PyAny>,
        project: Option<&Bound<'_, PyAny>>,
        source_path: Option<&Bound<'_, PyAny>>,
        doc_date: Option<&Bound<'_, PyAny>>,
        priority: Option<&Bound<'_, PyAny>>,
        delay: Option<&Bound<'_, PyAny>>,
        run_at: Option<&Bound<'_, PyAny>>,
        max_retries: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        group: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        key_ttl: Option<&Bound<'_, PyAny>>,
        on_duplicate: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let unique = Unique { key, key_ttl, on_duplicate };
        let options =
            Details { project, source_path, doc_date, priority, delay, run_at, max_retries, headers, group, unique };
        let stored = self::content(content, MOST_BYTES).ok();
        let is_foreign = stored.is_none();
        let item = options.around(stored.unwrap_or_else(|| Stored::text(String::new())), MOST_BYTES)?;
        Ok(Self { content: content.clone().unbind(), item, is_foreign })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        if self.is_foreign {
            return Ok(format!("<NewItem of {}>", self.content.bind(py).get_type().qualname()?));
        }
        Ok(format!("<NewItem of {}>", self.item.content.kind))
    }

    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, kind: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyGenericAlias::new(cls.py(), cls.as_any(), kind)?.into_any())
    }
}

/// What can be said about an item besides its content, as Python gave it.
pub struct Details<'a, 'py> {
    pub project: Option<&'a Bound<'py, PyAny>>,
    pub source_path: Option<&'a Bound<'py, PyAny>>,
    pub doc_date: Option<&'a Bound<'py, PyAny>>,
    pub priority: Option<&'a Bound<'py, PyAny>>,
    pub delay: Option<&'a Bound<'py, PyAny>>,
    pub run_at: Option<&'a Bound<'py, PyAny>>,
    pub max_retries: Option<&'a Bound<'py, PyAny>>,
    pub headers: Option<&'a Bound<'py, PyAny>>,
    pub group: Option<&'a Bound<'py, PyAny>>,
    pub unique: Unique<'a, 'py>,
}

/// What makes an item the same as another.
pub struct Unique<'a, 'py> {
    pub key: Option<&'a Bound<'py, PyAny>>,
    pub key_ttl: Option<&'a Bound<'py, PyAny>>,
    pub on_duplicate: Option<&'a Bound<'py, PyAny>>,
}

impl Unique<'_, '_> {
    fn read(&self) -> PyResult<Option<Key>> {
        let on_duplicate = match text("on_duplicate", self.on_duplicate)?.as_deref() {
            None | Some("return") => OnDuplicate::Return,
            Some("raise") => OnDuplicate::Raise,
            Some("replace") => OnDuplicate::Replace,
            Some(other) => {
                let said = format!("on_duplicate must be 'return', 'raise' or 'replace', not {other:?}");
                return Err(PyValueError::new_err(said));
            }
        };
        let ttl_ms = self.key_ttl.map(reserved_ms).transpose()?;
        let Some(key) = self.key else {
            if self.key_ttl.is_some() || on_duplicate != OnDuplicate::Return {
                return Err(PyValueError::new_err("key_ttl and on_duplicate say something about a key; give one"));
            }
            return Ok(None);
        };
        let name = if key.is_instance_of::<ByContent>() {
            KeyName::ByContent
        } else {
            match text("key", Some(key))?.unwrap_or_default() {
                empty if empty.is_empty() => return Err(PyValueError::new_err("key must not be empty")),
                name => KeyName::Given(name),
            }
        };
        Ok(Some(Key { name, ttl_ms, on_duplicate }))
    }
}

/// How long a key stays reserved: for ever, if that is said.
fn reserved_ms(ttl: &Bound<'_, PyAny>) -> PyResult<i64> {
    if ttl.extract::<f64>().is_ok_and(|seconds| seconds == f64::INFINITY) {
        return Ok(LATEST_MS);
    }
    duration_ms("key_ttl", ttl)
}

/// The type of `BY_CONTENT`.
#[pyclass(frozen, module = "membox_queue")]
pub struct ByContent;

#[pymethods]
impl ByContent {
    fn __repr__(&self) -> &'static str {
        "BY_CONTENT"
    }

    fn __reduce__(&self) -> &'static str {
        "BY_CONTENT"
    }
}

impl Details<'_, '_> {
    pub fn read(&self, given: &Bound<'_, PyAny>, limit: usize) -> PyResult<model::NewItem> {
        self.around(content(given, limit)?, limit)
    }

    fn around(&self, content: Stored, limit: usize) -> PyResult<model::NewItem> {
        let when = when(self.delay, self.run_at)?;
        Ok(model::NewItem {
            content,
            project: text("project", self.project)?,
            source_path: path_text("source_path", self.source_path)?,
            doc_date: date_text("doc_date", self.doc_date)?,
            priority: self.priority.map_or(Ok(0), |priority| integer("priority", priority))?,
            when,
            max_retries: self.max_retries.map(|max| count("max_retries", max)).transpose()?,
            headers: headers(self.headers, limit)?,
            group: group(self.group)?,
            key: self.unique.read()?,
        })
    }
}

/// When an item is to fall due.
pub fn when(delay: Option<&Bound<'_, PyAny>>, run_at: Option<&Bound<'_, PyAny>>) -> PyResult<When> {
    match (delay, run_at) {
        (None, None) => Ok(When::Now),
        (Some(delay), None) => Ok(When::After(duration_ms("delay", delay)?)),
        (None, Some(at)) => Ok(When::At(instant_ms("run_at", at)?)),
        (Some(_), Some(_)) => Err(PyValueError::new_err("give delay or run_at, not both")),
    }
}

/// The name of a group.
pub fn group(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    match text("group", value)? {
        Some(name) if name.is_empty() => Err(PyValueError::new_err("group must not be empty; leave it out for none")),
        name => Ok(name),
    }
}

/// An element of `enqueue_many`: a NewItem, or plain content; both in the shape of the queue, if it has one.
pub fn new_item(
    element: &Bound<'_, PyAny>,
    limit: usize,
    plain: impl Fn(&Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>>,
) -> PyResult<model::NewItem> {
    let py = element.py();
    let new = element.cast::<NewItem>().ok();
    let given = new.map_or_else(|| element.clone(), |new| new.get().content.bind(py).clone());
    let shaped = plain(&given)?;
    match new {
        Some(new) if shaped.is_none() && !new.get().is_foreign => Ok(new.get().item.clone()),
        Some(new) => {
            let content = content(shaped.as_ref().map_or(&given, |shaped| shaped.bind(py)), limit)?;
            Ok(model::NewItem { content, ..new.get().item.clone() })
        }
        None => Ok(model::NewItem::new(content(shaped.as_ref().map_or(&given, |shaped| shaped.bind(py)), limit)?)),
    }
}
