//! Counts between agents and coordinator: encoded, checked and merged.

use proptest::prelude::*;
use weir_base::failure::FailureKind;

use super::super::outcome::{Outcome, RequestEnd};
use super::super::recorder::{Interval, Recorder};
use super::*;

fn outcome(ns: u64, end: RequestEnd) -> Outcome {
    Outcome {
        sent: Nanos(ns / 3),
        first_byte: Nanos(ns / 2),
        connect: Nanos(ns / 7),
        bytes_in: 300,
        body_in: ns % 3,
        bytes_out: 90,
        ..Outcome::new(end, Nanos::ZERO, Nanos(ns))
    }
}

fn recorder(times: &[(u64, usize)]) -> Recorder {
    let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
    for (ns, way) in times {
        let ends = [
            RequestEnd::Response(200),
            RequestEnd::Response(404),
            RequestEnd::Response(503),
            RequestEnd::Failed(FailureKind::Reset),
        ];
        recorder.record(&outcome(*ns, ends[way % 4]));
    }
    recorder
}

fn times() -> impl Strategy<Value = Vec<(u64, usize)>> {
    prop::collection::vec((1..10_000_000_000_u64, 0..4_usize), 0..200)
}

/// Value as the peer decodes it.
fn sent<T: Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    let text = serde_json::to_string(value).expect("counts serialise");
    serde_json::from_str(&text).expect("own text")
}

proptest! {
    // A case unpacks histograms of megabytes.
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn an_interval_survives_a_round_trip(times in times(), area in 0.0..1e15_f64, utilization in 0.0..1.0_f64) {
        let mut recorder = recorder(&times);
        let mut interval = std::mem::take(&mut recorder.interval);
        interval.counts = Some(Box::new(Counts {
            area,
            cpu_utilization: utilization,
            last_done: Nanos(7),
            server: Some("nginx".into()),
            details: BTreeMap::from([(FailureKind::Reset, "gone".to_owned())]),
            ..recorder.take_counts()
        }));
        let back: Interval = sent(&interval);
        prop_assert_eq!(back.check(), Ok(()));
        prop_assert_eq!(&back, &interval);
        prop_assert_eq!(back.response.to_bytes(), interval.response.to_bytes(), "at the same precision");
    }

    /// Oracle: one recorder of all requests.
    #[test]
    fn decoded_parts_add_up_to_the_whole(parts in prop::collection::vec(times(), 1..5)) {
        let counts: Vec<Counts> = parts.iter().map(|part| sent(&recorder(part).take_counts())).collect();
        prop_assert!(counts.iter().all(|part| part.check().is_ok()));
        let (sum, whole) = (counts.iter().sum::<Counts>(), recorder(&parts.concat()).take_counts());
        prop_assert_eq!(sum.check(), Ok(()));
        prop_assert_eq!(sum.good.response.percentiles(), whole.good.response.percentiles());
        prop_assert_eq!(sum.bad.service.percentiles(), whole.bad.service.percentiles());
        prop_assert_eq!(sum.failed_response().percentiles(), whole.failed_response().percentiles());
        prop_assert_eq!(&sum.statuses, &whole.statuses);
        prop_assert_eq!(sum.by_failure(), whole.by_failure());
        prop_assert_eq!((sum.requests, sum.ok), (whole.requests, whole.ok));
    }
}

#[test]
fn impossible_counts_are_rejected() {
    let right = recorder(&[(5, 0), (9, 3)]).take_counts();
    assert_eq!(right.check(), Ok(()));
    let changes: [fn(&mut Counts); 14] = [
        |counts| counts.requests = 3,
        |counts| counts.ok = 2,
        |counts| counts.body_lengths.same = 2,
        |counts| counts.bytes_in = u64::MAX,
        |counts| counts.offered = u64::MAX,
        |counts| counts.failures = [u64::MAX; FailureKind::ALL.len()],
        |counts| counts.good = ResponseTimes::default(),
        |counts| counts.bad = counts.good.clone(),
        |counts| counts.good.service = Histogram::precise(),
        |counts| counts.no_response = Histogram::precise(),
        |counts| counts.statuses.record(200),
        |counts| counts.area = f64::INFINITY,
        |counts| counts.cpu_utilization = -1.0,
        |counts| counts.server = Some("x".repeat(1001)),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut wrong = right.clone();
        change(&mut wrong);
        assert!(wrong.check().is_err(), "change {number}");
        let interval = Interval { counts: Some(Box::new(wrong)), ..Interval::default() };
        assert!(interval.check().is_err(), "change {number}, in an interval");
    }
    assert!(Interval { backlog: u64::MAX, ..Interval::default() }.check().is_err());
}

#[test]
fn values_outside_of_their_type_are_no_counts() {
    let right = serde_json::to_value(recorder(&[(5, 0), (9, 3)]).take_counts()).expect("counts serialise");
    let decode = |field: &str, value: serde_json::Value| {
        let mut wrong = right.clone();
        wrong[field] = value;
        serde_json::from_value::<Counts>(wrong)
    };
    assert!(decode("requests", 2.into()).is_ok());
    for (field, value) in [
        ("requests", serde_json::json!(-1)),
        ("connect", "?".into()),
        ("statuses", serde_json::json!({ "1000": 1 })),
        ("details", serde_json::json!({ "bad luck": "" })),
    ] {
        assert!(decode(field, value).is_err(), "{field}");
    }
}

#[test]
fn a_long_text_is_sent_truncated() {
    let long = "ä".repeat(2000);
    let details = BTreeMap::from([(FailureKind::Tls, long.clone())]);
    let counts = sent(&Counts { server: Some(long), details, ..Counts::default() });
    assert_eq!(counts.check(), Ok(()));
    assert_eq!(counts.server, Some("ä".repeat(1000)));
    assert_eq!(counts.details[&FailureKind::Tls], "ä".repeat(1000));
}
