//! `claim`, `claim_many` and `claim_group`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::{Arg, Queue};
use crate::model::Pick;
use crate::python::convert::{lease_ms, patience, positive, text};
use crate::python::ending;
use crate::python::interpreter_exit::{self, Native};
use crate::python::item::Item;
use crate::python::new_item::group as group_name;
use crate::python::waits;
use crate::python::watcher::ClaimPlan;
use crate::queue::{Claim, ClaimedItem};
use crate::rules::ending::Meaning;
use crate::rules::outcome::Ending;

#[pymethods]
impl Queue {
    #[doc = words!(Queue.claim)]
    #[pyo3(signature = (*, wait = None, lease = None, group = None, worker = None),
           text_signature = "($self, *, wait=0.0, lease=None, group=None, worker=None)")]
    fn claim(&self, py: Python<'_>, wait: Arg, lease: Arg, group: Arg, worker: Arg) -> PyResult<Option<Item>> {
        let from = group_name(group)?.map_or(Pick::Queue, Pick::Group);
        Ok(self.claim_or_wait(py, how(1, from, lease, worker)?, wait)?.pop())
    }

    #[doc = words!(Queue.claim_many)]
    #[pyo3(signature = (limit, *, wait = None, lease = None, group = None, worker = None),
           text_signature = "($self, limit, *, wait=0.0, lease=None, group=None, worker=None)")]
    fn claim_many(
        &self,
        py: Python<'_>,
        limit: &Bound<'_, PyAny>,
        wait: Arg,
        lease: Arg,
        group: Arg,
        worker: Arg,
    ) -> PyResult<Vec<Item>> {
        let from = group_name(group)?.map_or(Pick::Queue, Pick::Group);
        self.claim_or_wait(py, how(positive("limit", limit)? as usize, from, lease, worker)?, wait)
    }

    #[doc = words!(Queue.claim_group)]
    #[pyo3(signature = (group = None, *, limit = None, wait = None, lease = None, worker = None),
           text_signature = "($self, group=None, *, limit=None, wait=0.0, lease=None, worker=None)")]
    fn claim_group(
        &self,
        py: Python<'_>,
        group: Arg,
        limit: Arg,
        wait: Arg,
        lease: Arg,
        worker: Arg,
    ) -> PyResult<Vec<Item>> {
        self.claim_or_wait(py, how(most(limit)?, whole_group(group_name(group)?), lease, worker)?, wait)
    }

    #[doc = words!(Queue._plan_claim)]
    #[pyo3(signature = (limit, kind, wait, lease, group, worker, /))]
    #[allow(clippy::too_many_arguments)]
    fn _plan_claim(
        &self,
        limit: &Bound<'_, PyAny>,
        kind: &str,
        wait: Arg,
        lease: Arg,
        group: Arg,
        worker: Arg,
    ) -> PyResult<ClaimPlan> {
        let (limit, from) = match (kind, group_name(group)?) {
            ("group", group) => (most(Some(limit).filter(|limit| !limit.is_none()))?, whole_group(group)),
            (_, Some(group)) => (positive("limit", limit)? as usize, Pick::Group(group)),
            _ => (positive("limit", limit)? as usize, Pick::Queue),
        };
        let wait = wait.map(|wait| patience("wait", wait)).transpose()?.unwrap_or_default();
        Ok(ClaimPlan { how: how(limit, from, lease, worker)?, wait })
    }

    #[doc = words!(Queue._claim)]
    #[pyo3(signature = (plan, left, /))]
    fn _claim(&self, py: Python<'_>, plan: &ClaimPlan, left: f64) -> PyResult<Vec<Item>> {
        interpreter_exit::check(py)?;
        let left = Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX);
        self.claim_fitting(py, &plan.how, || match plan.wait {
            Duration::ZERO => Ok(py.native(|| self.core.claim(&plan.how))?),
            _ => Ok(py.native(|| self.core.claim_if_worth_it(&plan.how, left))?),
        })
    }
}

impl Queue {
    fn claim_or_wait(&self, py: Python<'_>, how: Claim, wait: Arg) -> PyResult<Vec<Item>> {
        let wait = wait.map(|wait| patience("wait", wait)).transpose()?.unwrap_or_default();
        let started = Instant::now();
        self.claim_fitting(py, &how, || waits::for_items(py, &self.core, &how, wait.saturating_sub(started.elapsed())))
    }

    /// Claims until an item fits the queue's type, or there is no item.
    fn claim_fitting(
        &self,
        py: Python<'_>,
        how: &Claim,
        claim: impl Fn() -> PyResult<Vec<ClaimedItem>>,
    ) -> PyResult<Vec<Item>> {
        loop {
            let held = claim()?;
            let is_empty = held.is_empty();
            let items = held.into_iter().map(|held| Item::claimed(Arc::new(held), self.core.clone())).collect();
            let Some(shape) = self.shape.get(py) else { return Ok(items) };
            let in_order = matches!(how.pick, Pick::WholeGroup(_) | Pick::GroupOrOne);
            let fitting = self.fail_misfits(py, shape.bind(py), items, in_order)?;
            if is_empty || !fitting.is_empty() {
                return Ok(fitting);
            }
        }
    }

    /// Returns the items whose content fits the queue's type, and fails the others. If the items must keep their order,
    /// those behind a failed one are released. An error that stops the program releases all.
    fn fail_misfits(
        &self,
        py: Python<'_>,
        shape: &Bound<'_, PyAny>,
        mut items: Vec<Item>,
        in_order: bool,
    ) -> PyResult<Vec<Item>> {
        let mut index = 0;
        while index < items.len() {
            let Err(error) = items[index].fit(py, shape) else {
                index += 1;
                continue;
            };
            let meaning = ending::in_handler(error.value(py), false)?;
            let Some(ending) = ending::of_raised(error.value(py), meaning)? else { return Err(error) };
            let is_misfit = meaning == Meaning::Failed;
            let first = if is_misfit { index } else { 0 };
            let end = if is_misfit && !in_order { index + 1 } else { items.len() };
            let batch = items.drain(first..end).collect::<Vec<_>>();
            if let Err(failure) = self.finish_batch(py, &batch, index - first, ending) {
                self.finish_batch(py, &items, 0, Ending::released_now()).ok();
                return Err(failure);
            }
            if !is_misfit {
                return Err(error);
            }
        }
        Ok(items)
    }

    fn finish_batch(&self, py: Python<'_>, items: &[Item], index: usize, ending: Ending) -> PyResult<()> {
        if items.is_empty() {
            return Ok(());
        }
        let held = items.iter().map(|item| Ok(&**item.held()?)).collect::<PyResult<Vec<&ClaimedItem>>>()?;
        py.native(|| self.core.finish_batch(&held, index, ending))?;
        Ok(())
    }
}

fn how(limit: usize, pick: Pick, lease: Arg, worker: Arg) -> PyResult<Claim> {
    let lease_ms = lease.map(|lease| lease_ms("lease", lease)).transpose()?;
    Ok(Claim { limit, lease_ms, worker: text("worker", worker)?, pick })
}

/// The named group; else the first free one, or a single item without a group, as in the loops.
fn whole_group(group: Option<String>) -> Pick {
    group.map_or(Pick::GroupOrOne, Pick::WholeGroup)
}

/// The largest number of items to claim from a group.
fn most(limit: Arg) -> PyResult<usize> {
    Ok(limit.map(|limit| positive("limit", limit)).transpose()?.map_or(usize::MAX, |limit| limit as usize))
}
