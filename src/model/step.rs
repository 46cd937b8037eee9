//! What a handler has done once, by name.

/// How a name was used. Steps, sleeps and gathers of a stage share their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A function was called; the result is kept.
    Step,
    /// The handler slept; the result is when it ended, in milliseconds since 1970.
    Sleep,
    /// The handler waited for items; the result is the first of their places and their number.
    Gather,
}

impl StepKind {
    pub fn as_str(self) -> &'static str {
        match self {
            StepKind::Step => "step",
            StepKind::Sleep => "sleep",
            StepKind::Gather => "gather",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [StepKind::Step, StepKind::Sleep, StepKind::Gather].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A step that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedStep {
    pub kind: StepKind,
    /// JSON text.
    pub result: String,
}
