//! `Node`: an item of a tree, with what is below it.

use pyo3::prelude::*;
use pyo3::types::PyList;

use super::item::Item;
use crate::model;
use crate::queue;

#[doc = words!(Node)]
#[pyclass(frozen, module = "membox_queue")]
pub struct Node {
    #[doc = words!(Node.id)]
    #[pyo3(get)]
    id: i64,
    #[doc = words!(Node.item)]
    #[pyo3(get)]
    item: Option<Py<Item>>,
    #[doc = words!(Node.after)]
    #[pyo3(get)]
    after: Py<PyList>,
    #[doc = words!(Node.children)]
    #[pyo3(get)]
    children: Py<PyList>,
    #[doc = words!(Node.needed_by)]
    #[pyo3(get)]
    needed_by: Vec<i64>,
    #[doc = words!(Node.repeated)]
    #[pyo3(get)]
    repeated: bool,
    #[doc = words!(Node.left_out)]
    #[pyo3(get)]
    left_out: usize,
}

impl Node {
    /// Converts a tree. `show` converts an item.
    pub fn shown(
        py: Python<'_>,
        node: queue::Node,
        show: &dyn Fn(model::Item) -> PyResult<Item>,
    ) -> PyResult<Py<Self>> {
        let list = |nodes: Vec<queue::Node>| -> PyResult<Py<PyList>> {
            let shown = nodes.into_iter().map(|node| Self::shown(py, node, show)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, shown)?.unbind())
        };
        let (id, item) = (node.id, node.item.map(|item| Py::new(py, show(item)?)).transpose()?);
        let (after, children) = (list(node.after)?, list(node.children)?);
        let (needed_by, repeated, left_out) = (node.needed_by, node.is_repeated, node.left_out);
        Py::new(py, Self { id, item, after, children, needed_by, repeated, left_out })
    }
}

#[pymethods]
impl Node {
    fn __repr__(&self, py: Python<'_>) -> String {
        let status =
            self.item.as_ref().map_or_else(|| "removed".to_owned(), |item| item.get().status_text().to_owned());
        let (after, children) = (self.after.bind(py).len(), self.children.bind(py).len());
        format!("<Node {}, {status}, after {after}, children {children}>", self.id)
    }
}
