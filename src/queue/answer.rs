//! Ending an item without a claim: by a person, a webhook, another program.

use super::Queue;
use super::run::{Change, Verb};
use super::target::Target;
use crate::error::Result;
use crate::model::{Answer, Event};
use crate::rules::outcome::presentable;
use crate::store::WhenDone;

impl Queue {
    /// Ends the item as done or failed, whatever it waits for; a worker that holds it has lost it. Returns `false`, and
    /// changes nothing, if there is no such item, or if it is done or cancelled. With `key_ttl`, an answer to a key that
    /// no item has is kept for so long, for the item that comes later.
    pub fn answer(&self, target: &Target, answer: Answer, key_ttl: Option<i64>) -> Result<bool> {
        let answer = self.prepare_answer(answer)?;
        let is_answered = self.run(Verb::Answer, |tx| {
            self.refresh_settings(tx)?;
            match target {
                Target::Id(id) => self.answer_one(tx, *id, &answer),
                Target::Key(key) => match tx.newest_with_key(self.name(), key)? {
                    Some(id) if self.answer_one(tx, id, &answer)? => Ok(true),
                    found => self.keep_answer(tx, key, found, &answer, key_ttl),
                },
            }
        })?;
        self.tend_if_due();
        Ok(is_answered)
    }

    /// Refuses an answer that cannot be stored.
    pub(super) fn prepare_answer(&self, answer: Answer) -> Result<Answer> {
        self.check_size(answer.result().map_or(0, str::len))?;
        Ok(match answer {
            Answer::Failed(error) => Answer::Failed(presentable(error)),
            done => done,
        })
    }

    fn answer_one(&self, tx: &Change, id: i64, answer: &Answer) -> Result<bool> {
        if !tx.answer(self.name(), id, answer)? {
            return Ok(false);
        }
        tx.tell(Event::Ended { id, frees_group: true });
        // The rules of another queue that it is in now are applied by that queue's workers.
        if let (Answer::Done(_), Some(item)) = (answer, tx.item(id)?)
            && item.queue == self.name()
        {
            let settings = &self.settings().settings;
            tx.clean_up_done(self.name(), id, WhenDone::by(settings))?;
        }
        Ok(true)
    }

    /// Keeps an answer for an item that is still to come. The first answer counts.
    fn keep_answer(
        &self,
        tx: &Change,
        key: &str,
        newest: Option<i64>,
        answer: &Answer,
        key_ttl: Option<i64>,
    ) -> Result<bool> {
        let Some(ttl) = key_ttl else { return Ok(false) };
        if let Some(id) = newest
            && tx.has_answer(id)?
        {
            return Ok(false);
        }
        let id = tx.put_answer(self.name(), key, tx.now().plus(ttl), answer)?;
        tx.tell(Event::Ended { id, frees_group: false });
        Ok(true)
    }
}
