//! Starting a worker loop.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Queue;
use crate::python::convert::{count, duration_ms, patience, positive, ttl_ms};
use crate::python::options::{flag, given};
use crate::python::worker_loop::WorkerLoop;
use crate::queue::Plan;

options! {
    /// The options of a loop that its native half needs.
    LoopOptions, loop_options! {
        slots = "1",
        exclusive = "False",
        stays = "False",
        linger = "0.0",
        limit = "None",
        whole_groups = "False",
        max_runtime = "None",
        ttl = "None",
        takes_over = "False",
    }
}

impl LoopOptions<'_> {
    fn plan(&self) -> PyResult<Plan> {
        Ok(Plan {
            slots: self.slots.as_ref().map_or(Ok(1), |slots| count("concurrency", slots))? as usize,
            exclusive: flag(&self.exclusive)?,
            takes_over: flag(&self.takes_over)?,
            stays: flag(&self.stays)?,
            linger_ms: self.linger.as_ref().map_or(Ok(0), |linger| duration_ms("linger", linger))?,
            limit: given(&self.limit).map(|limit| positive("limit", limit).map(u64::from)).transpose()?,
            whole_groups: flag(&self.whole_groups)?,
            max_runtime: given(&self.max_runtime).map(|longest| patience("max_runtime", longest)).transpose()?,
            ttl_ms: ttl_ms(given(&self.ttl))?,
        })
    }
}

#[pymethods]
impl Queue {
    #[doc = concat!("_begin_loop($self, others, *", loop_options!(), ")\n--\n\n", words!(Queue._begin_loop))]
    #[pyo3(signature = (others, **options), text_signature = None)]
    fn _begin_loop(
        &self,
        py: Python<'_>,
        others: Vec<Bound<'_, Queue>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<WorkerLoop>> {
        let plan = LoopOptions::read("Queue._begin_loop", options)?.plan()?;
        let queues = std::iter::once(self.core.clone()).chain(others.iter().map(|other| other.get().core.clone()));
        WorkerLoop::begin(py, queues.collect(), plan)
    }
}
