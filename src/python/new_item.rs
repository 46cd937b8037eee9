//! `NewItem`, and the one table of an item's options.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyGenericAlias, PyString, PyType};

use super::convert::{
    content, count, date_text, duration_ms, headers, instant_ms, integer, path_text, text, type_name,
};
use super::destination::Destination;
use super::item::Item;
use super::options::given;
use crate::model::{self, Deadline, IfFailed, Key, KeyName, LATEST_MS, OnDuplicate, Stored, When};
use crate::rules::flow;
use crate::rules::settings::MOST_BYTES;

/// How many characters of a content or an option `repr` shows.
const PREVIEW: usize = 40;

options! {
    /// The options of an item besides its content.
    ItemOptions, item_options!, repeated repeated_item_options! {
        always {
            project = "None",
            source_path = "None",
            doc_date = "None",
            priority = "0",
        }
        once {
            delay = "None",
            run_at = "None",
        }
        always {
            max_retries = "None",
            headers = "None",
            group = "None",
            key = "None",
        }
        once {
            key_ttl = "None",
            on_duplicate = "'return'",
            after = "()",
            if_failed = "'cancel'",
            expires = "None",
        }
    }
}

impl ItemOptions<'_> {
    /// Creates the item with these options and this content.
    pub fn item(&self, content: Stored, limit: usize) -> PyResult<model::NewItem> {
        let when = when(given(&self.delay), given(&self.run_at))?;
        Ok(model::NewItem {
            queue: None,
            content,
            project: text("project", given(&self.project))?,
            source_path: path_text("source_path", given(&self.source_path))?,
            doc_date: date_text("doc_date", given(&self.doc_date))?,
            priority: given(&self.priority).map_or(Ok(0), |priority| integer("priority", priority))?,
            has_priority: given(&self.priority).is_some(),
            when,
            max_retries: given(&self.max_retries).map(|max| count("max_retries", max)).transpose()?,
            headers: headers(given(&self.headers), limit)?,
            group: group(given(&self.group))?,
            key: self.key()?,
            after: Vec::new(),
            if_failed: if_failed(given(&self.if_failed))?,
            expires: given(&self.expires).map(expires_after).transpose()?,
        })
    }

    /// Reads the item's key.
    fn key(&self) -> PyResult<Option<Key>> {
        let on_duplicate = match text("on_duplicate", given(&self.on_duplicate))?.as_deref() {
            None | Some("return") => OnDuplicate::Return,
            Some("raise") => OnDuplicate::Raise,
            Some("replace") => OnDuplicate::Replace,
            Some("skip") => OnDuplicate::Skip,
            Some(other) => {
                let said = format!("on_duplicate must be 'return', 'raise', 'replace' or 'skip', not {other:?}");
                return Err(PyValueError::new_err(said));
            }
        };
        let ttl_ms = given(&self.key_ttl).map(reserved_ms).transpose()?;
        let Some(key) = given(&self.key) else {
            if ttl_ms.is_some() || on_duplicate != OnDuplicate::Return {
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

#[doc = concat!("NewItem(content, *, queue=None", item_options!(), ")\n--\n\n", words!(NewItem))]
#[pyclass(frozen, module = "membox_queue")]
pub struct NewItem {
    #[doc = words!(NewItem.content)]
    #[pyo3(get)]
    content: Py<PyAny>,
    item: model::NewItem,
    /// The queue it goes into, if it says one.
    destination: Option<Destination>,
    /// Whether the content needs a queue's type to be stored.
    is_foreign: bool,
    /// The options as they were given.
    options: Py<PyDict>,
    after: Vec<Need>,
    /// How deep the items are nested that it waits for.
    depth: usize,
}

/// One of the items that an item waits for, as it was given.
pub enum Need {
    Id(i64),
    New(Py<NewItem>),
}

#[pymethods]
impl NewItem {
    #[new]
    #[pyo3(signature = (content, *, queue = None, **options), text_signature = None)]
    fn new(
        content: &Bound<'_, PyAny>,
        queue: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let shown = PyDict::new(content.py());
        queue.map(|queue| shown.set_item("queue", queue)).transpose()?;
        options.map(|options| shown.update(options.as_mapping())).transpose()?;
        let options = ItemOptions::read("NewItem.__new__", options)?;
        let stored = self::content(content, MOST_BYTES).ok();
        let is_foreign = stored.is_none();
        let mut item = options.item(stored.unwrap_or_else(|| Stored::text(String::new())), MOST_BYTES)?;
        let destination = queue.map(Destination::read).transpose()?;
        item.queue = destination.as_ref().map(|destination| destination.name.clone());
        let after = needs(given(&options.after))?;
        let depth = after.iter().map(|need| if let Need::New(new) = need { new.get().depth + 1 } else { 0 }).max();
        let depth = depth.unwrap_or(0);
        if depth > flow::DEEPEST {
            let text =
                format!("items in `after` are nested deeper than {}; enqueue the inner ones first", flow::DEEPEST);
            return Err(PyValueError::new_err(text));
        }
        Ok(Self {
            content: content.clone().unbind(),
            item,
            destination,
            is_foreign,
            options: shown.unbind(),
            after,
            depth,
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let content = self.content.bind(py);
        let mut parts = vec![if self.is_foreign {
            format!("of {}", content.get_type().qualname()?)
        } else if self.item.content.kind == "text" {
            // Only what is shown is copied: the text may be long.
            shortened(&self.item.content.text, |text| Ok(PyString::new(py, text).repr()?.to_string()))?
        } else if self.item.content.kind == "base64" {
            format!("of {} bytes", content.len()?)
        } else {
            shortened(&self.item.content.text, |text| Ok(text.into()))?
        }];
        for (name, value) in self.options.bind(py).iter() {
            let value = value.repr()?.to_string();
            parts.push(format!("{name}={}", shortened(&value, |text| Ok(text.into()))?));
        }
        Ok(format!("<NewItem {}>", parts.join(", ")))
    }

    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, kind: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyGenericAlias::new(cls.py(), cls.as_any(), kind)?.into_any())
    }
}

impl NewItem {
    pub fn destination(&self) -> Option<&Destination> {
        self.destination.as_ref()
    }
}

/// Shows the beginning of a text.
pub fn shortened(text: &str, show: impl Fn(&str) -> PyResult<String>) -> PyResult<String> {
    match text.char_indices().nth(PREVIEW) {
        Some((end, _)) => Ok(format!("{}…", show(&text[..end])?)),
        None => show(text),
    }
}

/// Reads how long a key stays reserved; `inf` means without limit.
pub fn reserved_ms(ttl: &Bound<'_, PyAny>) -> PyResult<i64> {
    if ttl.extract::<f64>().is_ok_and(|seconds| seconds == f64::INFINITY) {
        return Ok(LATEST_MS);
    }
    duration_ms("key_ttl", ttl)
}

#[doc = words!(ByContent)]
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

/// Reads what a failure of the items means that an item waits for.
pub fn if_failed(choice: Option<&Bound<'_, PyAny>>) -> PyResult<IfFailed> {
    let Some(choice) = text("if_failed", choice)? else { return Ok(IfFailed::default()) };
    IfFailed::parse(&choice)
        .ok_or_else(|| PyValueError::new_err(format!("if_failed must be 'cancel' or 'run', not {choice:?}")))
}

/// Reads when an item is due.
pub fn when(delay: Option<&Bound<'_, PyAny>>, run_at: Option<&Bound<'_, PyAny>>) -> PyResult<When> {
    match (delay, run_at) {
        (None, None) => Ok(When::Now),
        (Some(delay), None) => Ok(When::After(duration_ms("delay", delay)?)),
        (None, Some(at)) => Ok(When::At(instant_ms("run_at", at)?)),
        (Some(_), Some(_)) => Err(PyValueError::new_err("give delay or run_at, not both")),
    }
}

/// Reads the name of a group.
pub fn group(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    match text("group", value)? {
        Some(name) if name.is_empty() => Err(PyValueError::new_err("group must not be empty; leave it out for none")),
        name => Ok(name),
    }
}

/// Converts content by the type of the queue it goes into, if that has one.
pub type Plain<'a> = &'a dyn Fn(&Bound<'_, PyAny>, Option<&NewItem>) -> PyResult<Option<Py<PyAny>>>;

/// Reads an element of `enqueue_many`: a `NewItem` or plain content, converted by the type of the queue it goes into.
pub fn new_item(element: &Bound<'_, PyAny>, limit: usize, plain: Plain<'_>) -> PyResult<model::NewItem> {
    let py = element.py();
    let new = element.cast::<NewItem>().ok().map(Bound::get);
    let given = new.map_or_else(|| element.clone(), |new| new.content.bind(py).clone());
    let shaped = plain(&given, new)?;
    match new {
        Some(new) => {
            let after = new_needs(py, &new.after, limit, plain)?;
            let item = new.item.clone();
            if shaped.is_none() && !new.is_foreign {
                return Ok(model::NewItem { after, ..item });
            }
            // The limit of another queue is checked when that is looked up.
            let limit = if new.item.queue.is_some() { MOST_BYTES } else { limit };
            let content = content(shaped.as_ref().map_or(&given, |shaped| shaped.bind(py)), limit)?;
            Ok(model::NewItem { content, after, ..item })
        }
        None => Ok(model::NewItem::new(content(shaped.as_ref().map_or(&given, |shaped| shaped.bind(py)), limit)?)),
    }
}

/// Converts the items that an item waits for.
pub fn new_needs(py: Python<'_>, after: &[Need], limit: usize, plain: Plain<'_>) -> PyResult<Vec<model::Need>> {
    let needs = after.iter().map(|need| match need {
        Need::Id(id) => Ok(model::Need::Id(*id)),
        Need::New(new) => Ok(model::Need::New(Box::new(new_item(new.bind(py).as_any(), limit, plain)?))),
    });
    needs.collect()
}

/// Reads `after`: ids, items and new items.
pub fn needs(after: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Need>> {
    let Some(after) = after else { return Ok(Vec::new()) };
    let is_one = after.is_instance_of::<PyString>() || after.is_instance_of::<NewItem>() || after.hasattr("items")?;
    let several = if is_one { None } else { after.try_iter().ok() };
    let Some(several) = several else {
        let kind = type_name(after);
        return Err(PyTypeError::new_err(format!("after takes a list of ids, items and NewItems, not {kind}")));
    };
    let one = |need: Bound<'_, PyAny>| {
        if let Ok(new) = need.cast::<NewItem>() {
            return Ok(Need::New(new.clone().unbind()));
        }
        // An AsyncItem has the item.
        let item = need.getattr_opt("_item")?;
        if let Ok(item) = item.as_ref().unwrap_or(&need).cast::<Item>() {
            return Ok(Need::Id(item.get().number()));
        }
        integer("after", &need).map(Need::Id)
    };
    several.map(|need| one(need?)).collect()
}

/// Reads when an item expires.
fn expires_after(time: &Bound<'_, PyAny>) -> PyResult<Deadline> {
    match duration_ms("expires", time)? {
        0 => Err(PyValueError::new_err("expires must be longer than a millisecond; such an item would never run")),
        ms => Ok(Deadline::After(ms)),
    }
}
