//! The rule for the end of a claim: how it ended and how often it failed before decide what becomes of the item.

use super::retry::Retry;
use crate::model::NextStage;

/// Longer failure texts are truncated, with a mark.
pub const ERROR_LIMIT: usize = 8 * 1024;

/// How many attempts of an item the history keeps.
pub const ATTEMPTS_KEPT: i64 = 20;

const CUT_MARK: &str = " … [cut]";

/// How a claim ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The work is done. The result is JSON text.
    Done { result: Option<String> },
    /// The stage is done, and the item goes on with the next.
    Next { next: Box<NextStage> },
    /// The handler sleeps for so long, and is then called again; nothing is counted.
    Slept { delay: i64 },
    /// The handler waits for items, and is then called again; nothing is counted.
    Gathered,
    /// The attempt failed. `retry_in` (ms) overrides the delay of the retry policy; `give_up` allows no retry.
    Failed { error: String, retry_in: Option<i64>, give_up: bool },
    /// The lease expired, or the worker's process is gone.
    Lost { worker: Option<String> },
    /// Released; nothing is counted. The reason is only for the history.
    Released { delay: i64, reason: Option<String> },
}

impl Ending {
    /// Whether the handler has completed its stage: what it enqueued is written then.
    pub fn is_completed(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Next { .. })
    }

    /// Released without a delay or a reason.
    pub fn released_now() -> Self {
        Self::Released { delay: 0, reason: None }
    }

    /// How the items of a batch end when the one at `index` ends so: all others are released.
    pub fn of_batch(self, index: usize, length: usize) -> Vec<Self> {
        let mut endings = vec![Self::released_now(); length];
        if let Some(ending) = endings.get_mut(index) {
            *ending = self;
        }
        endings
    }
}

/// Decides how a claim ends whose end was said in the caller's own transaction and is not committed. What the handler
/// wrote is not there either, so its item is never done; what it raised stays the reason.
pub fn uncommitted(said: Settled, ending: Ending) -> Ending {
    match ending {
        Ending::Done { .. } => Ending::Failed { error: not_committed(said), retry_in: None, give_up: false },
        other => other,
    }
}

/// The reason for which such an item fails.
pub fn not_committed(said: Settled) -> String {
    let said = match said {
        Settled::Failed | Settled::Postponed => "marked failed",
        Settled::Released => "released",
        _ => "marked done",
    };
    format!("it was {said} in a transaction that was not committed")
}

/// How often an item has failed, and its retry limit.
#[derive(Clone, Copy, Debug)]
pub struct RetryState<'a> {
    pub retries: u32,
    pub max_retries: Option<u32>,
    pub policy: Option<&'a Retry>,
    pub queue_max: u32,
}

impl RetryState<'_> {
    /// The failure or lost claim with this number is final.
    pub fn limit(&self) -> u32 {
        self.max_retries.or(self.policy.map(|policy| policy.max)).unwrap_or(self.queue_max)
    }
}

/// What to write to the row.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Done {
        result: Option<String>,
    },
    /// Pending again, as its next stage, with a fresh allowance of retries.
    Moved {
        next: Box<NextStage>,
    },
    /// Waits for other items.
    Blocked,
    /// `delay_ms` counts from the transaction that writes it; `None` means no delay.
    Pending {
        delay_ms: Option<i64>,
        retries: u32,
        error: Option<String>,
    },
    Failed {
        retries: u32,
        error: String,
        gave_up: bool,
    },
}

/// What became of a claim, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    Done,
    /// Went on to its next stage.
    Moved,
    /// Waits for other items.
    Blocked,
    /// Ended as failed.
    Failed,
    /// Pending again for an automatic retry.
    Postponed,
    Released,
    /// The receipt was stale; nothing was changed.
    Lost,
    /// The item was cancelled in the meantime and is now `cancelled`, whatever its worker reported.
    Cancelled,
}

impl Settled {
    /// The word used in reports and the history.
    pub const fn as_str(self) -> &'static str {
        match self {
            Settled::Done => "done",
            Settled::Moved => "moved",
            Settled::Blocked => "blocked",
            Settled::Failed => "failed",
            Settled::Postponed => "postponed",
            Settled::Released => "released",
            Settled::Lost => "lost",
            Settled::Cancelled => "cancelled",
        }
    }

    /// Returns whether the handler has completed its stage.
    pub fn is_completed(self) -> bool {
        matches!(self, Settled::Done | Settled::Moved)
    }

    /// Returns whether the item has come to an end.
    pub fn is_over(self) -> bool {
        matches!(self, Settled::Done | Settled::Failed | Settled::Cancelled)
    }

    /// Reads a word of the history.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [
            Self::Done,
            Self::Moved,
            Self::Blocked,
            Self::Failed,
            Self::Postponed,
            Self::Released,
            Self::Lost,
            Self::Cancelled,
        ];
        all.into_iter().find(|settled| settled.as_str() == word)
    }

    /// Returns whether the worker's report was recorded.
    pub fn took_effect(self) -> bool {
        !matches!(self, Settled::Lost | Settled::Cancelled)
    }
}

