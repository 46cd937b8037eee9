//! What a handler does once, by name: steps, sleeps, and waiting for items that it makes.
//!
//! A sleep or a gather suspends the handler. What is to be recorded is kept with the claim, until the claim ends.

use super::Queue;
use super::claim::ClaimedItem;
use super::run::Verb;
use crate::error::{Error, Result};
use crate::model::{IfFailed, Item, LATEST_MS, NewItem, OnDuplicate, RecordedStep, StepKind};
use crate::rules::name;
use crate::rules::outcome::{Ending, went_on};
use crate::store::{Consequences, Needed};

/// What a suspended handler waits for.
#[derive(Clone)]
pub(super) struct Suspension {
    name: String,
    what: SuspendedFor,
}

#[derive(Clone)]
enum SuspendedFor {
    Time { delay: i64 },
    Items { needs: Vec<Needed>, if_failed: IfFailed },
}

/// What a call found that may suspend its handler.
pub enum Durable<T> {
    /// It was done before, or needs no waiting.
    Found(T),
    /// The handler is to be left; it is called again when there is something to go on with.
    Suspended,
}

impl Suspension {
    fn kind(&self) -> StepKind {
        match self.what {
            SuspendedFor::Time { .. } => StepKind::Sleep,
            SuspendedFor::Items { .. } => StepKind::Gather,
        }
    }
}

impl ClaimedItem {
    /// How the claim ends if its handler was left by a suspension; `None` if it has none.
    pub fn suspended(&self) -> Option<Ending> {
        self.suspension.lock().as_ref().map(|suspension| match suspension.what {
            SuspendedFor::Time { delay } => Ending::Slept { delay },
            SuspendedFor::Items { .. } => Ending::Gathered,
        })
    }

    /// Why the claim cannot end as done or moved: its handler has gone on after a suspension. `None` if it has not.
    pub(super) fn went_on(&self) -> Option<String> {
        self.suspension.lock().as_ref().map(|suspension| went_on(suspension.kind().as_str(), &suspension.name))
    }

    /// What is recorded with the end of a suspended claim.
    pub(super) fn consequences_of_suspension(&self) -> Consequences {
        let Some(suspension) = self.suspension.lock().clone() else { return Consequences::default() };
        let step = Some((suspension.name.clone(), suspension.kind()));
        match suspension.what {
            SuspendedFor::Time { .. } => Consequences { step, ..Consequences::default() },
            SuspendedFor::Items { needs, if_failed } => {
                Consequences { step, needs, if_failed, ..Consequences::default() }
            }
        }
    }

    fn suspend(&self, name: &str, what: SuspendedFor) {
        *self.suspension.lock() = Some(Suspension { name: name.to_owned(), what });
    }
}

impl Queue {
    /// Begins a step: returns what an earlier attempt recorded. A name is used once in an attempt.
    pub fn find_step(&self, held: &ClaimedItem, name: &str) -> Result<Durable<Option<String>>> {
        if held.suspended().is_some() {
            return Ok(Durable::Suspended);
        }
        Ok(Durable::Found(self.recorded(held, name, StepKind::Step)?.map(|step| step.result)))
    }

    /// Records the result of a step, JSON text, if the claim is still held.
    pub fn add_step(&self, held: &ClaimedItem, name: &str, result: &str) -> Result<()> {
        self.check_size(result.len())?;
        let is_held = !held.is_inherited()
            && self.run(Verb::AddStep, |tx| tx.add_step(self.name(), held.receipt(), name, StepKind::Step, result))?;
        if is_held { Ok(()) } else { Err(self.why_stale(held)?) }
    }

    /// Lets the handler sleep once: `Found` if it has slept.
    pub fn sleep_once(&self, held: &ClaimedItem, name: &str, delay: i64) -> Result<Durable<()>> {
        if held.suspended().is_some() {
            return Ok(Durable::Suspended);
        }
        let now = self.options.clock.now().ms();
        if now.saturating_add(delay) > LATEST_MS {
            return Err(Error::Invalid(format!("a sleep of {} seconds reaches beyond the year 9999", delay / 1000)));
        }
        let until = self.recorded(held, name, StepKind::Sleep)?.and_then(|step| step.result.parse::<i64>().ok());
        let left = until.map_or(delay, |until| until.saturating_sub(now));
        if left <= 0 {
            return Ok(Durable::Found(()));
        }
        held.suspend(name, SuspendedFor::Time { delay: left });
        Ok(Durable::Suspended)
    }

    /// Lets the handler wait once for items that it makes: `Found` if they are done, in the order given. What was
    /// removed meanwhile is `None`.
    pub fn gather(
        &self,
        held: &ClaimedItem,
        name: &str,
        items: Vec<NewItem>,
        if_failed: IfFailed,
    ) -> Result<Durable<Vec<Option<Item>>>> {
        if held.suspended().is_some() {
            return Ok(Durable::Suspended);
        }
        if let Some(step) = self.recorded(held, name, StepKind::Gather)? {
            let places = serde_json::from_str::<(usize, usize)>(&step.result);
            let (first, count) = places.map_err(|error| Error::Corrupt(format!("the gather {name:?}: {error}")))?;
            return Ok(Durable::Found(self.after(held.item.id)?.into_iter().skip(first).take(count).collect()));
        }
        if items.is_empty() {
            return Ok(Durable::Found(Vec::new()));
        }
        let skips = |item: &NewItem| item.key.as_ref().is_some_and(|key| key.on_duplicate == OnDuplicate::Skip);
        if items.iter().any(skips) {
            let text = "gather needs every one of its items; on_duplicate='skip' could leave one out";
            return Err(Error::Invalid(text.into()));
        }
        let needs =
            self.prepare_children(held, items)?.into_iter().map(|child| Needed::Put(child.queue, Box::new(child.put)));
        held.suspend(name, SuspendedFor::Items { needs: needs.collect(), if_failed });
        Ok(Durable::Suspended)
    }

    fn recorded(&self, held: &ClaimedItem, name: &str, kind: StepKind) -> Result<Option<RecordedStep>> {
        self.check_is_ours(held)?;
        name::check("the name of a step", name)?;
        if held.is_settled() || held.is_known_lost() {
            return Err(self.why_stale(held)?);
        }
        if !held.names.lock().insert(name.to_owned()) {
            let text = format!(
                "the name {name:?} is used twice in this attempt; a step is known by its name, so each needs its own"
            );
            return Err(Error::Invalid(text));
        }
        // The first attempt has nothing before it.
        if held.item.attempt <= 1 {
            return Ok(None);
        }
        match self.read(|view| view.step(held.item.id, held.item.stage, name))? {
            Some(step) if step.kind != kind => Err(Error::Invalid(format!(
                "{name:?} was recorded as a {} by an earlier attempt and is a {} now; give the new one another name",
                step.kind.as_str(),
                kind.as_str()
            ))),
            step => Ok(step),
        }
    }
}
