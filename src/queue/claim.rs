//! Claiming items: the claim itself, and the due and lost items it makes claimable first.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::Queue;
use super::progress::UnsavedProgress;
use super::rate::FREED_AT_A_TIME;
use super::reclaim::RENEWAL_PAUSE;
use super::run::{Change, Verb};
use super::schedule::TICKS_AT_A_TIME;
use crate::error::{Error, Result};
use crate::heartbeat::{GRACE, Heartbeat};
use crate::model::{Event, Item, Receipt, Status};
use crate::process;
use crate::random;
use crate::rules::outcome::{Ending, Settled};
use crate::store::{Address, Claimed, Grant, Liveness, Renewal, Renews, Scout, Wait};
use crate::sync::Mutex;

/// How many due items one claim makes claimable; the rest is left to the next claims.
const DUE_AT_A_TIME: usize = 2_000;

#[derive(Clone, Debug)]
pub struct Claim {
    pub limit: usize,
    /// `None`: the queue's setting.
    pub lease_ms: Option<i64>,
    /// `None`: the queue's worker name.
    pub worker: Option<String>,
    pub pick: Pick,
}

/// Which items to claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pick {
    #[default]
    Queue,
    Group(String),
    /// All pending items of one free group, in order: the named group, or the first free one.
    WholeGroup(Option<String>),
    /// Whichever comes first: all pending items of one free group, or one item that has no group.
    GroupOrOne,
}

impl Default for Claim {
    fn default() -> Self {
        Self { limit: 1, lease_ms: None, worker: None, pick: Pick::Queue }
    }
}

/// A claimed item and the state of its claim.
pub struct ClaimedItem {
    pub item: Item,
    receipt: Receipt,
    batch: Option<i64>,
    /// The lease the heartbeat renews with; `extend` may have lengthened it.
    lease_ms: Arc<AtomicI64>,
    is_kept: AtomicBool,
    address: Address,
    lost: Arc<AtomicBool>,
    settled: OnceLock<Settled>,
    /// The loop released the item while its handler was still running.
    is_withdrawn: AtomicBool,
    /// Shows other processes that this process can still end the claim.
    liveness: Mutex<Option<Arc<dyn Liveness>>>,
    pub(super) unsaved_progress: Arc<UnsavedProgress>,
    generation: u64,
    since: Instant,
}

impl ClaimedItem {
    /// Whether this process has learned that the claim is lost.
    pub fn is_known_lost(&self) -> bool {
        // A renewal that runs after the claim ended finds nothing to renew; the claim is not lost then.
        let is_lost = self.lost.load(Ordering::SeqCst) && !self.is_settled();
        is_lost || self.is_withdrawn.load(Ordering::SeqCst) || self.is_inherited()
    }

    /// A claim belongs to the process that made it: in a forked child it counts as lost.
    pub(super) fn is_inherited(&self) -> bool {
        self.generation != process::generation()
    }

    /// How the claim's end was recorded through this object, if it was.
    pub fn settled(&self) -> Option<Settled> {
        self.settled.get().copied()
    }

    pub fn is_settled(&self) -> bool {
        self.settled.get().is_some()
    }

    /// Returns how long to extend the lease. A claim with a heartbeat must not expire between two renewals, and the
    /// next renewal must not shorten it.
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

    /// The claim in the form its row has.
    pub(super) fn claimed(&self) -> Claimed {
        Claimed {
            fence: self.receipt.into(),
            retries: self.item.retries,
            max_retries: self.item.max_retries,
            worker: self.item.worker.clone(),
            started_at: self.item.started_at.clone(),
            cancelled: false,
            batch: self.batch,
            holder: None,
            lease_ms: None,
        }
    }

    /// Ending a claim a second time is refused, but that does not make the claim lost.
    pub(super) fn note_settled(&self, settled: Settled) {
        if settled.took_effect() {
            let _ = self.settled.set(settled);
            self.liveness.lock().take();
        } else if !self.is_settled() {
            self.note_lost();
        }
    }

    pub(super) fn note_lost(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }

    /// The loop has released the item while its handler is still running. For the handler, the claim is lost.
    pub(super) fn withdraw(&self) {
        self.is_withdrawn.store(true, Ordering::SeqCst);
    }
}

