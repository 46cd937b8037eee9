//! Taking items for work: claim, and what a claim brings in first.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::{Queue, Session, draw};
use crate::error::{Error, Result};
use crate::heartbeat::Beat;
use crate::item::{Item, Receipt};
use crate::lease;
use crate::outcome::{Ending, Settled};
use crate::sqlite::{self, Attention, Claimed, Flush, Grant, Place, Tx, Wait};
use crate::wake::LONGEST_NAP;

/// How many rows one claim brings in; the rest is left to the next claims.
const DUE_AT_A_TIME: usize = 2_000;
const EXPIRED_AT_A_TIME: usize = 16;
/// How often leases are compared with a clock that may have gone back.
const LOOK_AHEAD_MS: u64 = 1_000;

/// How to claim.
#[derive(Clone, Debug)]
pub struct Claim {
    pub limit: usize,
    /// `None`: the queue's.
    pub lease_ms: Option<i64>,
    pub from: From,
}

/// Where to claim from.
#[derive(Clone, Debug, Default)]
pub enum From {
    #[default]
    Queue,
    Group(String),
    /// Everything pending of one group that is free, in order.
    WholeGroup,
}

impl Default for Claim {
    fn default() -> Self {
        Self { limit: 1, lease_ms: None, from: From::Queue }
    }
}

/// A claimed item and what is known of the claim.
pub struct Held {
    pub item: Item,
    receipt: Receipt,
    batch: Option<i64>,
    /// What the heartbeat renews for; `extend` may have made it longer.
    lease_ms: Arc<AtomicI64>,
    is_kept: AtomicBool,
    place: Place,
    lost: Arc<AtomicBool>,
    settled: OnceLock<Settled>,
    generation: u64,
    since: Instant,
}

impl Held {
    /// Set once somebody has learned that the claim is gone.
    pub fn is_known_lost(&self) -> bool {
        // A beat that comes after the claim was ended finds nothing to renew; that is no loss.
        (self.lost.load(Ordering::SeqCst) && !self.is_settled()) || self.is_inherited()
    }

    /// A claim stays with the process that made it: in a forked child it counts as lost.
    pub(super) fn is_inherited(&self) -> bool {
        self.generation != sqlite::generation()
    }

    /// How the claim's end was recorded through this object, if it was.
    pub fn settled(&self) -> Option<Settled> {
        self.settled.get().copied()
    }

    pub fn is_settled(&self) -> bool {
        self.settled.get().is_some()
    }

    /// The length to extend the lease by. While a heartbeat keeps the claim it must not run out between two beats, and
    /// the next beat must not shorten it.
    pub(super) fn extension(&self, wanted_ms: i64) -> i64 {
        if !self.is_kept.load(Ordering::SeqCst) {
            return wanted_ms;
        }
        let longest = wanted_ms.max(self.lease_ms.load(Ordering::SeqCst));
        self.lease_ms.store(longest, Ordering::SeqCst);
        longest
    }

    pub(super) fn receipt(&self) -> Receipt {
        self.receipt
    }

    /// The claim as its row has it.
    pub(super) fn claimed(&self) -> Claimed {
        Claimed {
            fence: self.receipt.into(),
            retries: self.item.retries,
            max_retries: self.item.max_retries,
            worker: self.item.worker.clone(),
            started_at: self.item.started_at.clone(),
            cancelled: false,
            group: self.item.group.clone(),
            batch: self.batch,
        }
    }

    /// A second end of the same claim is refused, but the claim was not lost to anybody.
    pub(super) fn note_settled(&self, settled: Settled) {
        if settled != Settled::Lost {
            let _ = self.settled.set(settled);
        } else if !self.is_settled() {
            self.note_lost();
        }
    }

    pub(super) fn note_lost(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }
}

/// What one look at the queue gave.
pub(super) struct Taken {
    pub items: Vec<Held>,
    /// More rows wait to be brought in, so finding nothing does not mean that there is nothing.
    pub unfinished: bool,
}

impl Queue {
    /// Takes up to `limit` items; none when nothing is due.
    pub fn claim(&self, how: &Claim) -> Result<Vec<Held>> {
        self.claim_within(how, self.wait())
    }

