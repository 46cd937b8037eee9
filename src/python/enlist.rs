//! `Enlistment`: a verb whose statements the caller's library runs in the caller's transaction.

use std::path::PathBuf;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::interpreter_exit::Native;
use super::item::Item;
use super::schedule::Schedule;
use crate::model::Value;
use crate::queue::{self, EnlistmentOutcome as Outcome, EnlistmentStep as Step};
use crate::store::{self, BlockStatement};

#[doc = words!(Enlistment)]
#[pyclass(module = "membox_queue._native")]
pub struct Enlistment {
    pub core: queue::Enlistment,
    /// The exception that the caller's library raised.
    failure: Option<PyErr>,
    /// The item whose claim the verb is about.
    item: Option<Py<Item>>,
}

#[doc = words!(Statement)]
#[pyclass(frozen, module = "membox_queue._native")]
pub struct Statement(pub store::Statement);

#[pymethods]
impl Statement {
    #[doc = words!(Statement.sql)]
    #[getter]
    fn sql(&self) -> &str {
        &self.0.sql
    }

    #[doc = words!(Statement.values)]
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let values = self.0.values.iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, values)
    }

    #[doc = words!(Statement.returns_rows)]
    #[getter]
    fn returns_rows(&self) -> bool {
        self.0.returns_rows
    }

    #[doc = words!(Statement.block)]
    #[getter]
    fn block(&self) -> Option<&'static str> {
        self.0.block.map(|block| match block {
            BlockStatement::Begin => "begin",
            BlockStatement::Savepoint => "savepoint",
            BlockStatement::Release => "release",
            BlockStatement::Undo => "undo",
            BlockStatement::Commit => "commit",
            BlockStatement::RollBack => "roll_back",
        })
    }
}

#[pymethods]
impl Enlistment {
    #[doc = words!(Enlistment.location)]
    #[getter]
    fn location(&self) -> Statement {
        Statement(self.core.location())
    }

    #[doc = words!(Enlistment.begin)]
    #[pyo3(signature = (is_inside, /))]
    fn begin<'py>(&mut self, py: Python<'py>, is_inside: bool) -> PyResult<Bound<'py, PyAny>> {
        let step = py.native(|| self.core.begin(is_inside)).map_err(|error| self.raised(py, error))?;
        self.told(py, step)
    }

    #[doc = words!(Enlistment.next)]
    #[pyo3(signature = (rows, /))]
    fn next<'py>(&mut self, py: Python<'py>, rows: Vec<Bound<'py, PyTuple>>) -> PyResult<Bound<'py, PyAny>> {
        let rows = rows.iter().map(|row| row.iter().map(|value| from_python(&value)).collect::<PyResult<Vec<_>>>());
        let rows = rows.collect::<PyResult<Vec<_>>>()?;
        let step = py.native(|| self.core.next(&rows)).map_err(|error| self.raised(py, error))?;
        self.told(py, step)
    }

    #[doc = words!(Enlistment.failed)]
    #[pyo3(signature = (exception, /))]
    fn failed<'py>(&mut self, exception: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = exception.py();
        // Undoing may fail too; the first exception is the reason.
        self.failure.get_or_insert_with(|| PyErr::from_value(exception));
        let step = py.native(|| self.core.failed()).map_err(|error| self.raised(py, error))?;
        self.told(py, step)
    }
}

impl Enlistment {
    pub fn new(core: queue::Enlistment) -> Self {
        Self { core, failure: None, item: None }
    }

    /// A verb about a claim.
    pub fn about(core: queue::Enlistment, item: Py<Item>) -> Self {
        Self { item: Some(item), ..Self::new(core) }
    }

    /// Adds to an error which item it is about.
    fn raised(&self, py: Python<'_>, error: crate::Error) -> PyErr {
        match &self.item {
            Some(item) => item.get().about_this(py, error.into()),
            None => error.into(),
        }
    }

    /// Converts a step to Python: a statement to run, or the result.
    fn told<'py>(&mut self, py: Python<'py>, step: Step) -> PyResult<Bound<'py, PyAny>> {
        match step {
            Step::Run(statement) => Ok(Bound::new(py, Statement(statement))?.into_any()),
            Step::Done(Outcome::Ids(ids)) => ids.into_bound_py_any(py),
            Step::Done(Outcome::Schedule(schedule)) => Schedule(*schedule).into_bound_py_any(py),
            Step::Done(Outcome::Ended(_)) => true.into_bound_py_any(py),
            Step::Done(Outcome::Changed(changed)) => changed.into_bound_py_any(py),
            Step::Done(Outcome::Count(count)) => count.into_bound_py_any(py),
            Step::Done(Outcome::Nothing) => Ok(py.None().into_bound(py)),
            Step::Fail => Err(self.failure.take().unwrap_or_else(|| crate::Error::Closed.into())),
        }
    }
}

/// Runs the statements of a verb on the caller's connection. The Python package sets it as it is imported.
static RUNNER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

pub fn set_runner(py: Python<'_>, runner: Py<PyAny>) {
    let _ = RUNNER.set(py, runner);
}

/// Runs a verb on the caller's connection, for verbs of an item, which knows no Python queue.
pub fn run<'py>(
    connection: &Bound<'py, PyAny>,
    path: Option<PathBuf>,
    steps: Enlistment,
) -> PyResult<Bound<'py, PyAny>> {
    let py = connection.py();
    let runner = RUNNER.get(py).ok_or_else(|| PyRuntimeError::new_err("membox_queue.queue is not imported"))?;
    runner.bind(py).call1((connection, path, steps))
}

/// Converts a value to the form that Python's database modules accept.
fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Integer(number) => number.into_pyobject(py)?.into_any(),
        Value::Real(number) => number.into_pyobject(py)?.into_any(),
        Value::Text(text) => PyString::new(py, text).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
    })
}

/// Converts a value that a Python database module returned; other types become text.
fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    Ok(if value.is_none() {
        Value::Null
    } else if value.is_instance_of::<PyInt>() {
        Value::Integer(value.extract()?)
    } else if value.is_instance_of::<PyFloat>() {
        Value::Real(value.extract()?)
    } else if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        Value::Bytes(value.extract()?)
    } else {
        Value::Text(value.str()?.to_string_lossy().into_owned())
    })
}
