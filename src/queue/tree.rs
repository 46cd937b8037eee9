//! Items that belong together: an item, what it waits for, and what it has made.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Queue;
use super::portions::AT_A_TIME;
use super::repair::{NAMED_AT_MOST, due};
use super::run::{Change, Verb};
use super::target::Target;
use crate::error::{Error, Result};
use crate::model::{Event, Item, Status};
use crate::store::View;

/// How many ids one query returns.
const PAGE: i64 = 1_000;

/// How many levels a tree shows.
const DEEPEST: usize = 500;

/// An item and the items below it. Children that it waits for are among `after`.
#[derive(Debug, Default)]
pub struct Node {
    /// `None` if the item was removed.
    pub item: Option<Item>,
    pub id: i64,
    pub after: Vec<Node>,
    pub children: Vec<Node>,
    /// Items that wait for it and are not done; only of the first node.
    pub needed_by: Vec<i64>,
    /// It is shown elsewhere in the tree, with what is below it.
    pub is_repeated: bool,
    /// How many items directly below it are left out, because the tree is large.
    pub left_out: usize,
}

/// What is directly below an item.
struct Below {
    after: Vec<i64>,
    children: Vec<i64>,
}

impl Queue {
    /// Returns the item and everything below it, up to `limit` items. `None` if the queue has no such item.
    pub fn tree(&self, target: &Target, limit: usize) -> Result<Option<Node>> {
        self.view(|view| match self.locate(view, target)? {
            Some(id) if view.get(self.name(), id)?.is_some() => tree(view, id, limit).map(Some),
            _ => Ok(None),
        })
    }

    /// Cancels an item, what it waits for and what it has made, except what another item needs. Returns whether any of
    /// them was cancelled.
    pub fn cancel_tree(&self, target: &Target) -> Result<bool> {
        let ids = self.view(|view| match self.located(view, target)? {
            Some(id) => unshared(view, id),
            None => Ok(Vec::new()),
        })?;
        // The item itself comes first, so that it is not cancelled because of another.
        let mut portions = ids.chunks(AT_A_TIME as usize);
        let cancelled = self.in_portions(Verb::Repair, |tx| {
            let mut count = 0;
            for id in portions.next().unwrap_or_default() {
                let Some(item) = tx.item(*id)? else { continue };
                tx.tell(Event::Removed { id: *id });
                count += usize::from(cancel_in(tx, &item)?);
            }
            Ok((count, portions.len() > 0))
        })?;
        Ok(cancelled > 0)
    }

    /// Returns a failed or cancelled item to pending, and all such items that it waits for. Returns whether the item
    /// came back.
    pub fn retry_tree(&self, target: &Target, delay: i64) -> Result<bool> {
        self.change(target, |tx, id| {
            if tx.get(self.name(), id)?.is_none() {
                return Ok(false);
            }
            tx.tell(Event::Changed);
            let run_at = due(tx, delay);
            let is_back = |tx: &Change| {
                let status = tx.item(id)?.and_then(|item| item.known_status());
                Ok::<_, Error>(!matches!(status, Some(Status::Failed | Status::Cancelled)))
            };
            if is_back(tx)? {
                return Ok(false);
            }
            // Those furthest away come first.
            let below = walk(tx.view(), id, false)?;
            for needed in below.into_iter().skip(1).rev() {
                if let Some(item) = tx.item(needed)? {
                    tx.retry(&item.queue, needed, run_at)?;
                }
            }
            while tx.update_dependents(&[])?.is_more {}
            Ok(is_back(tx)? || tx.retry(self.name(), id, run_at)?)
        })
    }

    /// Removes an item, what it waits for and what it has made. If another item needs one of them, nothing is removed.
    pub fn delete_tree(&self, target: &Target) -> Result<bool> {
        self.change(target, |tx, id| {
            if tx.get(self.name(), id)?.is_none() {
                return Ok(false);
            }
            let ids = walk(tx.view(), id, true)?;
            let own = ids.iter().copied().collect::<HashSet<_>>();
            for id in &ids {
                let needed_by = tx.needed_by(*id, i64::MAX)?.into_iter().filter(|other| !own.contains(other));
                let needed_by = needed_by.take(NAMED_AT_MOST as usize).collect::<Vec<_>>();
                if !needed_by.is_empty() {
                    return Err(Error::Needed { id: *id, needed_by });
                }
            }
            let mut any = false;
            for id in ids {
                if let Some(item) = tx.item(id)? {
                    any |= self.delete_one(tx, &item.queue, id)?;
                }
            }
            Ok(any)
        })
    }

