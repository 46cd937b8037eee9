//! Claiming items, and what this process knows about its claims.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::Queue;
use super::advance::{Claiming, Findings, Outcome, Report, advance};
use super::progress::UnsavedProgress;
use super::promise::Promise;
use super::reclaim::RENEWAL_PAUSE;
use super::run::Verb;
use super::step::Suspension;
use crate::error::{Error, Result};
use crate::heartbeat::{GRACE, Heartbeat};
use crate::model::{Item, Pick, Receipt, Status};
use crate::process;
use crate::rules::outcome::{Ending, Settled};
use crate::store::{Address, Child, Claimed, Granted, Liveness, LockWait, Renewal, Renews};
use crate::sync::Mutex;

#[derive(Clone, Debug)]
pub struct Claim {
    pub limit: usize,
    /// `None`: the queue's setting.
    pub lease_ms: Option<i64>,
    /// `None`: the queue's worker name.
    pub worker: Option<String>,
    pub pick: Pick,
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
    /// The end that was said in the caller's own transaction, until it is known whether that was committed.
    promise: Mutex<Option<Settled>>,
    /// The promised end was not committed, and the item failed for that.
    is_broken: AtomicBool,
    /// The loop released the item while its handler was still running.
    is_withdrawn: AtomicBool,
    /// Shows other processes that this process can still end the claim.
    liveness: Mutex<Option<Arc<dyn Liveness>>>,
    /// What the handler enqueued, to be written with the end of its stage.
    children: Mutex<Vec<Child>>,
    /// The names of steps that this attempt has used.
    pub(super) names: Mutex<HashSet<String>>,
    pub(super) suspension: Mutex<Option<Suspension>>,
    pub(super) unsaved_progress: Arc<UnsavedProgress>,
    generation: u64,
    since: Instant,
}

