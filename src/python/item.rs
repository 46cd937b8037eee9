//! `Item`: a claimed item, or one that was only read.
//!
//! It is longer than most files because every attribute of an item is a method of this one class.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyGenericAlias, PyString, PyType};

use super::block::{self, Block};
use super::convert::{content_to_python, datetime, object_to_python, text, to_python, type_name};
use super::ending;
use super::error::{exception_class, named};
use super::interpreter_exit::Native;
use super::warnings;
use crate::error::Error;
use crate::heartbeat::Heartbeat;
use crate::model::{self, Status, read_json};
use crate::queue::{self, ClaimedItem};
use crate::rules::ending::Meaning;
use crate::rules::outcome::{Ending, Settled, not_committed};
use crate::sync::Mutex;

#[doc = words!(Item)]
#[pyclass(frozen, module = "membox_queue")]
pub struct Item {
    source: Source,
    content: PyOnceLock<Py<PyAny>>,
    headers: PyOnceLock<Py<PyAny>>,
    result: PyOnceLock<Py<PyAny>>,
    /// The type of its queue, for what its handler enqueues. Most queues have none.
    shape: PyOnceLock<Py<PyAny>>,
    /// What a claimed item has waited for, once it was asked for.
    after: PyOnceLock<Py<PyAny>>,
    /// Whether the loop that handles it has been asked to stop.
    stopping: Arc<AtomicBool>,
    is_in_loop: bool,
}

enum Source {
    Claimed {
        held: Arc<ClaimedItem>,
        queue: Arc<queue::Queue>,
        beat: Mutex<Option<Heartbeat>>,
    },
    /// The queue it was read from.
    Read(Box<model::Item>, Option<Arc<queue::Queue>>),
    /// Unpickled.
    Copied(Box<model::Item>),
}

impl Item {
    fn from_source(source: Source) -> Self {
        let [content, headers, result, shape, after] = [const { PyOnceLock::new() }; 5];
        Self { source, content, headers, result, shape, after, stopping: Arc::default(), is_in_loop: false }
    }

    pub fn claimed(held: Arc<ClaimedItem>, queue: Arc<queue::Queue>) -> Self {
        Self::from_source(Source::Claimed { held, queue, beat: Mutex::default() })
    }

    /// Creates a claimed item whose handler can see that the loop was asked to stop.
    pub fn in_loop(held: Arc<ClaimedItem>, queue: Arc<queue::Queue>, stopping: Arc<AtomicBool>) -> Self {
        Self { stopping, is_in_loop: true, ..Self::claimed(held, queue) }
    }

    pub fn read(item: model::Item, queue: Option<Arc<queue::Queue>>) -> Self {
        Self::from_source(Source::Read(Box::new(item), queue))
    }

    /// Creates a copy, with values that Python has already.
    pub fn copied(
        py: Python<'_>,
        item: model::Item,
        content: Py<PyAny>,
        headers: Py<PyAny>,
        result: Py<PyAny>,
    ) -> Self {
        let copy = Self::from_source(Source::Copied(Box::new(item)));
        for (field, value) in [(&copy.content, content), (&copy.headers, headers), (&copy.result, result)] {
            let _ = field.set(py, value);
        }
        copy
    }

    /// The status, for other classes of this module.
    pub fn status_text(&self) -> &str {
        &self.item().status
    }

    pub fn number(&self) -> i64 {
        self.item().id
    }

    fn item(&self) -> &model::Item {
        match &self.source {
            Source::Claimed { held, .. } => &held.item,
            Source::Read(item, _) | Source::Copied(item) => item,
        }
    }

    /// Converts the content to the queue's type before it is first read. After an error it stays as stored.
    pub fn fit(&self, py: Python<'_>, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        let made = shape.call_method1("decode", (self.raw_content(py)?,))?;
        // If another thread read the content first, it stays as stored for all readers.
        let _ = self.content.set(py, made.unbind());
        self.item().content.store(None);
        let _ = self.shape.set(py, shape.clone().unbind());
        Ok(())
    }

