//! What a committed transaction changed, for waiting callers, listeners and metrics.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// There is a new item.
    Enqueued,
    Claimed,
    /// An item has ended. `frees_group`: other items of its group may be claimable now.
    Ended {
        id: i64,
        frees_group: bool,
    },
    /// A claimed item is pending again.
    Returned,
    /// An item may have become claimable.
    Claimable,
    /// An operator cancelled or removed an item.
    Removed {
        id: i64,
    },
    /// Anything may have changed.
    Changed,
}
