//! An item as data: `as_dict`, and the copy that pickling makes of it.

use arc_swap::ArcSwapOption;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::instant_ms;
use super::item::Item;
use crate::model::{self, Now};

/// What an item says about itself; the other attributes ask the file.
const FIELDS: [&str; 28] = [
    "id",
    "queue",
    "home",
    "stage",
    "parent",
    "content",
    "project",
    "source_path",
    "doc_date",
    "status",
    "retries",
    "error",
    "result",
    "priority",
    "headers",
    "group",
    "key",
    "attempt",
    "worker",
    "max_retries",
    "enqueued_at",
    "started_at",
    "finished_at",
    "run_at",
    "lease_until",
    "expires_at",
    "progress",
    "progress_note",
];

#[pymethods]
impl Item {
    #[doc = words!(Item.as_dict)]
    fn as_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(slf.py());
        for name in FIELDS {
            dict.set_item(name, slf.getattr(name)?)?;
        }
        Ok(dict)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyDict>,))> {
        let copied = slf.py().import("membox_queue._native")?.getattr("copied_item")?;
        Ok((copied, (Self::as_dict(slf)?,)))
    }
}

/// Creates the copy of an item from what `as_dict` returned, perhaps in another version.
pub fn copied(fields: &Bound<'_, PyDict>) -> PyResult<Item> {
    let py = fields.py();
    let value =
        |name: &str| -> PyResult<Py<PyAny>> { Ok(fields.get_item(name)?.map_or_else(|| py.None(), Bound::unbind)) };
    let text = |name: &str| optional::<String>(fields, name);
    let time = |name: &str| -> PyResult<Option<i64>> {
        given(fields, name)?.map(|moment| instant_ms(name, &moment)).transpose()
    };
    let time_text = |name: &str| -> PyResult<Option<String>> { Ok(time(name)?.map(|ms| Now(ms).text())) };
    let item = model::Item {
        id: optional(fields, "id")?.unwrap_or_default(),
        queue: text("queue")?.unwrap_or_default(),
        home: text("home")?,
        stage: optional(fields, "stage")?.unwrap_or_default(),
        parent: optional(fields, "parent")?,
        expires_at: time("expires_at")?,
        content: ArcSwapOption::empty(),
        damage: None,
        project: text("project")?,
        source_path: text("source_path")?,
        doc_date: text("doc_date")?,
        status: text("status")?.unwrap_or_default(),
        retries: optional(fields, "retries")?.unwrap_or_default(),
        error: text("error")?,
        enqueued_at: time_text("enqueued_at")?.unwrap_or_default(),
        started_at: time_text("started_at")?,
        finished_at: time_text("finished_at")?,
        priority: optional(fields, "priority")?.unwrap_or_default(),
        run_at: time("run_at")?,
        attempt: optional(fields, "attempt")?.unwrap_or_default(),
        lease_until: time("lease_until")?,
        worker: text("worker")?,
        max_retries: optional(fields, "max_retries")?,
        headers: None,
        result: None,
        group: text("group")?,
        key: text("key")?,
        progress: optional(fields, "progress")?,
        progress_note: text("progress_note")?,
    };
    Ok(Item::copied(py, item, value("content")?, value("headers")?, value("result")?))
}

fn given<'py>(fields: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(fields.get_item(name)?.filter(|value| !value.is_none()))
}

fn optional<'py, T: FromPyObjectOwned<'py>>(fields: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>> {
    given(fields, name)?.map(|value| value.extract().map_err(Into::into)).transpose()
}