/// How the end of a claim is recorded: the row, the history, and what follows from the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub verdict: Verdict,
    pub settled: Settled,
    /// The entry in the item's history; a done attempt leaves none, and a stage is recorded with its content.
    pub history: Option<HistoryEntry>,
    /// The worker did not end the claim itself. The rest of its batch is released then, even if the item was cancelled.
    pub was_lost: bool,
}

/// What the history says about an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    pub ending: &'static str,
    pub error: Option<String>,
}

impl Decision {
    /// Releases a claim without a delay or a reason; `retries` stays as it is.
    pub fn release(retries: u32) -> Self {
        let verdict = Verdict::Pending { delay_ms: None, retries, error: None };
        let history = Some(HistoryEntry { ending: Settled::Released.as_str(), error: None });
        Self { verdict, settled: Settled::Released, history, was_lost: false }
    }
}

/// Decides how the end of a claim is recorded; see [`decide`].
pub fn conclude(ending: Ending, left: &RetryState, fraction: f64) -> Decision {
    let was_lost = matches!(ending, Ending::Lost { .. });
    let reason = match &ending {
        Ending::Released { reason, .. } => reason.clone().map(presentable),
        _ => None,
    };
    let (verdict, settled) = decide(ending, left, fraction);
    let error = match &verdict {
        Verdict::Done { .. } | Verdict::Moved { .. } | Verdict::Blocked => None,
        Verdict::Pending { error, .. } => error.clone().or(reason),
        Verdict::Failed { error, .. } => Some(error.clone()),
    };
    let word = if was_lost { Settled::Lost } else { settled };
    // The stage is recorded with its content, by the statement that reads it.
    let history = (!settled.is_completed()).then(|| HistoryEntry { ending: word.as_str(), error });
    Decision { verdict, settled, history, was_lost }
}

/// Decides what becomes of the item. `fraction` in 0..1 spreads the back-off; as an argument it keeps the rule pure.
pub fn decide(ending: Ending, left: &RetryState, fraction: f64) -> (Verdict, Settled) {
    match ending {
        Ending::Done { result } => (Verdict::Done { result }, Settled::Done),
        Ending::Next { next } => (Verdict::Moved { next }, Settled::Moved),
        Ending::Gathered => (Verdict::Blocked, Settled::Blocked),
        Ending::Slept { delay } => {
            (Verdict::Pending { delay_ms: positive(delay), retries: left.retries, error: None }, Settled::Postponed)
        }
        Ending::Released { delay, .. } => {
            (Verdict::Pending { delay_ms: positive(delay), retries: left.retries, error: None }, Settled::Released)
        }
        Ending::Lost { worker } => {
            let retries = left.retries.saturating_add(1);
            let error = vanished(worker.as_deref(), retries);
            if retries >= left.limit() {
                (Verdict::Failed { retries, error, gave_up: false }, Settled::Failed)
            } else {
                (Verdict::Pending { delay_ms: None, retries, error: Some(error) }, Settled::Postponed)
            }
        }
        Ending::Failed { error, retry_in, give_up } => {
            let retries = left.retries.saturating_add(1);
            let error = presentable(error);
            let delay = retry_in.or_else(|| left.policy.map(|policy| policy.delay(retries, fraction)));
            match delay {
                Some(delay) if !give_up && retries < left.limit() => {
                    (Verdict::Pending { delay_ms: positive(delay), retries, error: Some(error) }, Settled::Postponed)
                }
                _ => (Verdict::Failed { retries, error, gave_up: give_up }, Settled::Failed),
            }
        }
    }
}

/// The reason for which an item fails whose handler was suspended, caught the suspension and went on.
pub fn went_on(kind: &str, name: &str) -> String {
    format!(
        "the handler went on after {kind} {name:?}, which suspends it: do not catch BaseException around it, or raise it again"
    )
}

fn positive(delay_ms: i64) -> Option<i64> {
    (delay_ms > 0).then_some(delay_ms)
}

fn vanished(worker: Option<&str>, retries: u32) -> String {
    let worker = worker.unwrap_or("unknown");
    format!(
        "the worker vanished: {worker} held the item and neither finished it nor renewed its lease (loss or failure {retries})"
    )
}

/// Makes a failure text that is neither empty nor longer than the limit.
pub fn presentable(error: String) -> String {
    if error.is_empty() {
        return "failed without a reason".into();
    }
    if error.len() <= ERROR_LIMIT {
        return error;
    }
    let mut end = ERROR_LIMIT - CUT_MARK.len();
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT_MARK}", &error[..end])
}