impl Drop for ClaimedItem {
    /// A claim dropped without an end stays claimed until its lease expires, while this process lives.
    fn drop(&mut self) {
        let lease = Duration::from_millis(self.lease_ms.load(Ordering::SeqCst).unsigned_abs());
        let liveness = self.liveness.lock().take();
        if let Some(liveness) = liveness.filter(|_| !self.is_settled() && !self.is_known_lost()) {
            liveness.keep_for(lease.saturating_sub(self.since.elapsed()));
        }
    }
}

/// The result of one claim transaction.
pub(super) struct Taken {
    pub items: Vec<ClaimedItem>,
    /// More rows could become claimable, so an empty result does not mean that the queue is empty.
    pub unfinished: bool,
    /// A lease has expired, but its live holder is about to renew it. If it does not, its item becomes claimable.
    pub awaits_renewal: bool,
}

impl Queue {
    /// Claims up to `limit` items; returns none when nothing is due.
    pub fn claim(&self, how: &Claim) -> Result<Vec<ClaimedItem>> {
        self.claim_within(how, self.wait())
    }

    /// An empty claim does not wait for other writers: a read outside the write lock finds out whether anything is
    /// claimable. The read is skipped if the last claim found something and the lock is free, because it rereads every
    /// changed page.
    pub(super) fn claim_within(&self, how: &Claim, wait: Wait) -> Result<Vec<ClaimedItem>> {
        let session = self.session()?;
        let started = Instant::now();
        let mut looks = !session.has_found.load(Ordering::Relaxed);
        loop {
            if looks && !self.may_find(&how.pick)? {
                self.tend_beside();
                return Ok(Vec::new());
            }
            let limit = if looks { wait.limit } else { Duration::ZERO };
            let taken = match self.try_to_claim(how, Wait { limit, ..wait }) {
                Err(Error::Busy(_)) if !looks => {
                    looks = true;
                    continue;
                }
                taken => taken?,
            };
            session.has_found.store(!taken.items.is_empty(), Ordering::Relaxed);
            let may_find_more = taken.unfinished || (taken.awaits_renewal && started.elapsed() < wait.limit);
            if !taken.items.is_empty() || !may_find_more {
                self.tend_beside();
                return Ok(taken.items);
            }
            if taken.awaits_renewal {
                std::thread::sleep(RENEWAL_PAUSE);
                if (wait.interrupted)() {
                    return Err(Error::Interrupted);
                }
            }
        }
    }

    fn try_to_claim(&self, how: &Claim, wait: Wait) -> Result<Taken> {
        let liveness = self.liveness(wait)?;
        self.run_within(Verb::Claim, wait, |tx| self.take(tx, how, &liveness))
    }

    pub(super) fn take(&self, tx: &Change, how: &Claim, liveness: &Option<Arc<dyn Liveness>>) -> Result<Taken> {
        let mut scout = tx.scout(self.name(), self.settings().settings.lease_ms(), false)?;
        if scout.ready.is_none() || self.is_time_to_look_ahead(&*self.session()?) {
            scout = tx.scout(self.name(), self.settings().settings.lease_ms(), true)?;
        }
        self.adopt_settings(std::mem::take(&mut scout.settings))?;
        if scout.paused {
            return Ok(Taken { items: Vec::new(), unfinished: false, awaits_renewal: false });
        }
        let (brought_in, mut unfinished, awaits_renewal) = self.bring_in(tx, &scout)?;
        let several = self.settings().settings.group_limit.is_some_and(|limit| limit > 1);
        // The scout has already found the first item, unless more items became claimable since.
        let mut found = if brought_in { None } else { scout.ready };
        let whole_group = match &how.pick {
            Pick::WholeGroup(Some(group)) => tx.next_free_in_group(self.name(), group)?,
            Pick::WholeGroup(None) => tx.next_group(self.name())?,
            Pick::GroupOrOne => match tx.next_batch(self.name())? {
                Some((id, true)) => Some(id),
                Some((id, false)) => {
                    found = Some(id);
                    None
                }
                None => None,
            },
            Pick::Queue | Pick::Group(_) => None,
        };
        let batch = if whole_group.is_some() { Some(random::token()?) } else { None };
        let mut items = Vec::new();
        while items.len() < how.limit && self.may_start(tx)? {
            let next = match (&how.pick, whole_group) {
                (Pick::Queue, _) => self.first(tx, found.take(), several)?,
                (Pick::Group(group), _) => tx.next_in_group(self.name(), group)?,
                (Pick::WholeGroup(_) | Pick::GroupOrOne, Some(head)) => tx.next_of_batch(self.name(), head)?,
                (Pick::GroupOrOne, None) if items.is_empty() => self.first(tx, found.take(), several)?,
                (Pick::WholeGroup(_) | Pick::GroupOrOne, None) => None,
            };
            let Some(id) = next else { break };
            let Some(held) = self.take_one(tx, id, how, batch, liveness)? else { continue };
            let group_goes_on = self.count_start(tx, &held.item)?;
            tx.tell(Event::Claimed);
            items.push(held);
            if batch.is_some() && !group_goes_on {
                break;
            }
        }
        if items.is_empty() && !unfinished {
            unfinished = self.reclaim_from_dead(tx)?;
        }
        Ok(Taken { items, unfinished, awaits_renewal })
    }

