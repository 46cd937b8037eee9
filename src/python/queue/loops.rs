//! Beginning a worker loop.

use pyo3::prelude::*;

use super::{Arg, Queue};
use crate::python::convert::{count, duration_ms, patience, positive, ttl_ms};
use crate::python::worker_loop::WorkerLoop;
use crate::queue::Plan;

#[pymethods]
impl Queue {
    #[pyo3(signature = (others, *, slots, exclusive, stays, linger, limit, whole_groups, max_runtime, ttl, takes_over = false))]
    #[allow(clippy::too_many_arguments)]
    fn _begin_crew(
        &self,
        py: Python<'_>,
        others: Vec<Bound<'_, Queue>>,
        slots: &Bound<'_, PyAny>,
        exclusive: bool,
        stays: bool,
        linger: &Bound<'_, PyAny>,
        limit: Arg,
        whole_groups: bool,
        max_runtime: Arg,
        ttl: Arg,
        takes_over: bool,
    ) -> PyResult<Option<WorkerLoop>> {
        let plan = Plan {
            slots: count("concurrency", slots)? as usize,
            exclusive,
            takes_over,
            stays,
            linger_ms: duration_ms("linger", linger)?,
            limit: limit.map(|limit| positive("limit", limit).map(u64::from)).transpose()?,
            whole_groups,
            max_runtime: max_runtime.map(|longest| patience("max_runtime", longest)).transpose()?,
            ttl_ms: ttl_ms(ttl)?,
        };
        let queues = std::iter::once(self.core.clone()).chain(others.iter().map(|other| other.get().core.clone()));
        WorkerLoop::begin(py, queues.collect(), plan)
    }
}
