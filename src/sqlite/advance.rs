//! The move of a worker on SQLite: records ends, brings in what is due, and claims, in one transaction.

use std::sync::atomic::Ordering;

use super::Transaction;
use super::claim::Grant;
use crate::error::Result;
use crate::model::Pick;
use crate::random;
use crate::rules::outcome::Settled;
use crate::store::{
    Advance, Claimed, End, EnqueueTx, FinishTx, FlowTx, Granted, LeaseRef, LeaseTx, Moved, RateTx, ScheduleTx, Scout,
    Served, SettingsTx, View, Want,
};

/// How many lost claims of a queue a move returns for one reason; the rest is left to the next move.
const LOST_AT_A_TIME: usize = 16;
/// How many due items a move makes claimable.
const DUE_AT_A_TIME: usize = 2_000;
/// How many items that have expired a move cancels.
const EXPIRED_AT_A_TIME: usize = 1_000;
/// How many groups, held by their rate, a move makes claimable.
const FREED_AT_A_TIME: usize = 64;
/// How many claims of other programs are given a lease at once.
const GRANTED_AT_A_TIME: usize = 2_000;

/// What to claim first: one item, or the whole group of that item.
struct Candidate {
    queue: usize,
    id: i64,
    is_group: bool,
}

impl Transaction<'_> {
    pub(super) fn advance(&self, advance: &Advance) -> Result<Moved> {
        self.keep_own_books()?;
        let mut moved = Moved::default();
        if !self.knows_settings_of_ends(advance, &mut moved)? {
            return Ok(moved);
        }
        for end in advance.ends {
            let settled = self.end(advance.queues[end.queue].name, end)?;
            // Whatever goes on may be due at a time of its own; so may the rest of a batch.
            if !settled.is_over() || end.claim.batch.is_some() {
                self.anything_may_be_due();
            }
            moved.settled.push(settled);
        }
        self.forget_dead_holders(advance)?;
        let ended = ended(advance.ends, &moved.settled);
        if !ended.is_empty() {
            let updated = self.update_dependents(&ended)?;
            if updated.any || updated.is_more {
                self.anything_may_be_due();
            }
            moved.has_flowed |= updated.any;
        }
        // The transaction may have waited long for the write lock.
        let Some(want) = advance.want.as_ref().filter(|want| !want.unless.load(Ordering::SeqCst)) else {
            return Ok(moved);
        };
        if let Some(lease) = &advance.lease
            && !self.holds_lease(lease)?
        {
            moved.is_lease_lost = true;
            return Ok(moved);
        }
        let Some(candidate) = self.look(advance.queues, want, &mut moved)? else {
            self.close_if_nothing_is_left(advance, &mut moved)?;
            return Ok(moved);
        };
        moved.queue = candidate.queue;
        moved.items = self.claim_from(&advance.queues[candidate.queue], want, &candidate)?;
        Ok(moved)
    }

    fn knows_settings_of_ends(&self, advance: &Advance, moved: &mut Moved) -> Result<bool> {
        for (number, served) in advance.queues.iter().enumerate() {
            if advance.ends.iter().any(|end| end.queue == number) {
                let stored = self.settings(served.name)?;
                if stored != *served.known {
                    moved.changed_settings.push((number, stored));
                }
            }
        }
        Ok(moved.changed_settings.is_empty())
    }

    /// Removes the records of dead processes whose last claims have just been ended.
    fn forget_dead_holders(&self, advance: &Advance) -> Result<()> {
        for end in advance.ends.iter().filter(|end| end.decision.was_lost) {
            let queue = advance.queues[end.queue].name;
            if let Some(holder) = end.claim.holder
                && !self.database.is_alive(holder)
                && self.claims_of(queue, holder, 1)?.is_empty()
            {
                self.remove_holder(queue, holder)?;
            }
        }
        Ok(())
    }

    /// Brings in what is due and returns what to claim first: of the highest priority, then the oldest.
    fn look(&self, queues: &[Served], want: &Want, moved: &mut Moved) -> Result<Option<Candidate>> {
        let mut best: Option<(i64, Candidate)> = None;
        let mut has_looked = false;
        for (number, served) in queues.iter().enumerate() {
            let lease_ms = served.settings.lease_ms();
            let known = self.known_scout(served)?;
            let is_known = known.is_some();
            let mut scout = known.map_or_else(|| self.scout(served.name, lease_ms, false), Ok)?;
            if scout.ready.is_none() || served.looks_ahead {
                scout = self.scout(served.name, lease_ms, true)?;
            }
            // Dependencies and deadlines are those of the whole file. They do not pause.
            if scout.flow && !has_looked {
                has_looked = true;
                if !self.let_flow(moved)? {
                    return Ok(None);
                }
                scout = self.scout(served.name, lease_ms, true)?;
            }
            if scout.settings != *served.known {
                moved.changed_settings.push((number, scout.settings));
                continue;
            }
            if !is_known {
                self.learn_next_due(served, &scout);
            }
            if scout.paused && want.limit > 0 {
                continue;
            }
            if want.looks_first {
                self.find_lost(number, served, &scout, &mut moved.lost)?;
                if scout.ticking {
                    // The index named a schedule. If the table has none, it would be found again endlessly.
                    if self.schedules_due(served.name, 1)?.is_empty() {
                        return Err(self.without_effect("a schedule"));
                    }
                    moved.ticking.push(number);
                }
            }
            // Once the move cannot claim any more, the other queues need not be brought up to date.
            let is_blocked = !moved.lost.is_empty() || !moved.ticking.is_empty() || !moved.changed_settings.is_empty();
            if is_blocked || want.limit == 0 {
                continue;
            }
            let ready = if self.bring_in(served, &scout, moved)? { None } else { scout.ready };
            if let Some(candidate) = self.candidate(number, served, want.pick, ready)? {
                // One queue alone needs no comparison.
                let priority = if queues.len() > 1 { self.priority(candidate.id)? } else { 0 };
                let is_first = best.as_ref().is_none_or(|(highest, first)| {
                    priority > *highest || (priority == *highest && candidate.id < first.id)
                });
                if is_first {
                    best = Some((priority, candidate));
                }
            }
        }
        if !moved.lost.is_empty() || !moved.ticking.is_empty() || !moved.changed_settings.is_empty() {
            return Ok(None);
        }
        if best.is_none() && want.looks_first && !moved.is_more {
            for (number, served) in queues.iter().enumerate().filter(|(_, served)| !served.looks_for_dead) {
                self.find_dead(number, served, &mut moved.lost)?;
                self.check_held(number, served, &moved.lost)?;
            }
        }
        Ok(best.map(|(_, candidate)| candidate))
    }

    /// Cancels items that have expired and updates dependents, a bounded number of each. Returns `false` if there may be
    /// more expired items, so that none of them is claimed.
    fn let_flow(&self, moved: &mut Moved) -> Result<bool> {
        self.anything_may_be_due();
        let expired = self.expire(EXPIRED_AT_A_TIME)?;
        let updated = self.update_dependents(&[])?;
        moved.has_flowed |= expired > 0 || updated.any;
        moved.is_more |= updated.is_more || expired >= EXPIRED_AT_A_TIME;
        Ok(expired < EXPIRED_AT_A_TIME)
    }

    /// Finds claims that are over without an end, and leaves them as they are.
    fn find_lost(&self, number: usize, served: &Served, scout: &Scout, lost: &mut Vec<(usize, Claimed)>) -> Result<()> {
        let lease_ms = served.settings.lease_ms();
        if served.looks_for_dead {
            self.find_dead(number, served, lost)?;
        }
        let mut found = Vec::new();
        if scout.expired {
            self.grant_lease(served.name, lease_ms, GRANTED_AT_A_TIME)?;
            found = self.expired(served.name, lease_ms, LOST_AT_A_TIME)?;
            for claim in &mut found {
                claim.awaits_renewal = claim.holder.is_some_and(|holder| self.database.waits_to_renew(holder));
            }
        }
        if served.looks_ahead {
            found.extend(self.ahead(served.name, lease_ms, LOST_AT_A_TIME)?);
        }
        for claim in found {
            // A claim may be lost for several reasons.
            if lost.iter().all(|(_, known)| known.fence.id != claim.fence.id) {
                lost.push((number, claim));
            }
        }
        self.check_held(number, served, lost)
    }

    /// An index named these rows. If the table disagrees, their ends could not be recorded, and they would be found again
    /// endlessly.
    fn check_held(&self, number: usize, served: &Served, lost: &[(usize, Claimed)]) -> Result<()> {
        for (_, claim) in lost.iter().filter(|(of, _)| *of == number) {
            if !self.is_held(served.name, &claim.fence)? {
                return Err(self.without_effect(&format!("item {}", claim.fence.id)));
            }
        }
        Ok(())
    }

    /// Finds claims of dead processes, whose liveness locks the system has dropped.
    fn find_dead(&self, number: usize, served: &Served, lost: &mut Vec<(usize, Claimed)>) -> Result<()> {
        for holder in self.holders(served.name)? {
            if self.database.is_alive(holder) {
                continue;
            }
            let claims = self.claims_of(served.name, holder, LOST_AT_A_TIME)?;
            if claims.is_empty() {
                self.remove_holder(served.name, holder)?;
            }
            lost.extend(claims.into_iter().map(|claim| (number, claim)));
        }
        Ok(())
    }

    /// Makes due items and freed groups claimable, in small, bounded steps. Returns whether anything became claimable.
    fn bring_in(&self, served: &Served, scout: &Scout, moved: &mut Moved) -> Result<bool> {
        // Without a known rate, the longest possible hold is unknown.
        let furthest = served.settings.group_rate.map_or(i64::MAX, |rate| rate.furthest(self.now));
        let freed = if scout.freed { self.free_groups(served.name, furthest, FREED_AT_A_TIME)?.len() } else { 0 };
        let due = if scout.due { self.bring_in_due(served.name, DUE_AT_A_TIME)? } else { 0 };
        moved.is_more |= freed >= FREED_AT_A_TIME || due >= DUE_AT_A_TIME;
        Ok(freed + due > 0)
    }

    /// `ready` is the first claimable item, if the scout has found it.
    fn candidate(&self, queue: usize, served: &Served, pick: &Pick, ready: Option<i64>) -> Result<Option<Candidate>> {
        if !self.may_start(served)? {
            return Ok(None);
        }
        let name = served.name;
        let (id, is_group) = match pick {
            Pick::Queue => (if ready.is_some() { ready } else { self.next(name)? }, false),
            Pick::Group(group) => (self.next_in_group(name, group)?, false),
            Pick::WholeGroup(group) => (self.next_free_in_group(name, group)?, true),
            Pick::GroupOrOne => match self.next_batch(name)? {
                Some((id, has_group)) => (Some(id), has_group),
                None => (None, false),
            },
        };
        Ok(id.map(|id| Candidate { queue, id, is_group }))
    }

    fn claim_from(&self, served: &Served, want: &Want, candidate: &Candidate) -> Result<Vec<Granted>> {
        let batch = if candidate.is_group { Some(random::token()?) } else { None };
        let mut first = Some(candidate.id);
        let mut items = Vec::new();
        while items.len() < want.limit && (items.is_empty() || self.may_start(served)?) {
            let next = match want.pick {
                _ if candidate.is_group => self.next_of_batch(served.name, candidate.id)?,
                Pick::Group(group) => self.next_in_group(served.name, group)?,
                Pick::Queue => self.first_beside(served, first.take())?,
                // One item without a group.
                _ => first.take(),
            };
            let Some(id) = next else { break };
            let grant = Grant {
                token: random::token()?,
                lease_ms: served.lease_ms,
                worker: served.worker,
                batch,
                holder: want.holder,
            };
            let Some(item) = self.claim(id, &grant)? else {
                return Err(self.without_effect(&format!("the claim of item {id}")));
            };
            // An item that cannot be read is not handled, so its claim uses nothing up.
            let group_goes_on = item.damage.is_some() || self.count_start(served, &item)?;
            items.push(Granted { item, token: grant.token, lease_ms: grant.lease_ms, batch });
            if batch.is_some() && !group_goes_on {
                break;
            }
        }
        Ok(items)
    }

    /// Returns the first claimable item, unless it was found already. Where a group may run several items at once,
    /// several are at its head. Priority does not order those.
    fn first_beside(&self, served: &Served, found: Option<i64>) -> Result<Option<i64>> {
        let several = served.settings.group_limit.is_some_and(|limit| limit > 1);
        match if found.is_some() { found } else { self.next(served.name)? } {
            Some(id) if several => Ok(self.next_beside(served.name, id)?.or(Some(id))),
            first => Ok(first),
        }
    }

    /// Ends a drain: the look that finds nothing left and the worker's leaving are one transaction.
    fn close_if_nothing_is_left(&self, advance: &Advance, moved: &mut Moved) -> Result<()> {
        let Some(closing) = &advance.closing else { return Ok(()) };
        let is_open =
            moved.is_more || !moved.lost.is_empty() || !moved.ticking.is_empty() || !moved.changed_settings.is_empty();
        if is_open || (self as &dyn View).is_anything_due(advance.queues, closing.linger_ms)? {
            return Ok(());
        }
        if let Some(lease) = &advance.lease {
            self.clear_worker_lease(lease.key)?;
        }
        if let Some(registration) = closing.registration {
            self.clear_setting(registration)?;
        }
        moved.is_over = true;
        Ok(())
    }

    /// The token is random and occurs nowhere else, so the record need not be parsed.
    fn holds_lease(&self, lease: &LeaseRef) -> Result<bool> {
        Ok(self.worker_lease(lease.key)?.is_some_and(|stored| stored.contains(lease.owner)))
    }
}

/// The items that have come to an end.
fn ended(ends: &[End], settled: &[Settled]) -> Vec<i64> {
    ends.iter().zip(settled).filter(|(_, settled)| settled.is_over()).map(|(end, _)| end.claim.fence.id).collect()
}