impl ClaimedItem {
    /// Whether this process has learned that the claim is lost.
    pub fn is_known_lost(&self) -> bool {
        // A renewal that runs after the claim ended finds nothing to renew; the claim is not lost then.
        let is_lost = self.lost.load(Ordering::SeqCst) && !self.is_settled() && self.promised().is_none();
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

    /// The end that was said in the caller's own transaction.
    pub fn promised(&self) -> Option<Settled> {
        *self.promise.lock()
    }

    pub(super) fn promise(&self, settled: Settled) {
        *self.promise.lock() = Some(settled);
    }

    /// The transaction was rolled back, or the receipt is known to be valid.
    pub(super) fn forget_promise(&self) {
        *self.promise.lock() = None;
    }

    /// Whether the item failed because its promised end was not committed.
    pub fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::SeqCst)
    }

    pub(super) fn mark_broken(&self) {
        self.is_broken.store(true, Ordering::SeqCst);
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
            has_group: self.item.group.is_some(),
            fence: self.receipt.into(),
            retries: self.item.retries,
            max_retries: self.item.max_retries,
            worker: self.item.worker.clone(),
            started_at: self.item.started_at.clone(),
            cancelled: false,
            batch: self.batch,
            holder: None,
            lease_ms: None,
            awaits_renewal: false,
        }
    }

    pub(super) fn add_child(&self, child: Child) {
        self.children.lock().push(child);
    }

    pub(super) fn children(&self) -> Vec<Child> {
        self.children.lock().clone()
    }

    pub(super) fn has_children(&self) -> bool {
        !self.children.lock().is_empty()
    }

    /// Ending a claim a second time is refused, but that does not make the claim lost.
    pub(super) fn mark_settled(&self, settled: Settled) {
        if settled.took_effect() {
            let _ = self.settled.set(settled);
            self.liveness.lock().take();
        } else if !self.is_settled() {
            self.mark_lost();
        }
    }

    pub(super) fn mark_lost(&self) {
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

impl Queue {
    /// Claims up to `limit` items; returns none when nothing is due.
    pub fn claim(&self, how: &Claim) -> Result<Vec<ClaimedItem>> {
        self.claim_within(how, self.wait())
    }

    /// An empty claim does not wait for other writers: a read outside the write lock finds out whether anything is
    /// claimable. The read is skipped if the last claim found something and the lock is free, because it rereads every
    /// changed page.
    pub(super) fn claim_within(&self, how: &Claim, wait: LockWait) -> Result<Vec<ClaimedItem>> {
        let session = self.session()?;
        let started = Instant::now();
        let mut looks = !session.has_found.load(Ordering::Relaxed);
        let mut items = Vec::new();
        let mut findings = Findings::default();
        loop {
            if looks && !self.may_find(&how.pick)? {
                self.tend_if_due();
                return Ok(items);
            }
            let limit = if looks { wait.limit } else { Duration::ZERO };
            let rest;
            let wanted = match items.len() {
                0 => how,
                found => {
                    rest = Claim { limit: how.limit - found, ..how.clone() };
                    &rest
                }
            };
            let outcome = match self.try_to_claim(wanted, std::mem::take(&mut findings), LockWait { limit, ..wait }) {
                Err(Error::Busy(_)) if !looks => {
                    looks = true;
                    continue;
                }
                // What was claimed before the error is returned.
                Err(_) if !items.is_empty() => return Ok(items),
                outcome => outcome?,
            };
            items.extend(outcome.items);
            session.has_found.store(!items.is_empty(), Ordering::Relaxed);
            findings = outcome.findings;
            // Items that could not be read have made room for others.
            let is_short = outcome.damaged > 0 && items.len() < how.limit && !matches!(how.pick, Pick::WholeGroup(_));
            let may_find_more = match outcome.awaits_renewal {
                true => started.elapsed() < wait.limit,
                false => !findings.is_empty() || outcome.is_more,
            };
            if !is_short && (!items.is_empty() || !may_find_more) {
                self.tend_if_due();
                return Ok(items);
            }
            if outcome.awaits_renewal {
                std::thread::sleep(RENEWAL_PAUSE);
                if (wait.interrupted)() {
                    return Err(Error::Interrupted);
                }
            }
        }
    }

    fn try_to_claim(&self, how: &Claim, findings: Findings, wait: LockWait) -> Result<Outcome> {
        let liveness = &self.liveness(wait)?;
        let claiming =
            Claiming { how, liveness, unless: &AtomicBool::new(false), lease: None, closing: None, findings };
        advance(&[self], Verb::Claim, wait, &[], Some(claiming))
    }

    pub(super) fn hold(&self, granted: Granted, liveness: &Option<Arc<dyn Liveness>>) -> ClaimedItem {
        let Granted { item, token, lease_ms, batch } = granted;
        ClaimedItem {
            receipt: Receipt { id: item.id, attempt: item.attempt, token },
            item,
            batch,
            lease_ms: Arc::new(AtomicI64::new(lease_ms)),
            is_kept: AtomicBool::new(false),
            address: self.address.clone(),
            lost: Arc::default(),
            settled: OnceLock::new(),
            promise: Mutex::default(),
            is_broken: AtomicBool::new(false),
            is_withdrawn: AtomicBool::new(false),
            liveness: Mutex::new(liveness.clone()),
            children: Mutex::default(),
            names: Mutex::default(),
            suspension: Mutex::default(),
            unsaved_progress: Arc::default(),
            generation: process::generation(),
            since: Instant::now(),
        }
    }

    /// Fails claimed items whose content cannot be read. Their raw text is kept.
    pub(super) fn fail_damaged(
        &self,
        damaged: Vec<Granted>,
        liveness: &Option<Arc<dyn Liveness>>,
        wait: LockWait,
    ) -> Result<()> {
        if damaged.is_empty() {
            return Ok(());
        }
        let held = damaged.into_iter().map(|mut granted| {
            let error = granted.item.damage.take().unwrap_or_default();
            // The rest of its batch goes on.
            (self.hold(Granted { batch: None, ..granted }, liveness), error)
        });
        let held = held.collect::<Vec<_>>();
        let failed = |error: &String| Ending::Failed { error: error.clone(), retry_in: None, give_up: true };
        let reports = held.iter().map(|(held, error)| Report { queue: 0, held, ending: failed(error) });
        self.record(Verb::Reclaim, wait, &reports.collect::<Vec<_>>()).map(drop)
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
        if let Some(promise) = self.look_at_promise(held)? {
            return Ok(promise == Promise::Lost);
        }
        let gone = self.read(|view| view.holds(self.name(), held.receipt))?.is_none();
        if gone {
            held.mark_lost();
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

    /// Whether the deadline of a claimed item has passed.
    pub fn has_expired(&self, held: &ClaimedItem) -> bool {
        held.item.expires_at.is_some_and(|at| at <= self.options.clock.now().ms())
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
        if let Some(said) = held.promised()
            && self.look_at_promise(held)? != Some(Promise::Lost)
        {
            let why = format!("it was ended here before ({}), in a transaction of the caller", said.as_str());
            return Ok(Error::Stale { id, why });
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
    let reclaimed = "it was reclaimed, because its lease expired or its worker seemed dead";
    match (now.attempt > claimed.attempt, now.known_status()) {
        (true, Some(Status::Processing)) => {
            let worker = now.worker.as_deref().unwrap_or("another worker");
            format!("{reclaimed}; {worker} has the item now (attempt {})", now.attempt)
        }
        (false, Some(Status::Cancelled)) => "the item was cancelled".into(),
        // An end by a worker names it.
        (false, Some(Status::Done | Status::Failed)) if now.worker.is_none() => {
            "the item was answered without it".into()
        }
        (false, Some(Status::Done)) => "the item was marked done without it".into(),
        _ => format!("{reclaimed}; the item is {} now", now.status),
    }
}
