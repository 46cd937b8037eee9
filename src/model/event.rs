//! What a committed transaction has changed, for those who wait, listen or measure.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An item is there that was not there before.
    Enqueued,
    Claimed,
    /// An item has ended; `frees_group` if others of its group may come now.
    Ended {
        id: i64,
        frees_group: bool,
    },
    /// A claimed item is pending again.
    Returned,
    /// Something may be claimable that was not.
    Claimable,
    /// An item was cancelled or removed by a person.
    Removed {
        id: i64,
    },
    /// Anything may have changed.
    Changed,
}