    fn claim_within(&self, how: &Claim, wait: Wait) -> Result<Vec<Held>> {
        let session = self.session()?;
        loop {
            let taken = session.database.write(Flush::Normal, &self.options.clock, wait, |tx| self.take(tx, how))?;
            if !taken.items.is_empty() || !taken.unfinished {
                return Ok(taken.items);
            }
        }
    }

    /// Claims if there seems to be something, else sleeps a little: one turn of a wait that can be interrupted.
    pub fn claim_or_nap(&self, how: &Claim, limit: Duration) -> Result<Vec<Held>> {
        let session = self.session()?;
        let seen = session.database.bell().count();
        let attention = session.database.attention(self.name(), self.options.clock.now(), self.options.lease_ms)?;
        let promising =
            attention.ready.is_some() || attention.due || attention.expired || self.is_time_to_look_ahead(&session);
        if promising && !attention.paused {
            let wait = Wait { limit: limit.min(self.options.patience), ..self.wait() };
            match self.claim_within(how, wait) {
                Ok(items) if items.is_empty() => {}
                // Other writers were busy for all of the wait: nothing was found in it.
                Err(Error::Busy(_)) if limit < self.options.patience => return Ok(Vec::new()),
                claimed => return claimed,
            }
        }
        session.database.bell().wait(seen, limit.min(LONGEST_NAP));
        Ok(Vec::new())
    }

    /// Sleeps a little, less if something happens in this process.
    pub fn nap(&self, limit: Duration) -> Result<()> {
        let session = self.session()?;
        let bell = session.database.bell();
        bell.wait(bell.count(), limit.min(LONGEST_NAP));
        Ok(())
    }

    pub(super) fn take(&self, tx: &Tx, how: &Claim) -> Result<Taken> {
        let attention = tx.attention(self.name(), self.options.lease_ms)?;
        if attention.paused {
            return Ok(Taken { items: Vec::new(), unfinished: false });
        }
        let (brought_in, unfinished) = self.bring_in(tx, attention)?;
        // The first look has found the first item already, unless something came in since.
        let mut found = if brought_in { None } else { attention.ready };
        let whole_group = match how.from {
            From::WholeGroup => tx.next_group(self.name())?,
            From::Queue | From::Group(_) => None,
        };
        let batch = if whole_group.is_some() { Some(draw()?) } else { None };
        let mut items = Vec::new();
        while items.len() < how.limit {
            let next = match (&how.from, &whole_group) {
                (From::Queue, _) => match found.take() {
                    Some(id) => Some(id),
                    None => tx.next(self.name())?,
                },
                (From::Group(group), _) => tx.next_in_group(self.name(), group)?,
                (From::WholeGroup, Some(group)) => tx.next_of_batch(self.name(), group)?,
                (From::WholeGroup, None) => None,
            };
            let Some(id) = next else { break };
            if let Some(held) = self.take_one(tx, id, how, batch)? {
                items.push(held);
            }
        }
        Ok(Taken { items, unfinished })
    }

    /// Claims one item. A row that cannot be read as what it says it is fails at once, with its raw text kept.
    fn take_one(&self, tx: &Tx, id: i64, how: &Claim, batch: Option<i64>) -> Result<Option<Held>> {
        let lease_ms = how.lease_ms.unwrap_or(self.options.lease_ms);
        let token = draw()?;
        let Some(mut item) = tx.claim(id, &Grant { token, lease_ms, worker: &self.worker_name(), batch })? else {
            return Ok(None);
        };
        let damage = item.damage.take();
        let held = Held {
            receipt: Receipt { id: item.id, attempt: item.attempt, token },
            item,
            batch,
            lease_ms: Arc::new(AtomicI64::new(lease_ms)),
            is_kept: AtomicBool::new(false),
            place: self.place.clone(),
            lost: Arc::default(),
            settled: OnceLock::new(),
            generation: sqlite::generation(),
            since: Instant::now(),
        };
        match damage {
            None => Ok(Some(held)),
            Some(error) => {
                self.end(tx, &held.claimed(), Ending::Failed { error, retry_in: None, give_up: true })?;
                Ok(None)
            }
        }
    }

