//! The move of a worker: record ends, bring in what is due, claim. It is one transaction, and one round trip where the
//! engine is a server.
//!
//! What needs a rule is not decided by the engine. It returns lost claims and due schedules without touching them; the
//! caller decides, and sends the ends with the next move.

use std::sync::atomic::AtomicBool;

use super::{Claimed, Needed, Put, StoredSettings, View, WHOLE_QUEUE};
use crate::error::Result;
use crate::model::{IfFailed, Item, Pick, StepKind};
use crate::rules::outcome::{Decision, Settled};
use crate::rules::settings::Settings;

/// What one move does.
pub struct Advance<'a> {
    pub queues: &'a [Served<'a>],
    /// Recorded in this order, before anything is claimed.
    pub ends: &'a [End],
    pub want: Option<Want<'a>>,
    /// Claims only while this worker lease is held.
    pub lease: Option<LeaseRef<'a>>,
    /// If nothing is left, the worker leaves in the same transaction.
    pub closing: Option<Closing<'a>>,
}

/// A queue that the move concerns.
pub struct Served<'a> {
    pub name: &'a str,
    /// The stored settings that `settings` were computed from. If the store has others, the move stops.
    pub known: &'a StoredSettings,
    pub settings: &'a Settings,
    /// The lease of new claims.
    pub lease_ms: i64,
    /// Who claims, for people to read.
    pub worker: &'a str,
    /// Look for claims of dead processes, even if an item is ready.
    pub looks_for_dead: bool,
    /// Look for claims that a clock that went back would keep too long.
    pub looks_ahead: bool,
}

/// Which items to claim.
pub struct Want<'a> {
    pub pick: &'a Pick,
    pub limit: usize,
    /// The number by which other processes see that this one is alive.
    pub holder: Option<i64>,
    /// Where there are lost claims or due schedules, return those and claim nothing: their items may come first.
    pub looks_first: bool,
    /// If this is set by the time the locks are taken, nothing is claimed.
    pub unless: &'a AtomicBool,
}

/// How a worker leaves that finds nothing left: its lease is released, and its registration removed.
#[derive(Clone, Copy)]
pub struct Closing<'a> {
    /// It stays if something is due within this time.
    pub linger_ms: i64,
    /// The setting by which others see the worker.
    pub registration: Option<&'a str>,
}

/// A worker lease and the token of its owner.
pub struct LeaseRef<'a> {
    pub key: &'a str,
    pub owner: &'a str,
}

/// The end of a claim, as decided.
pub struct End {
    /// The number of its queue in [`Advance::queues`].
    pub queue: usize,
    pub claim: Claimed,
    pub decision: Decision,
    pub when_done: WhenDone,
    pub consequences: Consequences,
    /// Progress that is not stored yet.
    pub progress: Option<(f64, Option<String>)>,
}

/// What is written together with an end, if the end is.
#[derive(Clone, Default)]
pub struct Consequences {
    /// What the handler enqueued: written if it has completed its stage.
    pub children: Vec<Child>,
    /// What the item waits for from now on.
    pub needs: Vec<Needed>,
    pub if_failed: IfFailed,
    /// The name under which a sleep or a gather is recorded.
    pub step: Option<(String, StepKind)>,
}

/// An item that a handler enqueued, and its queue.
#[derive(Clone)]
pub struct Child {
    pub queue: String,
    pub put: Put,
}

/// What becomes of the row of a done item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenDone {
    Keep,
    DropContent,
    /// Remove it, unless its key is still reserved, a row of another table refers to it, or a caller waits for an end.
    Remove,
}

impl WhenDone {
    pub fn by(settings: &Settings) -> Self {
        if settings.removes_done() {
            WhenDone::Remove
        } else if settings.keeps_content() {
            WhenDone::Keep
        } else {
            WhenDone::DropContent
        }
    }
}

/// What a move did.
#[derive(Default)]
pub struct Moved {
    /// What became of each end.
    pub settled: Vec<Settled>,
    /// Queues whose settings the caller does not know, and what is stored. The move stopped before the first part that
    /// depends on them: before the ends, so that `settled` is empty, or before the claim.
    pub changed_settings: Vec<(usize, StoredSettings)>,
    /// The claimed items, all of the queue with this number.
    pub queue: usize,
    pub items: Vec<Granted>,
    /// Claims that are over without an end, by queue.
    pub lost: Vec<(usize, Claimed)>,
    /// Queues with due schedules.
    pub ticking: Vec<usize>,
    /// Dependents were freed, cancelled or brought back, or items have expired, in any queue.
    pub has_flowed: bool,
    /// More items could become claimable, so an empty result does not mean that the queues are empty.
    pub is_more: bool,
    /// The worker lease belongs to another worker, so nothing was claimed.
    pub is_lease_lost: bool,
    /// Nothing is left, and the worker lease is released.
    pub is_over: bool,
}

/// A claimed item and the terms of its claim.
pub struct Granted {
    pub item: Item,
    pub token: i64,
    pub lease_ms: i64,
    /// The number that the claims of one group share.
    pub batch: Option<i64>,
}

impl dyn View + '_ {
    /// Whether a delayed item, a tick, or a ready item that waits for its queue's rate is due within this time, or an item
    /// waits for one that is in progress.
    pub fn is_anything_due(&self, queues: &[Served], within_ms: i64) -> Result<bool> {
        if within_ms <= 0 {
            return Ok(false);
        }
        let latest = self.now().plus(within_ms);
        for served in queues {
            let start = match served.settings.rate {
                Some(rate) => self.rate_wait(served.name, WHOLE_QUEUE, rate)?,
                None => None,
            };
            // A free slot of the rate matters only if an item is ready to use it.
            let start = if start.is_some() && self.is_ready(served.name, None, false)? { start } else { None };
            if self.is_blocked_by_work(served.name)? {
                return Ok(true);
            }
            if self.next_due(served.name, true)?.into_iter().chain(start).any(|due| due <= latest) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
