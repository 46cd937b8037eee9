//! Property tests: encoding and decoding return the original value, and no input makes a parser panic.

use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use super::lease;
use super::outcome::{ERROR_LIMIT, Ending, RetryState, Verdict, decide, presentable};
use super::rate::Rate;
use super::retry::{Backoff, Retry};
use super::settings::Settings;
use super::tick::Timing;
use crate::model::{Content, LATEST_MS, Now, Stored, checksum, millis, parse_ms};

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| Number::from_f64(number).map_or(Value::Null, Value::Number)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        any::<String>().prop_map(Content::Text),
        json().prop_map(Content::Json),
        any::<Vec<u8>>().prop_map(Content::Bytes),
    ]
}

/// Seconds as users and fuzzers give them.
fn seconds() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), 0.0..1e6, Just(f64::NAN), Just(f64::INFINITY), Just(1e300)]
}

fn retry() -> impl Strategy<Value = Retry> {
    let kind = prop_oneof![Just(Backoff::Exponential), Just(Backoff::Linear)];
    (any::<u32>(), seconds(), any::<f64>(), seconds(), any::<f64>(), kind).prop_filter_map(
        "no policy",
        |(max, base, factor, cap, jitter, kind)| {
            Retry::new(max.max(1), base.abs(), factor.abs().max(1.0), cap.abs(), jitter.abs() % 1.0, kind).ok()
        },
    )
}

