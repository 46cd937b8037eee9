//! `Watcher`: one thread that waits on behalf of all asyncio tasks that wait for one file.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;

use super::interpreter_exit::{self, Native};
use super::item::Item;
use super::queue::Queue;
use crate::queue::{self, Claim, Want};

#[pyclass(frozen, module = "membox_queue._native")]
pub struct Watcher(pub Arc<queue::Watcher>);

/// How to claim and how long to wait: arguments that are parsed once.
#[pyclass(frozen, module = "membox_queue._native")]
pub struct ClaimPlan {
    pub how: Claim,
    pub wait: Duration,
}

#[pymethods]
impl ClaimPlan {
    /// Seconds to wait; `inf` means without limit.
    #[getter]
    fn wait(&self) -> f64 {
        as_seconds(self.wait)
    }
}

#[pymethods]
impl Watcher {
    fn draw(&self) -> u64 {
        self.0.draw()
    }

    #[pyo3(signature = (ticket, queue, id, /))]
    fn await_ending(&self, py: Python<'_>, ticket: u64, queue: &Queue, id: i64) -> bool {
        py.native(|| self.0.await_ending(ticket, queue.core.clone(), id))
    }

    #[pyo3(signature = (ticket, queue, plan, /))]
    fn stand(&self, py: Python<'_>, ticket: u64, queue: &Queue, plan: &ClaimPlan) -> bool {
        py.native(|| self.0.stand(ticket, queue.core.clone(), Want::Item(plan.how.pick.clone())))
    }

    #[pyo3(signature = (ticket, queue, count, /))]
    fn stand_for_room(&self, py: Python<'_>, ticket: u64, queue: &Queue, count: i64) -> bool {
        py.native(|| self.0.stand(ticket, queue.core.clone(), Want::Room(count)))
    }

    #[pyo3(signature = (ticket, /))]
    fn await_turn(&self, py: Python<'_>, ticket: u64) -> bool {
        py.native(|| self.0.await_turn(ticket))
    }

    #[pyo3(signature = (ticket, /))]
    fn leave(&self, py: Python<'_>, ticket: u64) -> bool {
        py.native(|| self.0.leave(ticket))
    }

    fn turns(&self, py: Python<'_>) -> Option<Vec<(Vec<u64>, Option<Item>)>> {
        let turns = py.native(|| {
            if interpreter_exit::is_exiting() {
                return Some(self.0.everybody()).filter(|turns| !turns.is_empty());
            }
            self.0.turns()
        })?;
        Some(turns.into_iter().map(|turn| (turn.tickets, turn.item.map(Item::read))).collect())
    }

    fn let_go(&self, py: Python<'_>) {
        py.native(|| self.0.let_go());
    }
}

pub fn as_seconds(time: Duration) -> f64 {
    if time == Duration::MAX { f64::INFINITY } else { time.as_secs_f64() }
}
