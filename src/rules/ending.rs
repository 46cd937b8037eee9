//! What a raised thing means for the item in hand, pure: the one table for loops, `with item:`, asyncio and the drop-in.

/// What was raised, as far as the rule asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// Ctrl-C, or the loop's own stop: the grace is over, or a second signal came.
    Stop,
    /// asyncio's cancellation; `from_outside` if somebody cancelled the task that holds the item.
    Cancelled { from_outside: bool },
    /// A generator or coroutine was closed.
    GeneratorExit,
    /// The program is to exit.
    SystemExit,
    /// Failure injection: the process counts as dead.
    Crash,
    /// Everything else, whether it is an `Exception` or not.
    Other,
}

/// Where it was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// In what a loop calls.
    Handler,
    /// In a `with item:` block.
    Block,
}

/// What it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The item fails, as the exception says, and a loop goes on.
    Failed,
    /// The item is counted as a lost claim is, and the loop ends: an item whose handler always exits the program would
    /// otherwise end every worker.
    Exited,
    /// The item is released uncounted, and the loop ends.
    Released,
    /// Nothing is recorded.
    Crashed,
}

impl Meaning {
    /// As the Python loops spell it.
    #[cfg(feature = "python")]
    pub fn as_str(self) -> &'static str {
        match self {
            Meaning::Failed => "failed",
            Meaning::Exited => "exited",
            Meaning::Released => "released",
            Meaning::Crashed => "crashed",
        }
    }
}

pub fn meaning(raised: Raised, within: Within) -> Meaning {
    match (raised, within) {
        (Raised::Crash, _) => Meaning::Crashed,
        (Raised::Stop | Raised::Cancelled { from_outside: true }, _) => Meaning::Released,
        // Whoever iterates stopped asking; a handler that raises it by itself has no such reason.
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
            (R::Other, M::Failed, M::Failed),
        ];
        for (raised, in_handler, in_block) in table {
            assert_eq!(meaning(raised, Within::Handler), in_handler, "{raised:?} in a handler");
            assert_eq!(meaning(raised, Within::Block), in_block, "{raised:?} in a block");
        }
    }
}
