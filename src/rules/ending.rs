//! What an exception means for the claimed item: the one table for loops, `with item:`, asyncio and the drop-in.

/// The kind of exception, as far as the rule distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// Ctrl-C, or the loop's own stop: the grace period is over, or a second signal arrived.
    Stop,
    /// asyncio's cancellation. `from_outside`: the task that holds the item was itself cancelled.
    Cancelled { from_outside: bool },
    /// A generator or coroutine was closed.
    GeneratorExit,
    /// The program is about to exit.
    SystemExit,
    /// `item.sleep` or `item.gather` leaves the handler.
    Suspended,
    /// Failure injection: the process is treated as dead.
    Crash,
    /// Anything else, including a `BaseException` that is not an `Exception`.
    Other,
}

/// Where it was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// In a function that a loop calls.
    Handler,
    /// In a `with item:` block.
    Block,
}

/// What the exception means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The item fails as the exception states, and a loop continues.
    Failed,
    /// The item counts as a lost claim, and the loop ends. If it were not counted, an item whose handler always exits
    /// the program would end every worker.
    Exited,
    /// The item is released uncounted, and the loop ends.
    Released,
    /// The item waits for a time or for others, and a loop continues.
    Suspended,
    /// Nothing is recorded.
    Crashed,
}

impl Meaning {
    /// The name that the Python loops use.
    #[cfg(feature = "python")]
    pub fn as_str(self) -> &'static str {
        match self {
            Meaning::Failed => "failed",
            Meaning::Exited => "exited",
            Meaning::Released => "released",
            Meaning::Suspended => "suspended",
            Meaning::Crashed => "crashed",
        }
    }
}

pub fn meaning(raised: Raised, within: Within) -> Meaning {
    match (raised, within) {
        (Raised::Crash, _) => Meaning::Crashed,
        (Raised::Suspended, _) => Meaning::Suspended,
        (Raised::Stop | Raised::Cancelled { from_outside: true }, _) => Meaning::Released,
        // The consumer of the iterator stopped. A handler that raises it itself has no such excuse.
        (Raised::GeneratorExit, Within::Block) => Meaning::Released,
        (Raised::SystemExit, _) => Meaning::Exited,
        (Raised::Cancelled { from_outside: false } | Raised::GeneratorExit | Raised::Other, _) => Meaning::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        use {Meaning as M, Raised as R};
        let table = [
            (R::Stop, M::Released, M::Released),
            (R::Cancelled { from_outside: true }, M::Released, M::Released),
            (R::Cancelled { from_outside: false }, M::Failed, M::Failed),
            (R::GeneratorExit, M::Failed, M::Released),
            (R::SystemExit, M::Exited, M::Exited),
            (R::Crash, M::Crashed, M::Crashed),
            (R::Suspended, M::Suspended, M::Suspended),
            (R::Other, M::Failed, M::Failed),
        ];
        for (raised, in_handler, in_block) in table {
            assert_eq!(meaning(raised, Within::Handler), in_handler, "{raised:?} in a handler");
            assert_eq!(meaning(raised, Within::Block), in_block, "{raised:?} in a block");
        }
    }
}
