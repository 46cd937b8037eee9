//! `Block`: the native half of `item.transaction`; `membox_queue.connections` runs its statements.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::ending;
use super::enlist::{Enlistment, Statement};
use super::interpreter_exit::Native;
use super::item::Item;
use super::warnings;
use crate::queue;
use crate::rules::outcome::Ending;

/// Makes the context manager of a connection and a block. The Python package sets it as it is imported.
static TRANSACTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

pub fn set_transaction(py: Python<'_>, factory: Py<PyAny>) {
    let _ = TRANSACTION.set(py, factory);
}

pub fn transaction<'py>(connection: &Bound<'py, PyAny>, block: Block) -> PyResult<Bound<'py, PyAny>> {
    let py = connection.py();
    let factory = TRANSACTION.get(py).ok_or_else(|| PyRuntimeError::new_err("membox_queue.queue is not imported"))?;
    factory.bind(py).call1((connection, block))
}

#[doc = words!(Block)]
#[pyclass(frozen, module = "membox_queue._native")]
pub struct Block {
    core: queue::Block,
    item: Py<Item>,
    path: Option<PathBuf>,
}

impl Block {
    pub fn new(item: &Bound<'_, Item>, queue: &Arc<queue::Queue>) -> PyResult<Self> {
        let py = item.py();
        let held = item.get().held()?;
        let core = py.native(|| queue.block(held))?;
        Ok(Self { core, item: item.clone().unbind(), path: queue.path() })
    }

    fn enlistment(
        &self,
        py: Python<'_>,
        begin: impl FnOnce() -> crate::Result<queue::Enlistment> + Send,
    ) -> PyResult<Enlistment> {
        let begun = py.native(begin).map_err(|error| self.item.get().about_this(py, error.into()))?;
        Ok(Enlistment::about(begun, self.item.clone_ref(py)))
    }
}

/// How leaving the block ends the claim; `None` leaves the claim as it is.
fn ending(exception: &Bound<'_, PyAny>, is_cancelled: Option<bool>) -> PyResult<Option<Ending>> {
    if exception.is_none() {
        return Ok(Some(Ending::Done { result: None }));
    }
    ending::of_raised(exception, ending::in_block(exception, is_cancelled)?)
}

#[pymethods]
impl Block {
    #[doc = words!(Block.item)]
    #[getter]
    fn item(&self, py: Python<'_>) -> Py<Item> {
        self.item.clone_ref(py)
    }

    #[doc = words!(Block.path)]
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    #[doc = words!(Block.location)]
    #[getter]
    fn location(&self) -> Statement {
        Statement(self.core.location())
    }

    #[doc = words!(Block.enter)]
    #[pyo3(signature = (is_open, is_begun, /))]
    fn enter(&self, py: Python<'_>, is_open: bool, is_begun: bool) -> PyResult<Enlistment> {
        self.enlistment(py, || self.core.enter(is_open, is_begun))
    }

    #[doc = words!(Block.leave)]
    #[pyo3(signature = (exception, is_cancelled, is_begun, /))]
    fn leave(&self, exception: &Bound<'_, PyAny>, is_cancelled: Option<bool>, is_begun: bool) -> PyResult<Enlistment> {
        let ending = ending(exception, is_cancelled)?;
        let is_raised = !exception.is_none();
        self.enlistment(exception.py(), || self.core.leave(ending, is_raised, is_begun))
    }

    #[doc = words!(Block.mark_recorded)]
    fn mark_recorded(&self) {
        self.core.mark_recorded();
    }

    #[doc = words!(Block.settle)]
    #[pyo3(signature = (exception, is_cancelled, /))]
    fn settle(&self, exception: &Bound<'_, PyAny>, is_cancelled: Option<bool>) -> PyResult<()> {
        let ending = ending(exception, is_cancelled)?;
        let is_raised = !exception.is_none();
        match exception.py().native(|| self.core.settle(ending, is_raised)) {
            Ok(_) => Ok(()),
            Err(error) if !is_raised => Err(error.into()),
            // What was raised matters more than a failure to record it.
            Err(error) => {
                let text = format!("membox_queue could not record this: {error}");
                if exception.call_method1("add_note", (&text,)).is_err() {
                    warnings::warn(&text);
                }
                Ok(())
            }
        }
    }
}
