//! The rule, pure: how a claim ended and what was left of its allowance decide what becomes of the item.

use serde::{Deserialize, Serialize};

use crate::clock::{LATEST_MS, Now, millis};
use crate::error::{Error, Result};

/// Failure texts longer than this are cut, with a mark.
pub const ERROR_LIMIT: usize = 8 * 1024;

const CUT_MARK: &str = " … [cut]";

/// How a claim ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The work is done. The result is JSON text.
    Done { result: Option<String> },
    /// It failed. `retry_in` (ms) overrides the policy's delay, `give_up` ends it here.
    Failed { error: String, retry_in: Option<i64>, give_up: bool },
    /// The holder's lease ran out, or the holder is gone.
    Lost { worker: Option<String> },
    /// Given back; nothing is counted. The reason is only for the history.
    Released { delay: i64, reason: Option<String> },
}

impl Ending {
    /// Given back at once and without a word.
    pub fn given_back() -> Self {
        Self::Released { delay: 0, reason: None }
    }
}

/// What an item had left when it was claimed.
#[derive(Clone, Copy, Debug)]
pub struct Allowance<'a> {
    pub retries: u32,
    pub max_retries: Option<u32>,
    pub policy: Option<&'a Retry>,
    pub queue_max: u32,
}

impl Allowance<'_> {
    /// The Nth failure or lost lease is final.
    pub fn ceiling(&self) -> u32 {
        self.max_retries.or(self.policy.map(|policy| policy.max)).unwrap_or(self.queue_max)
    }
}

/// What is to be written.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Done { result: Option<String> },
    Pending { run_at: Option<i64>, retries: u32, error: Option<String> },
    Failed { retries: u32, error: String, gave_up: bool },
}

/// What became of a claim, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    Done,
    /// Came to rest as failed.
    Failed,
    /// Went back for an automatic retry.
    Postponed,
    Released,
    /// The receipt was stale; nothing was changed.
    Lost,
    /// It had been cancelled meanwhile, and came to rest as that, whatever the holder said.
    Cancelled,
}

impl Settled {
    /// As reports and the history spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Settled::Done => "done",
            Settled::Failed => "failed",
            Settled::Postponed => "postponed",
            Settled::Released => "released",
            Settled::Lost => "lost",
            Settled::Cancelled => "cancelled",
        }
    }

    /// Whether what the holder said was recorded.
    pub fn took_effect(self) -> bool {
        !matches!(self, Settled::Lost | Settled::Cancelled)
    }
}

/// Decides. `dice` in 0..1 spreads the back-off; it is passed in so that the rule stays pure.
pub fn decide(ending: Ending, left: &Allowance, now: Now, dice: f64) -> (Verdict, Settled) {
    match ending {
        Ending::Done { result } => (Verdict::Done { result }, Settled::Done),
        Ending::Released { delay, .. } => {
            let run_at = (delay > 0).then(|| now.plus(delay));
            (Verdict::Pending { run_at, retries: left.retries, error: None }, Settled::Released)
        }
        Ending::Lost { worker } => {
            let retries = left.retries.saturating_add(1);
            let error = vanished(worker.as_deref(), retries);
            if retries >= left.ceiling() {
                (Verdict::Failed { retries, error, gave_up: false }, Settled::Failed)
            } else {
                (Verdict::Pending { run_at: None, retries, error: Some(error) }, Settled::Postponed)
            }
        }
        Ending::Failed { error, retry_in, give_up } => {
            let retries = left.retries.saturating_add(1);
            let error = presentable(error);
            let delay = retry_in.or_else(|| left.policy.map(|policy| policy.delay(retries, dice)));
            match delay {
                Some(delay) if !give_up && retries < left.ceiling() => {
                    let run_at = (delay > 0).then(|| now.plus(delay));
                    (Verdict::Pending { run_at, retries, error: Some(error) }, Settled::Postponed)
                }
                _ => (Verdict::Failed { retries, error, gave_up: give_up }, Settled::Failed),
            }
        }
    }
}

