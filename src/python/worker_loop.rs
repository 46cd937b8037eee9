//! `WorkerLoop`: the native half of a loop. Python calls the handlers; this records their results and claims the next items.

use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use pyo3::prelude::*;

use super::convert::json;
use super::ending;
use super::interpreter_exit::{self, Native};
use super::item::Item;
use super::queue::{log_kept, within_limit};
use crate::queue::{self, Next, Plan};
use crate::rules::outcome::{Ending, Settled};

#[doc = words!(WorkerLoop)]
#[pyclass(frozen, module = "membox_queue._native")]
pub struct WorkerLoop {
    core: Arc<queue::WorkerLoop>,
}

/// The loops that may be running. There is no lock, because a fork could leave it locked.
static LOOPS: ArcSwapOption<Vec<Weak<queue::WorkerLoop>>> = ArcSwapOption::const_empty();

/// Asks all loops of this process to stop.
pub fn stop_all() {
    let loops = LOOPS.load_full();
    loops.iter().flat_map(|loops| loops.iter()).filter_map(Weak::upgrade).for_each(|core| core.stop());
}

#[doc = words!(LoopStep)]
#[pyclass(frozen, get_all, module = "membox_queue._native")]
pub struct LoopStep {
    /// How the last items ended.
    ended: Vec<&'static str>,
    /// What to do next: "work", "wait" or "over".
    next: &'static str,
    /// The index of the queue of the items.
    queue: usize,
    /// The items to handle.
    items: Vec<Py<Item>>,
}

impl WorkerLoop {
    pub fn begin(py: Python<'_>, queues: Vec<Arc<queue::Queue>>, plan: Plan) -> PyResult<Option<Self>> {
        let begun = py.native(|| {
            let core = queue::WorkerLoop::begin(queues, plan)?.map(Arc::new);
            LOOPS.rcu(|known| {
                let known = known.iter().flat_map(|loops| loops.iter()).filter(|known| known.strong_count() > 0);
                Some(Arc::new(known.cloned().chain(core.as_ref().map(Arc::downgrade)).collect::<Vec<_>>()))
            });
            Ok::<_, crate::Error>(core)
        })?;
        Ok(begun.map(|core| Self { core }))
    }

    fn step(&self, py: Python<'_>, slot: usize, endings: Vec<Ending>) -> PyResult<LoopStep> {
        let step = py.native(|| {
            // An exiting interpreter waits for its threads, so they stop claiming.
            if interpreter_exit::is_exiting() {
                self.core.stop();
            }
            self.core.advance(slot, endings)
        })?;
        let ended = step.settled.into_iter().map(Settled::as_str).collect();
        let (next, queue, items) = match step.next {
            Next::Wait => ("wait", 0, Vec::new()),
            Next::Over => ("over", 0, Vec::new()),
            Next::Work(queue, items) => ("work", queue, items),
        };
        let core = &self.core.queues()[queue];
        let in_loop = |held| Py::new(py, Item::in_loop(held, core.clone(), self.core.stopping()));
        let items = items.into_iter().map(in_loop).collect::<PyResult<_>>()?;
        Ok(LoopStep { ended, next, queue, items })
    }
}

impl WorkerLoop {
    fn read_result(&self, result: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        if result.is_none() {
            return Ok(None);
        }
        let queues: Vec<_> = self.core.queues().iter().collect();
        within_limit(result.py(), &queues, |limit| json("the result", result, limit)).map(Some)
    }
}

#[pymethods]
impl WorkerLoop {
    #[doc = words!(WorkerLoop.check_result)]
    #[pyo3(signature = (slot, result, /))]
    fn check_result(&self, slot: usize, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let ending = Ending::Done { result: self.read_result(result)? };
        Ok(result.py().native(|| self.core.check_ending(slot, &ending))?)
    }

    #[doc = words!(WorkerLoop.next)]
    #[pyo3(signature = (slot, /))]
    fn next(&self, py: Python<'_>, slot: usize) -> PyResult<LoopStep> {
        self.step(py, slot, Vec::new())
    }

    #[doc = words!(WorkerLoop.done)]
    #[pyo3(signature = (slot, results, /))]
    fn done(&self, py: Python<'_>, slot: usize, results: Vec<Bound<'_, PyAny>>) -> PyResult<LoopStep> {
        // The GIL is released once per step, because each release may let every other thread run first. The core checks
        // the result against the limit of the item's own queue.
        let endings = results.iter().map(|result| Ok(Ending::Done { result: self.read_result(result)? }));
        let endings = endings.collect::<PyResult<Vec<_>>>()?;
        self.step(py, slot, endings)
    }

    #[doc = words!(WorkerLoop.failed)]
    #[pyo3(signature = (slot, items, exception, /))]
    fn failed(
        &self,
        py: Python<'_>,
        slot: usize,
        items: Vec<Bound<'_, Item>>,
        exception: &Bound<'_, PyAny>,
    ) -> PyResult<LoopStep> {
        let mut reason = ending::of_raised(exception, ending::in_handler(exception, false)?)?;
        let mut endings = Vec::with_capacity(items.len());
        for item in items {
            let is_open = !item.get().held()?.is_settled();
            let ending = if is_open { reason.take() } else { None };
            endings.push(ending.unwrap_or(Ending::released_now()));
        }
        self.step(py, slot, endings)
    }

    #[doc = words!(WorkerLoop.look_at_promises)]
    #[pyo3(signature = (slot, /))]
    fn look_at_promises(&self, py: Python<'_>, slot: usize) -> PyResult<bool> {
        Ok(py.native(|| self.core.look_at_promises(slot))?)
    }

    #[doc = words!(WorkerLoop.wait)]
    #[pyo3(signature = (slot, seconds, /))]
    fn wait(&self, py: Python<'_>, slot: usize, seconds: f64) -> PyResult<bool> {
        if interpreter_exit::is_exiting() {
            return Ok(true);
        }
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let look = py.native(|| self.core.wait(slot, limit))?;
        py.check_signals()?;
        Ok(look)
    }

    #[doc = words!(WorkerLoop.withdrawn)]
    fn withdrawn(&self, py: Python<'_>) -> PyResult<Vec<(i64, i64)>> {
        Ok(py.native(|| self.core.withdrawn())?)
    }

    #[doc = words!(WorkerLoop.stop)]
    fn stop(&self, py: Python<'_>) {
        py.native(|| self.core.stop());
    }

    #[doc = words!(WorkerLoop.stopped)]
    #[getter]
    fn stopped(&self, py: Python<'_>) -> bool {
        py.native(|| self.core.is_stopped())
    }

    #[doc = words!(WorkerLoop.blocked_by_this_process)]
    #[getter]
    fn blocked_by_this_process(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.core.is_blocked_by_this_process())?)
    }

    #[doc = words!(WorkerLoop.tend)]
    fn tend(&self, py: Python<'_>) -> PyResult<()> {
        log_kept(py, py.native(|| self.core.tend())?)
    }

    #[doc = words!(WorkerLoop.abandon)]
    fn abandon(&self, py: Python<'_>) {
        py.native(|| self.core.abandon());
    }

    #[doc = words!(WorkerLoop.close)]
    fn close(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.native(|| self.core.close())?)
    }
}
