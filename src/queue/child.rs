//! Items that a handler enqueues with the end of its own.

use super::Queue;
use super::claim::ClaimedItem;
use crate::error::Result;
use crate::model::{Deadline, Need, NewItem};
use crate::rules::flow::Inheritance;
use crate::rules::outcome::Ending;
use crate::store::{Child, Consequences, Needed};

impl Queue {
    /// Keeps an item for the transaction that ends the claim as done or moved. Refuses one that could not be written. It
    /// has from the claimed item what it was not given.
    pub fn enqueue_with_end(&self, held: &ClaimedItem, item: NewItem) -> Result<()> {
        self.check_is_ours(held)?;
        if held.is_settled() || held.is_known_lost() {
            return Err(self.why_stale(held)?);
        }
        self.check_needs(&item)?;
        self.prepare_children(held, vec![item])?.into_iter().for_each(|child| held.add_child(child));
        Ok(())
    }

    /// What is written together with the end of a claim.
    pub(super) fn consequences(&self, held: &ClaimedItem, ending: &Ending) -> Result<Consequences> {
        match ending {
            Ending::Done { .. } => Ok(Consequences { children: held.children(), ..Consequences::default() }),
            Ending::Next { next } => {
                let needs = next.after.iter().map(|need| match need {
                    Need::Id(id) => Ok(vec![Needed::Id(*id)]),
                    Need::New(new) => {
                        let children = self.prepare_children(held, vec![(**new).clone()])?;
                        Ok(children.into_iter().map(|child| Needed::Put(child.queue, Box::new(child.put))).collect())
                    }
                });
                let needs = needs.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
                let if_failed = next.if_failed;
                Ok(Consequences { children: held.children(), needs, if_failed, step: None })
            }
            Ending::Slept { .. } | Ending::Gathered => Ok(held.consequences_of_suspension()),
            Ending::Failed { .. } | Ending::Lost { .. } | Ending::Released { .. } => Ok(Consequences::default()),
        }
    }

    /// Prepares the children of a claimed item.
    pub(super) fn prepare_children(&self, held: &ClaimedItem, mut items: Vec<NewItem>) -> Result<Vec<Child>> {
        let parent = &held.item;
        let expires = parent.expires_at.map(Deadline::At);
        let inheritance = Inheritance::new(parent.priority, parent.project.clone(), expires, parent.headers.as_ref());
        items.iter_mut().for_each(|item| inheritance.give(item));
        let (destinations, puts) = self.prepare_all(items)?;
        let children = puts.into_iter().map(|mut put| {
            put.row.parent = Some(parent.id);
            Child { queue: destinations[put.queue].stored(self).name.to_owned(), put }
        });
        Ok(children.collect())
    }
}