    /// Small, bounded steps: due items join the order, expired claims are taken back. Says whether anything was brought
    /// in, and whether some is left.
    fn bring_in(&self, tx: &Tx, attention: Attention) -> Result<(bool, bool)> {
        let due = if attention.due { tx.bring_in_due(self.name(), DUE_AT_A_TIME)? } else { 0 };
        let mut expired = Vec::new();
        if attention.expired {
            expired = tx.expired(self.name(), self.options.lease_ms, EXPIRED_AT_A_TIME)?;
        }
        let ahead = self.look_ahead(tx)?;
        let unfinished = due >= DUE_AT_A_TIME || expired.len() >= EXPIRED_AT_A_TIME || ahead.len() == EXPIRED_AT_A_TIME;
        let brought_in = due > 0 || !expired.is_empty() || !ahead.is_empty();
        for claim in expired.into_iter().chain(ahead) {
            let worker = claim.worker.clone();
            self.end(tx, &claim, Ending::Lost { worker })?;
        }
        Ok((brought_in, unfinished))
    }

    /// Claims that a clock that went back would hold too long. Finding them means walking all claims, so it is not
    /// done for every one of them.
    fn look_ahead(&self, tx: &Tx) -> Result<Vec<Claimed>> {
        let session = self.session()?;
        if !self.is_time_to_look_ahead(&session) {
            return Ok(Vec::new());
        }
        let ahead = tx.ahead(self.name(), self.options.lease_ms, EXPIRED_AT_A_TIME)?;
        if ahead.len() < EXPIRED_AT_A_TIME {
            session.looked_ahead_at.store(tx.now().ms(), Ordering::Relaxed);
        }
        Ok(ahead)
    }

    fn is_time_to_look_ahead(&self, session: &Session) -> bool {
        let last = session.looked_ahead_at.load(Ordering::Relaxed);
        self.options.clock.now().ms().abs_diff(last) >= LOOK_AHEAD_MS
    }

    fn worker_name(&self) -> String {
        match &self.options.worker {
            Some(name) => name.clone(),
            None => format!("{}:{}", lease::hostname(), std::process::id()),
        }
    }

    /// Renews a claim from a native thread until the beat is dropped; at once, if much of its lease is over. A claim that
    /// has ended cannot be kept.
    pub fn keep_alive(&self, held: &Held) -> Result<Beat> {
        self.check_is_ours(held)?;
        let lease = Duration::from_millis(u64::try_from(held.lease_ms.load(Ordering::SeqCst)).unwrap_or(0));
        let mut spent = held.since.elapsed();
        if held.is_settled() || held.is_known_lost() {
            return Err(Error::Stale(held.item.id));
        }
        if spent > lease / 6 {
            if !self.extend(held, held.lease_ms.load(Ordering::SeqCst))? {
                return Err(Error::Stale(held.item.id));
            }
            spent = Duration::ZERO;
        }
        let session = self.session()?;
        let (name, receipt, renewed) = (self.options.name.clone(), held.receipt, held.lease_ms.clone());
        let renew = Box::new(move |tx: &Tx| tx.extend(&name, receipt, renewed.load(Ordering::SeqCst)));
        let lease_ms = held.lease_ms.load(Ordering::SeqCst);
        held.is_kept.store(true, Ordering::SeqCst);
        Beat::start(session.database.clone(), self.options.clock.clone(), lease_ms, spent, held.lost.clone(), renew)
    }

    /// Whether the claim is gone, asking the file if nobody has noticed yet.
    pub fn is_lost(&self, held: &Held) -> Result<bool> {
        if held.is_known_lost() || held.is_settled() {
            return Ok(held.is_known_lost());
        }
        let gone = self.session()?.database.holds(self.name(), held.receipt)?.is_none();
        if gone {
            held.note_lost();
        }
        Ok(gone)
    }

    /// Whether the item was cancelled while it was held.
    pub fn is_cancelled(&self, held: &Held) -> Result<bool> {
        if held.is_inherited() || held.is_settled() {
            return Ok(false);
        }
        if self.session()?.database.holds(self.name(), held.receipt)? == Some(true) {
            return Ok(true);
        }
        let row = self.get(held.item.id)?;
        Ok(row.is_some_and(|item| item.status == "cancelled" && item.attempt == held.item.attempt))
    }

    /// A receipt says nothing about the items of another file or queue.
    pub(super) fn check_is_ours(&self, held: &Held) -> Result<()> {
        if held.place == self.place && held.item.queue == self.options.name {
            return Ok(());
        }
        Err(Error::Invalid(format!("item {} was claimed from another queue ('{}')", held.item.id, held.item.queue)))
    }
}
