//! One move of a worker: decides how its claims ended, has that recorded, and claims the next items.
//!
//! The store decides nothing. It returns lost claims and due schedules, and the next move begins with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::claim::{Claim, ClaimedItem};
use super::lease::LeaseHold;
use super::run::Verb;
use super::{Current, Queue, Session};
use crate::error::{Error, Result};
use crate::model::{Event, Receipt};
use crate::random;
use crate::rules::outcome::{Ending, Settled, conclude};
use crate::rules::settings::Settings;
use crate::store::{
    Advance, Claimed, Closing, Consequences, End, LeaseRef, Liveness, LockWait, Moved, Served, StoredSettings, Want,
    WhenDone,
};

/// How a claim of this process ended.
pub(super) struct Report<'a> {
    /// The number of the queue.
    pub queue: usize,
    pub held: &'a ClaimedItem,
    pub ending: Ending,
}

/// What the last move found and left alone: lost claims and due schedules.
#[derive(Default)]
pub(super) struct Findings {
    lost: Vec<(usize, Claimed)>,
    ticking: Vec<usize>,
}

impl Findings {
    pub fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.ticking.is_empty()
    }

    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }
}

/// What to claim, and on what condition.
pub(super) struct Claiming<'a> {
    pub how: &'a Claim,
    pub liveness: &'a Option<Arc<dyn Liveness>>,
    /// Set once nothing may be claimed any more.
    pub unless: &'a AtomicBool,
    pub lease: Option<(&'a str, &'a LeaseHold)>,
    pub closing: Option<Closing<'a>>,
    /// What the last move found.
    pub findings: Findings,
}

/// What a move did.
#[derive(Default)]
pub(super) struct Outcome {
    /// What became of each report.
    pub settled: Vec<Settled>,
    /// The queue of the claimed items.
    pub queue: usize,
    pub items: Vec<ClaimedItem>,
    /// To be given to the next move.
    pub findings: Findings,
    /// More items could become claimable, so an empty result does not mean that the queues are empty.
    pub is_more: bool,
    /// A lease has expired, but its live holder is about to renew it. If it does not, its item becomes claimable.
    pub awaits_renewal: bool,
    /// Items that could not be read and have failed.
    pub damaged: usize,
    /// Lost claims were ended.
    pub has_reclaimed: bool,
    /// Dependents were updated or items have expired, in any queue.
    pub has_flowed: bool,
    pub is_lease_lost: bool,
    pub is_over: bool,
}

/// A queue during one move.
struct Part<'a> {
    queue: &'a Queue,
    session: Arc<Session>,
    current: Arc<Current>,
    /// Stored settings that cannot be read. Finished work is recorded all the same; the next claim reports the error.
    unreadable: Option<StoredSettings>,
    looks_for_dead: bool,
    looks_ahead: bool,
}