    pub fn shape<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
        self.shape.get(py).map(|shape| shape.bind(py))
    }

    /// Returns the content before conversion to the queue's type, or the Python object that replaced it.
    fn raw_content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.item().content.load_full().as_deref() {
            Some(content) => content_to_python(py, content),
            // The native content is dropped only after Python has its copy.
            None => Ok(self.content.get(py).map_or_else(|| py.None(), |made| made.clone_ref(py)).into_bound(py)),
        }
    }

    /// Returns the claim and its queue, for verbs that need them.
    pub fn claim(&self) -> PyResult<(&Arc<ClaimedItem>, &Arc<queue::Queue>)> {
        let held = self.held()?;
        match &self.source {
            Source::Claimed { queue, .. } => Ok((held, queue)),
            Source::Read(..) | Source::Copied(_) => Err(PyValueError::new_err("the item was only read")),
        }
    }

    /// Whether something ends the claim that is left by a suspension: a loop or a block.
    pub fn can_be_suspended(&self) -> bool {
        self.is_in_loop || matches!(&self.source, Source::Claimed { beat, .. } if beat.lock().is_some())
    }

    /// Returns the claim, for verbs that need one.
    pub fn held(&self) -> PyResult<&Arc<ClaimedItem>> {
        match &self.source {
            Source::Claimed { held, .. } => Ok(held),
            Source::Read(item, _) => Err(PyValueError::new_err(format!(
                "item {} was only read, not claimed; pass an item that claim() returned",
                item.id
            ))),
            Source::Copied(item) => Err(PyValueError::new_err(format!(
                "item {} is a copy, which holds no claim; pass the item that claim() returned, in the process that \
                 claimed it",
                item.id
            ))),
        }
    }
}