    /// Returns the first claimable item, unless the scout found it. Where a group may run several items at once,
    /// several are at its head. Priority does not order those.
    fn first(&self, tx: &Change, found: Option<i64>, several: bool) -> Result<Option<i64>> {
        match if found.is_some() { found } else { tx.next(self.name())? } {
            Some(id) if several => Ok(tx.next_beside(self.name(), id)?.or(Some(id))),
            first => Ok(first),
        }
    }

    /// Claims one item. An item with damaged content fails at once, and its raw text is kept.
    fn take_one(
        &self,
        tx: &Change,
        id: i64,
        how: &Claim,
        batch: Option<i64>,
        liveness: &Option<Arc<dyn Liveness>>,
    ) -> Result<Option<ClaimedItem>> {
        let lease_ms = how.lease_ms.unwrap_or(self.settings().settings.lease_ms());
        let token = random::token()?;
        let holder = liveness.as_ref().map(|liveness| liveness.number());
        let own_name = self.worker_name()?;
        let worker = how.worker.as_deref().unwrap_or(&own_name);
        let grant = Grant { token, lease_ms, worker, batch, holder };
        let Some(mut item) = tx.claim(id, &grant)? else {
            return Err(tx.without_effect(&format!("the claim of item {id}")));
        };
        let damage = item.damage.take();
        let held = ClaimedItem {
            receipt: Receipt { id: item.id, attempt: item.attempt, token },
            item,
            batch,
            lease_ms: Arc::new(AtomicI64::new(lease_ms)),
            is_kept: AtomicBool::new(false),
            address: self.address.clone(),
            lost: Arc::default(),
            settled: OnceLock::new(),
            is_withdrawn: AtomicBool::new(false),
            liveness: Mutex::new(liveness.clone()),
            unsaved_progress: Arc::default(),
            generation: process::generation(),
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

    /// Makes due items claimable and reclaims lost claims, in small, bounded steps. Returns whether anything became
    /// claimable, whether some is left, and whether a renewal is awaited.
    fn bring_in(&self, tx: &Change, scout: &Scout) -> Result<(bool, bool, bool)> {
        let ticked = if scout.ticking { self.tick(tx)? } else { 0 };
        let freed = if scout.freed { self.free_groups(tx)? } else { 0 };
        let due = if scout.due { tx.bring_in_due(self.name(), DUE_AT_A_TIME)? } else { 0 };
        let reclaimed = self.reclaim(tx, scout.expired, self.is_time_to_look_for_dead()?)?;
        let unfinished =
            ticked >= TICKS_AT_A_TIME || freed >= FREED_AT_A_TIME || due >= DUE_AT_A_TIME || reclaimed.more;
        Ok((due + ticked + freed > 0 || reclaimed.any, unfinished, reclaimed.awaits_renewal))
    }

    /// Renews a claim from a native thread until the `Heartbeat` is dropped or `longest` has passed. Renews at once if
    /// much of the lease has passed. A claim that has ended is refused.
    pub fn keep_alive(&self, held: &ClaimedItem, longest: Option<Duration>) -> Result<Heartbeat> {
        self.check_is_ours(held)?;
        let lease_ms = held.lease_ms.load(Ordering::SeqCst);
        let lease = Duration::from_millis(u64::try_from(lease_ms).unwrap_or(0));
        let mut spent = held.since.elapsed();
        if held.is_settled() || held.is_known_lost() {
            return Err(self.why_stale(held)?);
        }
        if spent > lease / 6 {
            if !self.extend(held, lease_ms)? {
                return Err(self.why_stale(held)?);
            }
            spent = Duration::ZERO;
        }
        let session = self.session()?;
        let (name, receipt, renewed) = (self.options.name.clone(), held.receipt, held.lease_ms.clone());
        let unsaved_progress = held.unsaved_progress.clone();
        // Another writer may delay a renewal. The lease is granted one renewal interval longer, so that the delay does
        // not lose the item.
        let renewal = Box::new(move |_| {
            let lease_ms = renewed.load(Ordering::SeqCst);
            let what = Renews::Claim { queue: name.clone(), receipt, progress: unsaved_progress.latest() };
            Renewal { what, lease_ms: lease_ms + lease_ms / GRACE }
        });
        held.is_kept.store(true, Ordering::SeqCst);
        let (store, clock) = (session.store.clone(), self.options.clock.clone());
        let beat = Heartbeat::start(store, clock, lease_ms, spent, longest, held.lost.clone(), renewal)?;
        held.unsaved_progress.kept_by(beat.nudge());
        Ok(beat)
    }

    /// Whether the claim is lost. Reads the file if this process does not know yet.
    pub fn is_lost(&self, held: &ClaimedItem) -> Result<bool> {
        if held.is_known_lost() || held.is_settled() {
            return Ok(held.is_known_lost());
        }
        let gone = self.read(|view| view.holds(self.name(), held.receipt))?.is_none();
        if gone {
            held.note_lost();
        }
        Ok(gone)
    }

    /// Whether the item was cancelled while it was claimed.
    pub fn is_cancelled(&self, held: &ClaimedItem) -> Result<bool> {
        if held.is_inherited() || held.is_settled() {
            return Ok(false);
        }
        if self.read(|view| view.holds(self.name(), held.receipt))? == Some(true) {
            return Ok(true);
        }
        let row = self.get(held.item.id)?;
        Ok(row.is_some_and(|item| item.known_status() == Some(Status::Cancelled) && item.attempt == held.item.attempt))
    }

    /// Returns the error that explains why a claim is over, as far as its item still shows.
    pub fn why_stale(&self, held: &ClaimedItem) -> Result<Error> {
        let id = held.item.id;
        if held.is_inherited() {
            return Ok(Error::Stale {
                id,
                why: "it stays with the process that made it, and this is a child of that".into(),
            });
        }
        if let Some(settled) = held.settled() {
            return Ok(Error::Stale { id, why: format!("it was ended here before ({})", settled.as_str()) });
        }
        let row = self.get(id)?;
        Ok(Error::Stale { id, why: why_lost(&held.item, row.as_ref()) })
    }

    /// A receipt is valid only for items of its own file and queue.
    pub(super) fn check_is_ours(&self, held: &ClaimedItem) -> Result<()> {
        if held.address == self.address && held.item.queue == self.options.name {
            return Ok(());
        }
        Err(Error::Invalid(format!("item {} was claimed from another queue ('{}')", held.item.id, held.item.queue)))
    }
}

/// Explains from the item's current state why a claim was lost.
fn why_lost(claimed: &Item, now: Option<&Item>) -> String {
    let Some(now) = now else { return "the item was removed".into() };
    let taken_back = "it was taken back, because its lease ran out or its holder was taken for dead";
    match (now.attempt > claimed.attempt, now.known_status()) {
        (true, Some(Status::Processing)) => {
            let worker = now.worker.as_deref().unwrap_or("another worker");
            format!("{taken_back}; {worker} has the item now (attempt {})", now.attempt)
        }
        (false, Some(Status::Cancelled)) => "the item was cancelled".into(),
        (false, Some(Status::Done)) => "the item was marked done without it".into(),
        _ => format!("{taken_back}; the item is {} now", now.status),
    }
}