/// Records the reports and claims the next items of any of the queues, in one transaction. An outcome means that the
/// reports are recorded; after an error none is.
pub(super) fn advance(
    queues: &[&Queue],
    verb: Verb,
    wait: LockWait,
    reports: &[Report],
    mut claiming: Option<Claiming>,
) -> Result<Outcome> {
    let mut parts = queues.iter().map(|queue| Part::new(queue)).collect::<Result<Vec<_>>>()?;
    let findings = claiming.as_mut().map(|claiming| std::mem::take(&mut claiming.findings)).unwrap_or_default();
    let looks_first = findings.is_empty();
    for number in findings.ticking {
        queues[number].tick_due(wait)?;
    }
    let (renewing, lost): (Vec<_>, Vec<_>) = findings
        .lost
        .into_iter()
        .partition(|(number, claim)| queues[*number].is_about_to_be_renewed(&parts[*number].session, claim));
    if claiming.is_some() && looks_first {
        for part in &mut parts {
            part.prepare_to_look(wait)?;
        }
    }
    let moved = loop {
        let ends = ends(&parts, reports, &lost)?;
        let want = claiming.as_ref().filter(|_| parts.iter().all(|part| part.unreadable.is_none()));
        let served = parts.iter().map(|part| part.served(want)).collect::<Vec<_>>();
        let advance = Advance {
            queues: &served,
            ends: &ends,
            want: want.map(|want| want.wanted(looks_first)),
            lease: want.and_then(|want| want.lease).map(|(key, hold)| LeaseRef { key, owner: hold.owner() }),
            closing: want.and_then(|want| want.closing).filter(|_| looks_first),
        };
        let leader = queues[reports.first().map_or(0, |report| report.queue)];
        let moved = leader.move_store(verb, |store, commit_sync| {
            let moved = store.advance(commit_sync, &leader.options.clock, wait, &advance)?;
            let events = events(reports, &moved);
            Ok((moved, events))
        })?;
        let is_stopped = moved.settled.len() < ends.len() || ends.is_empty();
        for (number, stored) in &moved.changed_settings {
            parts[*number].learn(stored, !ends.is_empty(), is_stopped)?;
        }
        if moved.changed_settings.is_empty() || !is_stopped {
            break moved;
        }
    };
    if looks_first && claiming.is_some() {
        parts.iter().for_each(|part| part.mark_looked(&moved));
    }
    let is_readable = parts.iter().all(|part| part.unreadable.is_none());
    let is_more = moved.is_more || !looks_first || !moved.changed_settings.is_empty() || !is_readable;
    let mut outcome = Outcome {
        settled: settled(reports, &moved).collect(),
        has_reclaimed: has_reclaimed(reports, &moved),
        has_flowed: moved.has_flowed,
        queue: moved.queue,
        findings: Findings { lost: moved.lost, ticking: moved.ticking },
        is_more,
        awaits_renewal: !renewing.is_empty(),
        is_lease_lost: moved.is_lease_lost,
        is_over: moved.is_over,
        ..Outcome::default()
    };
    if let Some(claiming) = claiming {
        let queue = queues[outcome.queue];
        let mut damaged = Vec::new();
        for granted in moved.items {
            match granted.item.damage {
                None => outcome.items.push(queue.hold(granted, claiming.liveness)),
                Some(_) => damaged.push(granted),
            }
        }
        outcome.damaged = damaged.len();
        outcome.is_more |= !damaged.is_empty();
        let failed = queue.fail_damaged(damaged, claiming.liveness, wait);
        // Items that were claimed are returned; the next claim meets the error again.
        if outcome.items.is_empty() && outcome.settled.is_empty() {
            failed?;
        }
    }
    Ok(outcome)
}

/// Whether something in one of the queues is due within this time.
pub(super) fn is_anything_due(queues: &[&Queue], within_ms: i64) -> Result<bool> {
    let parts = queues.iter().map(|queue| Part::new(queue)).collect::<Result<Vec<_>>>()?;
    let served = parts.iter().map(|part| part.served(None)).collect::<Vec<_>>();
    queues[0].view(|view| view.is_anything_due(&served, within_ms))
}

impl<'a> Part<'a> {
    fn new(queue: &'a Queue) -> Result<Self> {
        let (session, current) = (queue.session()?, queue.current.load_full());
        Ok(Self { queue, session, current, unreadable: None, looks_for_dead: false, looks_ahead: false })
    }

    /// Decides what to look for before the claim, and catches up with a clock that went back.
    fn prepare_to_look(&mut self, wait: LockWait) -> Result<()> {
        self.looks_for_dead = self.queue.is_time_to_look_for_dead(&self.session);
        self.looks_ahead = self.queue.is_time_to_look_ahead(&self.session);
        if self.looks_ahead { self.queue.follow_clock_back(&self.session, wait) } else { Ok(()) }
    }

    fn mark_looked(&self, moved: &Moved) {
        if self.looks_for_dead || moved.items.is_empty() {
            *self.session.looked_for_dead_at.lock() = Some(Instant::now());
        }
        // A claim that is no longer found as expired was renewed.
        self.session.renewals.lock().retain(|id, _| moved.lost.iter().any(|(_, claim)| claim.fence.id == *id));
        if self.looks_ahead && moved.lost.is_empty() && moved.changed_settings.is_empty() {
            self.session.looked_ahead_at.store(self.queue.options.clock.now().ms(), Ordering::Relaxed);
        }
    }

    fn served<'s>(&'s self, claiming: Option<&'s Claiming>) -> Served<'s> {
        let settings = &self.current.settings;
        let how = claiming.map(|claiming| claiming.how);
        Served {
            name: self.queue.name(),
            known: self.unreadable.as_ref().unwrap_or(&self.current.stored),
            settings,
            lease_ms: how.and_then(|how| how.lease_ms).unwrap_or(settings.lease_ms()),
            worker: how.and_then(|how| how.worker.as_deref()).unwrap_or(&self.session.worker_name),
            looks_for_dead: self.looks_for_dead,
            looks_ahead: self.looks_ahead,
        }
    }

