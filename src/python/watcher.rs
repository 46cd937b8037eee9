//! `Watcher`: one thread that waits on behalf of all asyncio tasks that wait for one file.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;

use super::interpreter_exit::{self, Native};
use super::item::Item;
use super::queue::Queue;
use crate::queue::{self, Claim, WaitGoal};

#[doc = words!(Watcher)]
#[pyclass(frozen, module = "membox_queue._native")]
pub struct Watcher(pub Arc<queue::Watcher>);

#[doc = words!(ClaimPlan)]
#[pyclass(frozen, module = "membox_queue._native")]
pub struct ClaimPlan {
    pub how: Claim,
    pub wait: Duration,
}

#[pymethods]
impl ClaimPlan {
    #[doc = words!(ClaimPlan.wait)]
    #[getter]
    fn wait(&self) -> f64 {
        as_seconds(self.wait)
    }
}

#[pymethods]
impl Watcher {
    #[doc = words!(Watcher.draw)]
    fn draw(&self) -> u64 {
        self.0.draw()
    }

    #[doc = words!(Watcher.await_ending)]
    #[pyo3(signature = (ticket, queue, id, /))]
    fn await_ending(&self, py: Python<'_>, ticket: u64, queue: &Queue, id: i64) -> bool {
        py.native(|| self.0.await_ending(ticket, queue.core.clone(), id))
    }

    #[doc = words!(Watcher.join_line)]
    #[pyo3(signature = (ticket, queue, plan, /))]
    fn join_line(&self, py: Python<'_>, ticket: u64, queue: &Queue, plan: &ClaimPlan) -> bool {
        py.native(|| self.0.join_line(ticket, queue.core.clone(), WaitGoal::Item(plan.how.pick.clone())))
    }

    #[doc = words!(Watcher.join_line_for_room)]
    #[pyo3(signature = (ticket, queue, count, /))]
    fn join_line_for_room(&self, py: Python<'_>, ticket: u64, queue: &Queue, count: i64) -> bool {
        py.native(|| self.0.join_line(ticket, queue.core.clone(), WaitGoal::Room(count)))
    }

    #[doc = words!(Watcher.await_turn)]
    #[pyo3(signature = (ticket, /))]
    fn await_turn(&self, py: Python<'_>, ticket: u64) -> bool {
        py.native(|| self.0.await_turn(ticket))
    }

    #[doc = words!(Watcher.leave)]
    #[pyo3(signature = (ticket, /))]
    fn leave(&self, py: Python<'_>, ticket: u64) -> bool {
        py.native(|| self.0.leave(ticket))
    }

    #[doc = words!(Watcher.turns)]
    fn turns(&self, py: Python<'_>) -> Option<Vec<(Vec<u64>, Option<Item>)>> {
        let turns = py.native(|| {
            if interpreter_exit::is_exiting() {
                return Some(self.0.all_turns()).filter(|turns| !turns.is_empty());
            }
            self.0.turns()
        })?;
        let shown = |turn: crate::queue::Turn| (turn.tickets, turn.item.map(|item| Item::read(item, turn.queue)));
        Some(turns.into_iter().map(shown).collect())
    }

    #[doc = words!(Watcher.close_if_idle)]
    fn close_if_idle(&self, py: Python<'_>) {
        py.native(|| self.0.close_if_idle());
    }
}

pub fn as_seconds(time: Duration) -> f64 {
    if time == Duration::MAX { f64::INFINITY } else { time.as_secs_f64() }
}