fn vanished(worker: Option<&str>, retries: u32) -> String {
    let worker = worker.unwrap_or("unknown");
    format!(
        "the worker vanished: {worker} held the item and neither finished it nor renewed its lease (loss or failure {retries})"
    )
}

/// A failure text is never empty and never endless.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    Exponential,
    Linear,
}

/// When a failed item goes back to pending by itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    pub max: u32,
    pub base: f64,
    pub factor: f64,
    pub cap: f64,
    pub jitter: f64,
    pub kind: Backoff,
}

/// As it is written in Python.
impl std::fmt::Display for Retry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { max, base, factor, cap, jitter, kind } = self;
        let kind = kind.as_str();
        write!(formatter, "Retry(max={max}, base={base}, factor={factor}, cap={cap}, jitter={jitter}, kind='{kind}')")
    }
}

impl Backoff {
    pub fn as_str(self) -> &'static str {
        match self {
            Backoff::Exponential => "exponential",
            Backoff::Linear => "linear",
        }
    }
}

impl Retry {
    pub fn new(max: u32, base: f64, factor: f64, cap: f64, jitter: f64, kind: Backoff) -> Result<Self> {
        millis("Retry base", base)?;
        millis("Retry cap", cap)?;
        if max == 0 {
            return Err(Error::Invalid("Retry max must be at least 1; for no automatic retry pass retry=None".into()));
        }
        if !factor.is_finite() || factor < 1.0 {
            return Err(Error::Invalid(format!("Retry factor must be a finite number of at least 1, not {factor}")));
        }
        if !(0.0..=1.0).contains(&jitter) {
            return Err(Error::Invalid(format!("Retry jitter must be between 0 and 1, not {jitter}")));
        }
        Ok(Self { max, base, factor, cap, jitter, kind })
    }

    /// The pause after the given failure (the first is 1), in milliseconds.
    pub fn delay(&self, failure: u32, dice: f64) -> i64 {
        let step = f64::from(failure.max(1));
        let pause = match self.kind {
            Backoff::Exponential => self.base * self.factor.powf(step - 1.0),
            Backoff::Linear => self.base * step,
        };
        // A zero base times an overflowed power is no number; zero is what was meant.
        let pause = if pause.is_nan() { 0.0 } else { pause };
        let spread = 1.0 + self.jitter * (2.0 * dice - 1.0);
        let seconds = (pause.min(self.cap) * spread).min(self.cap).clamp(0.0, LATEST_MS as f64 / 1000.0);
        (seconds * 1000.0).round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now(1_000_000);

    fn policy(kind: Backoff) -> Retry {
        Retry::new(3, 30.0, 2.0, 100.0, 0.0, kind).unwrap()
    }

    fn left(retries: u32, policy: Option<&Retry>) -> Allowance<'_> {
        Allowance { retries, max_retries: None, policy, queue_max: 3 }
    }

    fn failure() -> Ending {
        Ending::Failed { error: "boom".into(), retry_in: None, give_up: false }
    }

    #[test]
    fn without_a_policy_a_failed_item_rests() {
        let (verdict, settled) = decide(failure(), &left(0, None), NOW, 0.5);
        assert_eq!(verdict, Verdict::Failed { retries: 1, error: "boom".into(), gave_up: false });
        assert_eq!(settled, Settled::Failed);
    }

    #[test]
    fn with_a_policy_it_goes_back_until_the_nth_failure() {
        let policy = policy(Backoff::Exponential);
        let (verdict, _) = decide(failure(), &left(1, Some(&policy)), NOW, 0.5);
        assert_eq!(verdict, Verdict::Pending { run_at: Some(1_060_000), retries: 2, error: Some("boom".into()) });
        let (verdict, _) = decide(failure(), &left(2, Some(&policy)), NOW, 0.5);
        assert_eq!(verdict, Verdict::Failed { retries: 3, error: "boom".into(), gave_up: false });
    }