    /// Adopts settings that another process has stored meanwhile. Finished work is recorded even if they cannot be
    /// read; the next claim reports that.
    fn learn(&mut self, stored: &StoredSettings, has_ends: bool, is_stopped: bool) -> Result<()> {
        match self.queue.learn_settings(stored.clone()) {
            Err(Error::Corrupt(_)) if has_ends && is_stopped => self.unreadable = Some(stored.clone()),
            Err(Error::Corrupt(_)) if has_ends => {}
            adopted => adopted?,
        }
        self.current = self.queue.current.load_full();
        Ok(())
    }
}

impl Claiming<'_> {
    fn wanted(&self, looks_first: bool) -> Want<'_> {
        Want {
            pick: &self.how.pick,
            limit: self.how.limit,
            holder: self.liveness.as_ref().map(|liveness| liveness.number()),
            looks_first,
            unless: self.unless,
        }
    }
}

/// Decides how each claim ended. A claim of the parent process is not this process's to end.
fn ends(parts: &[Part], reports: &[Report], lost: &[(usize, Claimed)]) -> Result<Vec<End>> {
    let own = reports.iter().filter(|report| !report.held.is_inherited()).map(|report| {
        let progress = report.held.unsaved_progress.latest();
        let ending = unless_it_went_on(report.held, report.ending.clone());
        let consequences = parts[report.queue].queue.consequences(report.held, &ending)?;
        Ok((report.queue, report.held.claimed(), ending, consequences, progress))
    });
    let lost = lost.iter().map(|(number, claim)| {
        let ending = Ending::Lost { worker: claim.worker.clone() };
        Ok((*number, claim.clone(), ending, Consequences::default(), None))
    });
    own.chain(lost)
        .map(|ended: Result<_>| {
            let (queue, claim, ending, consequences, progress) = ended?;
            let settings = &parts[queue].current.settings;
            decided(queue, claim, ending, settings).map(|end| End { consequences, progress, ..end })
        })
        .collect()
}

/// A handler that caught its suspension and went on has not done its work.
pub(super) fn unless_it_went_on(held: &ClaimedItem, ending: Ending) -> Ending {
    match held.went_on().filter(|_| ending.is_completed()) {
        Some(error) => Ending::Failed { error, retry_in: None, give_up: false },
        None => ending,
    }
}

/// Decides how a claim ended. Only a retry after a failure has a delay with jitter.
pub(super) fn decided(queue: usize, claim: Claimed, ending: Ending, settings: &Settings) -> Result<End> {
    let fraction = if matches!(ending, Ending::Failed { .. }) { random::fraction()? } else { 0.0 };
    let decision = conclude(ending, &settings.retry_state(claim.retries, claim.max_retries), fraction);
    Ok(End {
        queue,
        claim,
        decision,
        when_done: WhenDone::by(settings),
        consequences: Consequences::default(),
        progress: None,
    })
}

/// What became of each report; the store was not asked about those of the parent process.
fn settled(reports: &[Report], moved: &Moved) -> impl Iterator<Item = Settled> {
    let mut answers = moved.settled.iter().copied();
    let one = move |report: &Report| if report.held.is_inherited() { None } else { answers.next() };
    reports.iter().map(one).map(|answer| answer.unwrap_or(Settled::Lost))
}

/// Whether any of the lost claims was ended; their answers come after those of the reports.
fn has_reclaimed(reports: &[Report], moved: &Moved) -> bool {
    let own = reports.iter().filter(|report| !report.held.is_inherited()).count();
    moved.settled.iter().skip(own).any(|settled| *settled != Settled::Lost)
}

/// What the move changed, for waiting callers and workers.
fn events(reports: &[Report], moved: &Moved) -> Vec<Event> {
    let mut events = Vec::new();
    for (report, settled) in reports.iter().zip(settled(reports, moved)) {
        match settled {
            Settled::Released | Settled::Postponed | Settled::Moved => events.push(Event::Returned),
            // Its group is free meanwhile, and there may be new items.
            Settled::Blocked => events.push(Event::Enqueued),
            Settled::Done | Settled::Failed | Settled::Cancelled => {
                let Receipt { id, .. } = report.held.receipt();
                events.push(Event::Ended { id, frees_group: report.held.item.group.is_some() });
            }
            Settled::Lost => {}
        }
        if settled.is_completed() && report.held.has_children() {
            events.push(Event::Enqueued);
        }
    }
    if has_reclaimed(reports, moved) || moved.has_flowed {
        events.push(Event::Changed);
    }
    if !moved.items.is_empty() {
        events.push(Event::Claimed);
    }
    events.dedup();
    events
}
