//! `Drain`: the native half of a drain loop. Python calls the handler, this records what came of it.

use std::sync::Arc;

use pyo3::prelude::*;

use super::convert::json;
use super::ending;
use super::item::Item;
use crate::outcome::{Ending, Settled};
use crate::queue;

#[pyclass(frozen, module = "membox_queue._native")]
pub struct Drain {
    drain: queue::Drain,
    queue: Arc<queue::Queue>,
}

/// How the last item was settled, and the next one.
type Step = (Option<&'static str>, Option<Item>);

impl Drain {
    pub fn begin(py: Python<'_>, queue: &Arc<queue::Queue>, ttl_ms: i64) -> PyResult<Option<Self>> {
        let begun = py.detach(|| queue::Drain::begin(queue.clone(), ttl_ms))?;
        Ok(begun.map(|drain| Self { drain, queue: queue.clone() }))
    }

    fn step(&self, py: Python<'_>, ending: Option<Ending>) -> PyResult<Step> {
        let step = py.detach(|| self.drain.step(ending))?;
        Ok((step.settled.map(Settled::as_str), step.next.map(|held| Item::claimed(held, self.queue.clone()))))
    }
}

#[pymethods]
impl Drain {
    fn first(&self, py: Python<'_>) -> PyResult<Option<Item>> {
        Ok(self.step(py, None)?.1)
    }

    #[pyo3(signature = (result, /))]
    fn done(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<Step> {
        let result =
            if result.is_none() { None } else { Some(json("the result", result, self.queue.options().max_bytes)?) };
        self.step(py, Some(Ending::Done { result }))
    }

    #[pyo3(signature = (exception, /))]
    fn failed(&self, py: Python<'_>, exception: &Bound<'_, PyAny>) -> PyResult<Step> {
        let ending = ending::of_exception(py, exception)?;
        self.step(py, Some(ending))
    }

    fn close(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.detach(|| self.drain.close())?)
    }
}