    #[test]
    fn retry_in_overrides_the_policy_but_not_the_ceiling() {
        let ending = |retry_in| Ending::Failed { error: "x".into(), retry_in: Some(retry_in), give_up: false };
        let (verdict, settled) = decide(ending(0), &left(0, None), NOW, 0.5);
        assert_eq!(verdict, Verdict::Pending { run_at: None, retries: 1, error: Some("x".into()) });
        assert_eq!(settled, Settled::Postponed);
        assert_eq!(decide(ending(5), &left(2, None), NOW, 0.5).1, Settled::Failed);
    }

    #[test]
    fn giving_up_is_final_at_the_first_failure() {
        let policy = policy(Backoff::Linear);
        let ending = Ending::Failed { error: "x".into(), retry_in: Some(5), give_up: true };
        let (verdict, _) = decide(ending, &left(0, Some(&policy)), NOW, 0.5);
        assert_eq!(verdict, Verdict::Failed { retries: 1, error: "x".into(), gave_up: true });
    }

    #[test]
    fn a_lost_lease_counts_and_comes_back_at_once_until_it_is_final() {
        let policy = policy(Backoff::Exponential);
        let lost = || Ending::Lost { worker: Some("host:7".into()) };
        let (verdict, _) = decide(lost(), &left(1, Some(&policy)), NOW, 0.5);
        assert!(matches!(verdict, Verdict::Pending { run_at: None, retries: 2, .. }), "{verdict:?}");
        let (verdict, _) = decide(lost(), &left(2, Some(&policy)), NOW, 0.5);
        let Verdict::Failed { retries: 3, error, gave_up: false } = verdict else { panic!("{verdict:?}") };
        assert!(error.contains("vanished") && error.contains("host:7"), "{error}");
    }

    #[test]
    fn the_items_own_ceiling_comes_before_the_policys_and_the_queues() {
        let policy = policy(Backoff::Linear);
        let with_own = Allowance { max_retries: Some(7), ..left(0, Some(&policy)) };
        assert_eq!(with_own.ceiling(), 7);
        assert_eq!(Allowance { queue_max: 9, ..left(0, Some(&policy)) }.ceiling(), 3);
        assert_eq!(Allowance { queue_max: 9, ..left(0, None) }.ceiling(), 9);
    }

    #[test]
    fn release_counts_nothing() {
        let (verdict, _) = decide(Ending::given_back(), &left(2, None), NOW, 0.5);
        assert_eq!(verdict, Verdict::Pending { run_at: None, retries: 2, error: None });
    }

    #[test]
    fn backoff_grows_as_its_kind_says_and_stops_at_the_cap() {
        let exponential = policy(Backoff::Exponential);
        assert_eq!([1, 2, 3, 4000].map(|n| exponential.delay(n, 0.5)), [30_000, 60_000, 100_000, 100_000]);
        let linear = policy(Backoff::Linear);
        assert_eq!([1, 2, 3, 4].map(|n| linear.delay(n, 0.5)), [30_000, 60_000, 90_000, 100_000]);
    }

    #[test]
    fn jitter_spreads_to_both_sides() {
        let policy = Retry { jitter: 0.1, ..policy(Backoff::Linear) };
        assert_eq!([0.0, 0.5, 1.0].map(|dice| policy.delay(1, dice)), [27_000, 30_000, 33_000]);
        assert_eq!(policy.delay(9, 1.0), 100_000, "never beyond the cap");
    }

    #[test]
    fn a_failure_text_is_neither_empty_nor_endless() {
        assert!(!presentable(String::new()).is_empty());
        let cut = presentable("ä".repeat(1_000_000));
        assert!(cut.len() <= ERROR_LIMIT && cut.ends_with(CUT_MARK), "{}", cut.len());
        assert_eq!(presentable("x".repeat(ERROR_LIMIT)).len(), ERROR_LIMIT);
    }
}
