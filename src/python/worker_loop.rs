//! `WorkerLoop`: the native half of a loop. Python calls the handlers; this records their results and claims the next items.

use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use pyo3::prelude::*;

use super::convert::json;
use super::ending;
use super::interpreter_exit::{self, Native};
use super::item::Item;
use super::next_stage::Next as Stage;
use super::queue::{log_kept, within_limit};
use crate::queue::{self, Next, Plan};
use crate::rules::ending::Meaning;
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
    /// Reads what a handler returned.
    fn read_ending(&self, result: &Bound<'_, PyAny>) -> PyResult<Ending> {
        if result.is_none() {
            return Ok(Ending::Done { result: None });
        }
        if let Ok(next) = result.cast::<Stage>() {
            return Ok(Ending::Next { next: Box::new(next.get().encoded_stage()?) });
        }
        let queues: Vec<_> = self.core.queues().iter().collect();
        within_limit(result.py(), &queues, |limit| json("the result", result, limit))
            .map(|result| Ending::Done { result: Some(result) })
    }
}

#[pymethods]
impl WorkerLoop {
    #[doc = words!(WorkerLoop.check_result)]
    #[pyo3(signature = (slot, result, /))]
    fn check_result(&self, slot: usize, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let ending = self.read_ending(result)?;
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
        let endings = results.iter().map(|result| self.read_ending(result));
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
        let meaning = ending::in_handler(exception, false)?;
        let held = items.iter().map(|item| item.get().held()).collect::<PyResult<Vec<_>>>()?;
        // One of a batch may have been suspended.
        let suspended = held.iter().enumerate().filter(|_| meaning == Meaning::Suspended);
        let suspended = suspended.filter(|(_, held)| !held.is_settled());
        let suspended = suspended.filter_map(|(index, held)| Some((index, held.suspended()?))).next();
        // The handler may have recorded the ends of the first items itself.
        let failed = held.iter().position(|held| !held.is_settled()).unwrap_or_default();
        let (index, ending) = match suspended {
            Some((index, ending)) => (index, Some(ending)),
            None => (failed, ending::of_raised(exception, meaning)?),
        };
        self.step(py, slot, ending.unwrap_or(Ending::released_now()).of_batch(index, items.len()))
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
