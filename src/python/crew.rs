//! `Crew`: the native half of a loop. Python calls the handlers, this records what came of them and claims the next items.

use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use pyo3::prelude::*;

use super::convert::json;
use super::ending;
use super::item::Item;
use super::leaving::{self, Native};
use super::queue::{log_kept, within_limit};
use crate::queue::{self, Next, Plan};
use crate::rules::outcome::{Ending, Settled};

#[pyclass(frozen, module = "membox_queue._native")]
pub struct Crew {
    crew: Arc<queue::Crew>,
}

/// The loops that may be running; without a lock, which a fork could leave locked.
static CREWS: ArcSwapOption<Vec<Weak<queue::Crew>>> = ArcSwapOption::const_empty();

/// Lets all loops of this process end.
pub fn stop_all() {
    let crews = CREWS.load_full();
    crews.iter().flat_map(|crews| crews.iter()).filter_map(Weak::upgrade).for_each(|crew| crew.stop());
}

/// How the last items were settled; what to do next; the number of the queue and the items to handle.
type Step = (Vec<&'static str>, &'static str, usize, Vec<Item>);

impl Crew {
    pub fn begin(py: Python<'_>, queues: Vec<Arc<queue::Queue>>, plan: Plan) -> PyResult<Option<Self>> {
        let begun = py.native(|| {
            let crew = queue::Crew::begin(queues, plan)?.map(Arc::new);
            CREWS.rcu(|known| {
                let known = known.iter().flat_map(|crews| crews.iter()).filter(|known| known.strong_count() > 0);
                Some(Arc::new(known.cloned().chain(crew.as_ref().map(Arc::downgrade)).collect::<Vec<_>>()))
            });
            Ok::<_, crate::Error>(crew)
        })?;
        Ok(begun.map(|crew| Self { crew }))
    }

    fn step(&self, py: Python<'_>, slot: usize, endings: Vec<Ending>) -> PyResult<Step> {
        let step = py.native(|| {
            // An interpreter that exits waits for its threads: they claim no more.
            if leaving::is_leaving() {
                self.crew.stop();
            }
            self.crew.step(slot, endings)
        })?;
        let settled = step.settled.into_iter().map(Settled::as_str).collect();
        Ok(match step.next {
            Next::Wait => (settled, "wait", 0, Vec::new()),
            Next::Over => (settled, "over", 0, Vec::new()),
            Next::Work(number, items) => {
                let queue = &self.crew.queues()[number];
                let items = items.into_iter().map(|held| Item::in_loop(held, queue.clone(), &self.crew)).collect();
                (settled, "work", number, items)
            }
        })
    }
}

#[pymethods]
impl Crew {
    #[pyo3(signature = (slot, /))]
    fn next(&self, py: Python<'_>, slot: usize) -> PyResult<Step> {
        self.step(py, slot, Vec::new())
    }

    #[pyo3(signature = (slot, results, /))]
    fn done(&self, py: Python<'_>, slot: usize, results: Vec<Bound<'_, PyAny>>) -> PyResult<Step> {
        // The GIL is released once a step: each release may cost a turn of every other thread. What is too long for the
        // item's own queue is refused there.
        let queues: Vec<_> = self.crew.queues().iter().collect();
        let read = |result: &Bound<'_, PyAny>| {
            if result.is_none() {
                return Ok(None);
            }
            within_limit(py, &queues, |limit| json("the result", result, limit)).map(Some)
        };
        let endings = results.iter().map(|result| Ok(Ending::Done { result: read(result)? }));
        let endings = endings.collect::<PyResult<Vec<_>>>()?;
        self.step(py, slot, endings)
    }

    /// The first unfinished item failed for this reason; those after it are given back.
    #[pyo3(signature = (slot, items, exception, /))]
    fn failed(
        &self,
        py: Python<'_>,
        slot: usize,
        items: Vec<Bound<'_, Item>>,
        exception: &Bound<'_, PyAny>,
    ) -> PyResult<Step> {
        let mut reason = ending::of_raised(exception, ending::in_handler(exception, false)?)?;
        let mut endings = Vec::with_capacity(items.len());
        for item in items {
            let is_open = !item.get().held()?.is_settled();
            let ending = if is_open { reason.take() } else { None };
            endings.push(ending.unwrap_or(Ending::given_back()));
        }
        self.step(py, slot, endings)
    }

    #[pyo3(signature = (slot, seconds, /))]
    fn wait(&self, py: Python<'_>, slot: usize, seconds: f64) -> PyResult<bool> {
        if leaving::is_leaving() {
            return Ok(true);
        }
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let look = py.native(|| self.crew.wait(slot, limit))?;
        py.check_signals()?;
        Ok(look)
    }

    fn stop(&self, py: Python<'_>) {
        py.native(|| self.crew.stop());
    }

    #[getter]
    fn stopped(&self, py: Python<'_>) -> bool {
        py.native(|| self.crew.is_stopped())
    }

    #[getter]
    fn held_up_by_this_process(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.native(|| self.crew.is_held_up_by_this_process())?)
    }

    fn tend(&self, py: Python<'_>) -> PyResult<()> {
        log_kept(py, py.native(|| self.crew.tend())?)
    }

    fn abandon(&self, py: Python<'_>) {
        py.native(|| self.crew.abandon());
    }

    fn close(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.native(|| self.crew.close())?)
    }
}
