//! `Item.enqueue`: an item that is written with the end of the one whose handler made it.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::content as stored;
use super::destination::{Destination, plain};
use super::interpreter_exit::Native;
use super::item::Item;
use super::new_item::{ItemOptions, NewItem, needs, new_item, new_needs};
use super::options::given;
use crate::model;
use crate::rules::settings::MOST_BYTES;

#[pymethods]
impl Item {
    #[doc = concat!("enqueue($self, content, *, queue=None", item_options!(), ")\n--\n\n", words!(Item.enqueue))]
    #[pyo3(signature = (content, *, queue = None, **options), text_signature = None)]
    fn enqueue(
        &self,
        content: &Bound<'_, PyAny>,
        queue: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let py = content.py();
        let (held, core) = self.claim()?;
        let item = if content.is_instance_of::<NewItem>() {
            if queue.is_some() || options.is_some_and(|options| !options.is_empty()) {
                return Err(PyTypeError::new_err("a NewItem has its own queue and options; give them to it"));
            }
            self.new_item(content)?
        } else {
            let read = ItemOptions::read("Item.enqueue", options)?;
            let destination = queue.map(Destination::read).transpose()?;
            let shaped = plain(content, core, self.shape(py), destination.as_ref())?;
            let content = stored(shaped.as_ref().map_or(content, |shaped| shaped.bind(py)), MOST_BYTES)?;
            let after =
                new_needs(py, &needs(given(&read.after))?, MOST_BYTES, &|content, new| self.plain(content, new))?;
            let queue = destination.map(|destination| destination.name);
            model::NewItem { queue, after, ..read.item(content, MOST_BYTES)? }
        };
        py.native(|| core.enqueue_with_end(held, item)).map_err(|error| self.about_this(py, error.into()))
    }
}

impl Item {
    /// Reads a `NewItem`, or content, for a child of this item.
    pub fn new_item(&self, element: &Bound<'_, PyAny>) -> PyResult<model::NewItem> {
        new_item(element, MOST_BYTES, &|content, new| self.plain(content, new))
    }

    /// Converts content by the type of the queue that a child goes into.
    fn plain(&self, content: &Bound<'_, PyAny>, new: Option<&NewItem>) -> PyResult<Option<Py<PyAny>>> {
        let (_, core) = self.claim()?;
        plain(content, core, self.shape(content.py()), new.and_then(NewItem::destination))
    }
}