/// Mostly nonsense, sometimes nearly a cron pattern.
fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[-*/,?LW#0-9 ]{0,24}", "([-*/,0-9A-Z#L]{1,6} ){4}[-*/,0-9A-Z#L]{1,6}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn content_comes_back_as_it_was_given(content in content()) {
        let stored = Stored::from(content.clone());
        prop_assert_eq!(Content::from_stored(stored.kind, stored.text).unwrap(), content);
    }

    #[test]
    fn any_two_columns_are_read_or_refused_with_their_text(kind in "text|json|base64|dropped|.{0,8}", text in any::<String>()) {
        if let Err((reason, raw)) = Content::from_stored(&kind, text.clone()) {
            prop_assert!(!reason.is_empty());
            prop_assert_eq!(raw, text);
        }
    }

    #[test]
    fn headers_come_back_as_they_were_given(headers in json()) {
        prop_assert_eq!(serde_json::from_str::<Value>(&headers.to_string()).unwrap(), headers);
    }

    #[test]
    fn one_changed_bit_changes_the_checksum(
        content in prop::collection::vec(any::<u8>(), 1..600),
        headers in prop::option::of(prop::collection::vec(any::<u8>(), 1..60)),
        at in any::<prop::sample::Index>(),
        bit in 0..8u8,
        of_headers in any::<bool>(),
    ) {
        let (mut other, mut other_headers) = (content.clone(), headers.clone());
        let changed = other_headers.as_mut().filter(|_| of_headers).unwrap_or(&mut other);
        let at = at.index(changed.len());
        changed[at] ^= 1 << bit;
        prop_assert_ne!(
            checksum(&content, b"text", headers.as_deref()),
            checksum(&other, b"text", other_headers.as_deref())
        );
    }

    #[test]
    fn any_stored_lease_is_read_or_holds_nobody_off(stored in any::<String>(), ttl in any::<i64>(), now in any::<i64>()) {
        lease::live(Some(&stored), ttl, Now(now), |_| true);
    }

    #[test]
    fn any_lease_record_is_judged(
        heartbeat in prop_oneof![any::<String>(), any::<i64>().prop_map(|ms| Now(ms).iso())],
        ttl in any::<f64>(),
        holder in any::<i64>(),
        pid in json(),
        now in any::<i64>(),
        is_alive in any::<bool>(),
    ) {
        let record = serde_json::json!({"heartbeat": heartbeat, "ttl": ttl, "holder": holder, "pid": pid});
        let live = lease::live(Some(&record.to_string()), 60_000, Now(now), |_| is_alive);
        prop_assert!(is_alive || live.is_none());
    }

    #[test]
    fn a_lease_holds_others_off_exactly_as_long_as_it_was_granted(ttl in 1..LATEST_MS / 4, age in -LATEST_MS / 4..LATEST_MS / 4) {
        let granted = LATEST_MS / 2;
        let record = lease::Record::new(lease::Writer { pid: 7, hostname: "box" }, "me", ttl, None, Now(granted)).render();
        let live = lease::live(Some(&record), 1, Now(granted + age), |_| true).is_some();
        prop_assert_eq!(live, age < ttl && -age <= ttl);
    }

    #[test]
    fn any_text_is_a_time_or_none(text in any::<String>()) {
        parse_ms(&text);
    }

    #[test]
    fn any_seconds_are_milliseconds_or_refused(seconds in seconds()) {
        if let Ok(ms) = millis("wait", seconds) {
            prop_assert!((0..=LATEST_MS).contains(&ms));
        }
    }

    #[test]
    fn a_back_off_never_exceeds_its_cap(retry in retry(), failure in any::<u32>(), fraction in 0.0..1.0) {
        let delay = retry.delay(failure, fraction);
        prop_assert!(delay >= 0 && delay as f64 <= retry.cap * 1000.0 + 1.0, "{delay} of {retry}");
    }

    #[test]
    fn every_ending_counts_at_most_one_and_the_limit_is_final(
        retries in any::<u32>(),
        max_retries in prop::option::of(any::<u32>()),
        queue_max in any::<u32>(),
        policy in prop::option::of(retry()),
        retry_in in prop::option::of(0..LATEST_MS),
        give_up in any::<bool>(),
        is_lost in any::<bool>(),
    ) {
        let left = RetryState { retries, max_retries, policy: policy.as_ref(), queue_max };
        let ending = match is_lost {
            true => Ending::Lost { worker: None },
            false => Ending::Failed { error: "no".into(), retry_in, give_up },
        };
        match decide(ending, &left, 0.5).0 {
            Verdict::Done { .. } | Verdict::Moved { .. } | Verdict::Blocked => {
                prop_assert!(false, "neither is done")
            }
            Verdict::Pending { delay_ms, retries: after, .. } => {
                prop_assert!(after < left.limit() && after == retries + 1);
                prop_assert!(delay_ms.is_none_or(|delay| (1..=LATEST_MS).contains(&delay)));
                prop_assert!(!give_up || is_lost);
            }
            Verdict::Failed { retries: after, .. } => prop_assert_eq!(after, retries.saturating_add(1)),
        }
    }

    #[test]
    fn a_failure_text_is_neither_empty_nor_endless(text in any::<String>(), times in 0..2_000usize) {
        let shown = presentable(text.repeat(times));
        prop_assert!(!shown.is_empty() && shown.len() <= ERROR_LIMIT);
    }

    #[test]
    fn an_interval_ticks_later_and_within_one_step(every in 1..LATEST_MS, planned in any::<i64>(), now in 0..LATEST_MS / 2) {
        let next = Timing::Every(every).next(planned, Now(now)).unwrap();
        prop_assert!(next > now && next <= now.saturating_add(every).min(LATEST_MS), "{next}");
    }

    #[test]
    fn any_pattern_ticks_later_or_is_refused(pattern in pattern(), tz in "UTC|Europe/Berlin|.{0,12}", now in 0..LATEST_MS / 2) {
        if let Ok(next) = (Timing::Cron { pattern, tz }).next(0, Now(now)) {
            prop_assert!(next > now);
        }
    }

    #[test]
    fn a_rate_never_waits_longer_than_its_period(
        count in any::<u32>(), per in any::<i64>(), last in any::<i64>(), at in prop::option::of(any::<i64>()), now in 0..LATEST_MS,
    ) {
        if let Ok(rate) = Rate::new(count, per) {
            rate.before(last);
            if let Some(free) = rate.wait(at, Now(now)) {
                prop_assert!(free > now && free - now <= per.saturating_mul(2), "{free}");
            }
        }
    }

    #[test]
    fn any_stored_settings_are_read_or_refused(stored in prop_oneof![any::<String>(), json().prop_map(|json| json.to_string())]) {
        if let Ok(settings) = Settings::parse(Some(&stored)) {
            let again = Settings::parse(Some(&settings.render())).unwrap();
            prop_assert_eq!(again, settings);
        }
    }
}
