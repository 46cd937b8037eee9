//! What an engine must do to keep a rate: claims are numbered per queue and per group.

use super::View;
use crate::error::Result;
use crate::rules::rate::Rate;

/// The group name under which the claims of the whole queue are counted.
pub const WHOLE_QUEUE: &str = "";

pub trait RateTx {
    /// Forgets up to `limit` claims made before a time. Returns how many.
    fn forget_starts(&self, queue: &str, before: i64, limit: i64) -> Result<usize>;

    /// Makes the group unclaimable before `until`.
    fn hold_group(&self, queue: &str, group: &str, until: i64) -> Result<()>;

    /// Makes groups claimable whose pause is over, or reaches beyond `furthest`. Returns up to `limit` of them.
    fn free_groups(&self, queue: &str, furthest: i64, limit: usize) -> Result<Vec<String>>;

    /// Orders all groups anew, by the group limit that is stored now.
    fn groups_moved(&self, queue: &str) -> Result<()>;
}

impl dyn View + '_ {
    /// When a rate allows the next claim, if not now.
    pub fn rate_wait(&self, queue: &str, group: &str, rate: Rate) -> Result<Option<i64>> {
        let earlier = rate.before(self.last_start(queue, group)?);
        Ok(rate.wait(self.start_at(queue, group, earlier)?, self.now()))
    }
}