    /// The id of an item that is in this queue or began here.
    fn located(&self, view: &dyn View, target: &Target) -> Result<Option<i64>> {
        let id = self.locate(view, target)?;
        Ok(match id {
            Some(id) => view.get(self.name(), id)?.map(|item| item.id),
            None => None,
        })
    }
}

fn cancel_in(tx: &Change, item: &Item) -> Result<bool> {
    let (queue, id) = (item.queue.as_str(), item.id);
    Ok(tx.cancel(queue, id)? || tx.cancel_running(queue, id)? || tx.cancel_for_good(queue, id)?)
}

/// What is directly below an item, read in pages.
fn below(view: &dyn View, id: i64, with_children: bool) -> Result<Below> {
    let after = view.after(id, i64::MAX)?;
    let mut children = Vec::new();
    let mut is_more = with_children;
    while is_more {
        let page = view.children(id, children.last().copied().unwrap_or(i64::MIN), PAGE)?;
        is_more = page.len() as i64 >= PAGE;
        children.extend(page);
    }
    Ok(Below { after, children })
}

/// The item and everything below it, the nearest first.
fn walk(view: &dyn View, id: i64, with_children: bool) -> Result<Vec<i64>> {
    walk_around(view, id, with_children, &HashSet::new())
}

/// The same, without the items in `spared` and what is only below those.
fn walk_around(view: &dyn View, id: i64, with_children: bool, spared: &HashSet<i64>) -> Result<Vec<i64>> {
    let (mut seen, mut ids, mut next) = (HashSet::from([id]), vec![id], 0);
    while let Some(id) = ids.get(next).copied() {
        next += 1;
        let below = below(view, id, with_children)?;
        let new = below.after.into_iter().chain(below.children).filter(|id| !spared.contains(id) && seen.insert(*id));
        ids.extend(new);
    }
    Ok(ids)
}

/// The item and everything below it that no unfinished item elsewhere needs.
fn unshared(view: &dyn View, id: i64) -> Result<Vec<i64>> {
    let mut spared = HashSet::new();
    loop {
        let ids = walk_around(view, id, true, &spared)?;
        let own = ids.iter().copied().collect::<HashSet<_>>();
        let before = spared.len();
        for id in ids.iter().skip(1) {
            for other in view.needed_by(*id, i64::MAX)? {
                let status = || Ok::<_, Error>(view.item(other)?.and_then(|item| item.known_status()));
                if !own.contains(&other)
                    && matches!(status()?, Some(Status::Pending | Status::Processing | Status::Blocked))
                {
                    spared.insert(*id);
                }
            }
        }
        if spared.len() == before {
            return Ok(ids);
        }
    }
}

/// Reads the nearest `limit` items, and puts them together.
fn tree(view: &dyn View, id: i64, limit: usize) -> Result<Node> {
    let mut belows: HashMap<i64, Below> = HashMap::new();
    let mut order = VecDeque::from([(id, 0)]);
    let mut known = HashSet::from([id]);
    let mut left_out: HashMap<i64, usize> = HashMap::new();
    let mut count = 1;
    while let Some((id, depth)) = order.pop_front() {
        let mut below = below(view, id, true)?;
        let limit = if depth < DEEPEST { limit } else { 0 };
        let needed = below.after.iter().copied().collect::<HashSet<_>>();
        below.children.retain(|child| !needed.contains(child));
        for ids in [&mut below.after, &mut below.children] {
            let room = limit.saturating_sub(count);
            if ids.len() > room {
                *left_out.entry(id).or_default() += ids.len() - room;
                ids.truncate(room);
            }
            count += ids.len();
        }
        let new = below.after.iter().chain(&below.children).copied().filter(|id| known.insert(*id));
        order.extend(new.map(|id| (id, depth + 1)));
        belows.insert(id, below);
    }
    let mut root = assemble(view, id, &mut belows, &left_out)?;
    root.needed_by = view.needed_by(id, NAMED_AT_MOST)?;
    Ok(root)
}

/// An item is shown in full where it is met first; the tree is as deep as the longest line of items.
fn assemble(
    view: &dyn View,
    id: i64,
    belows: &mut HashMap<i64, Below>,
    left_out: &HashMap<i64, usize>,
) -> Result<Node> {
    let item = view.item(id)?;
    let is_gone = item.is_none();
    let mut node = Node { item, id, ..Node::default() };
    let Some(below) = belows.remove(&id) else {
        node.is_repeated = !is_gone;
        return Ok(node);
    };
    node.left_out = left_out.get(&id).copied().unwrap_or(0);
    for id in below.after {
        node.after.push(assemble(view, id, belows, left_out)?);
    }
    for id in below.children {
        node.children.push(assemble(view, id, belows, left_out)?);
    }
    Ok(node)
}