/// Reads an item as an argument of a verb that needs its claim; an id does not prove a claim.
pub fn claimed<'a>(item: &'a Bound<'_, PyAny>) -> PyResult<&'a Arc<ClaimedItem>> {
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

    #[doc = words!(Item._fit)]
    #[pyo3(signature = (shape, /))]
    fn _fit(&self, py: Python<'_>, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        self.fit(py, shape)
    }

    #[doc = words!(Item.id)]
    #[getter]
    fn id(&self) -> i64 {
        self.item().id
    }

    #[doc = words!(Item.queue)]
    #[getter]
    fn queue(&self) -> &str {
        &self.item().queue
    }

    #[doc = words!(Item.home)]
    #[getter]
    fn home(&self) -> &str {
        self.item().home()
    }

    #[doc = words!(Item.stage)]
    #[getter]
    fn stage(&self) -> i64 {
        self.item().stage
    }

    #[doc = words!(Item.parent)]
    #[getter]
    fn parent(&self) -> Option<i64> {
        self.item().parent
    }

    #[doc = words!(Item.content)]
    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = self.content.get_or_try_init(py, || Ok::<_, PyErr>(self.raw_content(py)?.unbind()))?;
        self.item().content.store(None);
        Ok(made.bind(py).clone())
    }

    #[doc = words!(Item.project)]
    #[getter]
    fn project(&self) -> Option<&str> {
        self.item().project.as_deref()
    }

    #[doc = words!(Item.source_path)]
    #[getter]
    fn source_path(&self) -> Option<&str> {
        self.item().source_path.as_deref()
    }

    #[doc = words!(Item.doc_date)]
    #[getter]
    fn doc_date(&self) -> Option<&str> {
        self.item().doc_date.as_deref()
    }

    #[doc = words!(Item.status)]
    #[getter]
    fn status(&self) -> &str {
        &self.item().status
    }

    #[doc = words!(Item.retries)]
    #[getter]
    fn retries(&self) -> u32 {
        self.item().retries
    }

    #[doc = words!(Item.error)]
    #[getter]
    fn error(&self) -> Option<&str> {
        self.item().error.as_deref()
    }

    #[doc = words!(Item.result)]
    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = self.result.get_or_try_init(py, || {
            let Some(stored) = &self.item().result else { return Ok::<_, PyErr>(py.None()) };
            if let Ok(value) = read_json(stored) {
                return Ok(to_python(py, &value)?.unbind());
            }
            // Another program wrote it. Python reads integers of any length; if that fails too, the text is better than
            // nothing.
            let text = PyString::new(py, stored).into_any();
            if model::integer_beyond_64_bits(stored).is_none() {
                return Ok(text.unbind());
            }
            Ok(py.import("json")?.call_method1("loads", (stored,)).unwrap_or(text).unbind())
        })?;
        Ok(made.bind(py).clone())
    }

    #[doc = words!(Item.priority)]
    #[getter]
    fn priority(&self) -> i64 {
        self.item().priority
    }

    #[doc = words!(Item.headers)]
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = self.headers.get_or_try_init(py, || {
            let none = serde_json::Map::new();
            let headers = self.item().headers.as_ref().unwrap_or(&none);
            Ok::<_, PyErr>(object_to_python(py, headers)?.unbind())
        })?;
        Ok(made.bind(py).clone())
    }

    #[doc = words!(Item.group)]
    #[getter]
    fn group(&self) -> Option<&str> {
        self.item().group.as_deref()
    }

    #[doc = words!(Item.key)]
    #[getter]
    fn key(&self) -> Option<&str> {
        self.item().key.as_deref()
    }

    #[doc = words!(Item.attempt)]
    #[getter]
    fn attempt(&self) -> i64 {
        self.item().attempt
    }

    #[doc = words!(Item.worker)]
    #[getter]
    fn worker(&self) -> Option<&str> {
        self.item().worker.as_deref()
    }

    #[doc = words!(Item.max_retries)]
    #[getter]
    fn max_retries(&self) -> Option<u32> {
        self.item().max_retries
    }

    #[doc = words!(Item.enqueued_at)]
    #[getter]
    fn enqueued_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, Some(self.item().enqueued_ms().unwrap_or(0)))
    }

    #[doc = words!(Item.started_at)]
    #[getter]
    fn started_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.item().started_ms())
    }

    #[doc = words!(Item.finished_at)]
    #[getter]
    fn finished_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.item().finished_ms())
    }

    #[doc = words!(Item.run_at)]
    #[getter]
    fn run_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.item().run_at)
    }

    #[doc = words!(Item.lease_until)]
    #[getter]
    fn lease_until<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.item().lease_until)
    }

    #[doc = words!(Item.expires_at)]
    #[getter]
    fn expires_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.item().expires_at)
    }

    #[doc = words!(Item.after)]
    #[getter]
    fn after<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let queue = match &self.source {
            Source::Claimed { queue, .. } | Source::Read(_, Some(queue)) => queue,
            Source::Read(item, None) | Source::Copied(item) => {
                return Err(PyValueError::new_err(format!(
                    "item {} is a copy, which knows no file; ask the item that queue.get({}) returns",
                    item.id, item.id
                )));
            }
        };
        let read = || -> PyResult<Py<PyAny>> {
            let id = self.item().id;
            let found = py.native(|| queue.after(id))?;
            let shown = found.into_iter().map(|item| item.map(|item| Self::read(item, Some(queue.clone()))));
            Ok(shown.collect::<Vec<_>>().into_pyobject(py)?.unbind())
        };
        match &self.source {
            // What a claimed item has waited for has ended.
            Source::Claimed { .. } => Ok(self.after.get_or_try_init(py, read)?.bind(py).clone()),
            _ => Ok(read()?.into_bound(py)),
        }
    }

    #[doc = words!(Item.lost)]
    #[getter]
    fn lost(&self, py: Python<'_>) -> PyResult<bool> {
        let Source::Claimed { held, queue, .. } = &self.source else { return Ok(false) };
        if held.is_known_lost() || held.is_settled() || queue.is_closed() {
            return Ok(held.is_known_lost());
        }
        Ok(py.native(|| queue.is_lost(held))?)
    }

    #[doc = words!(Item.cancelled)]
    #[getter]
    fn cancelled(&self, py: Python<'_>) -> PyResult<bool> {
        match &self.source {
            Source::Read(item, _) | Source::Copied(item) => Ok(item.status == Status::Cancelled.as_str()),
            Source::Claimed { queue, .. } if queue.is_closed() => Ok(false),
            Source::Claimed { held, queue, .. } => Ok(py.native(|| queue.is_cancelled(held))?),
        }
    }

    #[doc = words!(Item.stopping)]
    #[getter]
    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    #[doc = words!(Item._known_lost)]
    #[getter]
    fn _known_lost(&self) -> bool {
        matches!(&self.source, Source::Claimed { held, .. } if held.is_known_lost())
    }

    #[doc = words!(Item._promised)]
    #[getter]
    fn _promised(&self) -> bool {
        matches!(&self.source, Source::Claimed { held, .. } if held.promised().is_some() && !held.is_settled())
    }

    #[doc = words!(Item._uncommitted)]
    #[getter]
    fn _uncommitted(&self) -> bool {
        matches!(&self.source, Source::Claimed { held, .. } if held.is_broken())
    }

    #[doc = words!(Item._settled)]
    #[getter]
    fn _settled(&self) -> bool {
        matches!(&self.source, Source::Claimed { held, .. } if held.is_settled())
    }

    #[doc = words!(Item.progress)]
    #[getter]
    fn progress(&self) -> Option<f64> {
        self.item().shown_progress()
    }

    #[doc = words!(Item.progress_note)]
    #[getter]
    fn progress_note(&self) -> Option<&str> {
        self.item().progress_note.as_deref()
    }

    #[doc = words!(Item.set_progress)]
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

    #[doc = words!(Item.check)]
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.cancelled(py)? {
            return Err(self.called_off(py));
        }
        if self.lost(py)? { Err(self.stale(py)) } else { Ok(()) }
    }

    #[doc = words!(Item.transaction)]
    #[pyo3(signature = (connection))]
    fn transaction<'py>(slf: &Bound<'py, Self>, connection: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        block::transaction(connection, Self::_block(slf)?)
    }

    #[doc = words!(Item._block)]
    fn _block(slf: &Bound<'_, Self>) -> PyResult<Block> {
        match &slf.get().source {
            Source::Claimed { queue, .. } => Block::new(slf, queue),
            _ => Err(slf.get().held().err().unwrap_or_else(|| Error::Closed.into())),
        }
    }

    fn __enter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().held()?;
        if let Source::Claimed { held, queue, beat } = &slf.get().source {
            let begun = slf.py().native(|| -> crate::Result<()> {
                let started = queue.keep_alive(held, None)?;
                *beat.lock() = Some(started);
                Ok(())
            });
            begun.map_err(|error| slf.get().about_this(slf.py(), error.into()))?;
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

    #[doc = words!(Item._leave)]
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
    /// Ends the claim when its block exits, with or without an exception.
    fn leave(&self, py: Python<'_>, exception: &Bound<'_, PyAny>, is_cancelled: Option<bool>) -> PyResult<bool> {
        let Source::Claimed { held, queue, beat } = &self.source else { return Ok(false) };
        let meaning = if exception.is_none() { None } else { Some(ending::in_block(exception, is_cancelled)?) };
        let suspended = if meaning == Some(Meaning::Suspended) { held.suspended() } else { None };
        let is_suspended = suspended.is_some();
        let ending = match meaning {
            None => Some(Ending::Done { result: None }),
            Some(_) if is_suspended => suspended,
            Some(meaning) => ending::of_raised(exception, meaning)?,
        };
        let settled = py.native(|| {
            *beat.lock() = None;
            let Some(ending) = ending else { return Ok(Settled::Released) };
            // The body may already have recorded the end, with its own result or reason, or in its own transaction.
            if let Some(settled) = held.settled() {
                return Ok(settled);
            }
            let promised = if matches!(ending, Ending::Done { .. }) { queue.conclude_promise(held)? } else { None };
            let settled = promised.map_or_else(|| queue.finish(held, ending), Ok);
            // What the body made cannot be stored, or it went on after a suspension: then nothing of it is done.
            if let Err(error @ (Error::Duplicate { .. } | Error::Invalid(_))) = &settled {
                let failed = Ending::Failed { error: format!("{error}"), retry_in: None, give_up: false };
                queue.finish(held, failed)?;
            }
            settled
        });
        match settled {
            Ok(Settled::Lost) if exception.is_none() || is_suspended => Err(self.stale(py)),
            Ok(Settled::Cancelled) if exception.is_none() || is_suspended => Err(self.called_off(py)),
            Ok(_) if exception.is_none() && held.is_broken() => {
                let why = not_committed(held.promised().unwrap_or(Settled::Done));
                Err(self.about_this(py, Error::Stale { id: held.item.id, why }.into()))
            }
            // The block is over, and so is the suspension.
            Ok(_) => Ok(is_suspended),
            Err(error) if exception.is_none() || is_suspended => Err(error.into()),
            // The body's exception matters more than a failure to record the end.
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
        let error = match &self.source {
            Source::Claimed { held, queue, .. } => py.native(|| queue.why_stale(held)).unwrap_or_else(|error| error),
            Source::Read(item, _) | Source::Copied(item) => {
                Error::Stale { id: item.id, why: "it was only read".into() }
            }
        };
        self.about_this(py, error.into())
    }

    fn called_off(&self, py: Python<'_>) -> PyErr {
        let has_expired = matches!(&self.source, Source::Claimed { held, queue, .. } if queue.has_expired(held));
        let what = if has_expired { "expired" } else { "was cancelled" };
        let text = format!("item {} {what} while it was being worked on", self.item().id);
        self.about_this(py, named(py, "StaleClaimError", text))
    }

    /// Adds to an error about the claim which item it is about.
    pub fn about_this(&self, py: Python<'_>, error: PyErr) -> PyErr {
        let is_stale = exception_class(py, "StaleClaimError").is_ok_and(|class| error.is_instance(py, &class));
        let item = self.item();
        let value = error.value(py);
        if is_stale
            && let Err(failure) = value.setattr("id", item.id).and_then(|()| value.setattr("queue", &item.queue))
        {
            return failure;
        }
        error
    }
}