#[cfg(test)]
mod tests {
    use super::super::retry::Backoff;
    use super::*;

    fn policy(kind: Backoff) -> Retry {
        Retry::new(3, 30.0, 2.0, 100.0, 0.0, kind).unwrap()
    }

    fn left(retries: u32, policy: Option<&Retry>) -> RetryState<'_> {
        RetryState { retries, max_retries: None, policy, queue_max: 3 }
    }

    fn failure() -> Ending {
        Ending::Failed { error: "boom".into(), retry_in: None, give_up: false }
    }

    #[test]
    fn without_a_policy_a_failed_item_rests() {
        let (verdict, settled) = decide(failure(), &left(0, None), 0.5);
        assert_eq!(verdict, Verdict::Failed { retries: 1, error: "boom".into(), gave_up: false });
        assert_eq!(settled, Settled::Failed);
    }

    #[test]
    fn with_a_policy_it_goes_back_until_the_nth_failure() {
        let policy = policy(Backoff::Exponential);
        let (verdict, _) = decide(failure(), &left(1, Some(&policy)), 0.5);
        assert_eq!(verdict, Verdict::Pending { delay_ms: Some(60_000), retries: 2, error: Some("boom".into()) });
        let (verdict, _) = decide(failure(), &left(2, Some(&policy)), 0.5);
        assert_eq!(verdict, Verdict::Failed { retries: 3, error: "boom".into(), gave_up: false });
    }

    #[test]
    fn retry_in_overrides_the_policy_but_not_the_limit() {
        let ending = |retry_in| Ending::Failed { error: "x".into(), retry_in: Some(retry_in), give_up: false };
        let (verdict, settled) = decide(ending(0), &left(0, None), 0.5);
        assert_eq!(verdict, Verdict::Pending { delay_ms: None, retries: 1, error: Some("x".into()) });
        assert_eq!(settled, Settled::Postponed);
        assert_eq!(decide(ending(5), &left(2, None), 0.5).1, Settled::Failed);
    }

    #[test]
    fn giving_up_is_final_at_the_first_failure() {
        let policy = policy(Backoff::Linear);
        let ending = Ending::Failed { error: "x".into(), retry_in: Some(5), give_up: true };
        let (verdict, _) = decide(ending, &left(0, Some(&policy)), 0.5);
        assert_eq!(verdict, Verdict::Failed { retries: 1, error: "x".into(), gave_up: true });
    }

    #[test]
    fn a_lost_lease_counts_and_comes_back_at_once_until_it_is_final() {
        let policy = policy(Backoff::Exponential);
        let lost = || Ending::Lost { worker: Some("host:7".into()) };
        let (verdict, _) = decide(lost(), &left(1, Some(&policy)), 0.5);
        assert!(matches!(verdict, Verdict::Pending { delay_ms: None, retries: 2, .. }), "{verdict:?}");
        let (verdict, _) = decide(lost(), &left(2, Some(&policy)), 0.5);
        let Verdict::Failed { retries: 3, error, gave_up: false } = verdict else { panic!("{verdict:?}") };
        assert!(error.contains("vanished") && error.contains("host:7"), "{error}");
    }

    #[test]
    fn the_items_own_limit_comes_before_the_policys_and_the_queues() {
        let policy = policy(Backoff::Linear);
        let with_own = RetryState { max_retries: Some(7), ..left(0, Some(&policy)) };
        assert_eq!(with_own.limit(), 7);
        assert_eq!(RetryState { queue_max: 9, ..left(0, Some(&policy)) }.limit(), 3);
        assert_eq!(RetryState { queue_max: 9, ..left(0, None) }.limit(), 9);
    }

    #[test]
    fn release_counts_nothing() {
        let (verdict, _) = decide(Ending::released_now(), &left(2, None), 0.5);
        assert_eq!(verdict, Verdict::Pending { delay_ms: None, retries: 2, error: None });
    }

    #[test]
    fn the_others_of_a_batch_are_released() {
        let done = Ending::Done { result: None };
        let endings = done.clone().of_batch(1, 3);
        assert_eq!(endings, [Ending::released_now(), done.clone(), Ending::released_now()]);
        assert_eq!(done.of_batch(0, 0), []);
    }

    #[test]
    fn a_failure_text_is_neither_empty_nor_endless() {
        assert!(!presentable(String::new()).is_empty());
        let cut = presentable("ä".repeat(1_000_000));
        assert!(cut.len() <= ERROR_LIMIT && cut.ends_with(CUT_MARK), "{}", cut.len());
        assert_eq!(presentable("x".repeat(ERROR_LIMIT)).len(), ERROR_LIMIT);
    }
}
