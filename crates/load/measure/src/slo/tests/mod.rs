//! What objectives hold of which runs.

use super::*;
use crate::goodput::GoodputObjectives;
use crate::llm_counts::LlmCounts;
use crate::llm_timeline::LlmTimeline;
use crate::outcome::{Outcome, RequestEnd};
use crate::recorder::Recorder;
use crate::run::Manifest;
use crate::run_facts::RunFacts;
use crate::run_steps::StepFacts;
use crate::series::RunSeries;
use crate::step_counts::StepCounts;
use crate::stream_counts::StreamCounts;
use crate::stream_timeline::{StreamEnd, StreamTimeline};
use crate::time_window::TimeWindow;
use weir_base::failure::FailureKind;

/// Outcome at the time 0.
fn outcome(end: RequestEnd) -> Outcome {
    Outcome { bytes_in: 1, body_in: 1, bytes_out: 1, ..Outcome::new(end, Nanos::ZERO, Nanos::ZERO) }
}

/// A run with these requests: response time in microseconds, and end.
fn run(requests: &[(u64, RequestEnd)]) -> Run {
    let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
    for (us, end) in requests {
        let done = Nanos(us * 1_000);
        recorder.record(&Outcome { first_byte: done, done, ..outcome(*end) });
    }
    let facts = RunFacts { end: Nanos::from_secs(10), ..RunFacts::default() };
    Run::of(facts, &recorder.counts, &[], &RunSeries::default(), Manifest::default())
}

fn slo(text: &str) -> Slo {
    text.parse().expect("an objective")
}

#[test]
fn times_of_successes_are_judged_and_fast_failures_do_not_make_them_better() {
    let mut requests = vec![(300_000, RequestEnd::Response(200)); 100];
    requests.extend([(1_000, RequestEnd::Response(503)); 900]);
    let run = run(&requests);
    for text in ["p50<200ms", "mean<200ms", "max<200ms", "service.p99<200ms"] {
        assert!(!slo(text).check(&run).ok, "{text}");
    }
    assert!(slo("p99<301ms").check(&run).ok && !slo("errors<80%").check(&run).ok);
}

#[test]
fn without_a_success_all_objectives_on_times_are_missed() {
    for run in [
        run(&[(5, RequestEnd::Response(500)); 200]),
        run(&[(5, RequestEnd::Failed(FailureKind::Reset)); 200]),
        run(&[]),
    ] {
        for text in ["p50<1h", "mean<1h", "max<=1h", "service.p1<1h"] {
            let held = slo(text).check(&run);
            assert!(!held.ok && held.measured.contains("no success"), "{held:?}");
        }
    }
}

#[test]
fn a_search_with_objectives_on_times_alone_judges_errors_too() {
    let unasked = |objectives: &[&str]| {
        let slos: Vec<Slo> = objectives.iter().map(|text| slo(text)).collect();
        Slo::implied_error_slo(&slos).map(|slo| slo.to_string())
    };
    assert_eq!(unasked(&["p99<1s"]).as_deref(), Some("errors<1%"));
    assert_eq!(unasked(&["p99<1s", "errors<5%"]), None);
    assert_eq!(unasked(&["errors<5%"]), None);
}

#[test]
fn a_figure_never_contradicts_the_verdict_beside_it() {
    let times = |us: u64| run(&[(us, RequestEnd::Response(200)); 1_000]);
    let said = |text: &str, run: &Run| {
        let held = slo(text).check(run);
        (held.ok, held.measured)
    };
    // Of what would be shown as 200ms.
    let (held, measured) = said("mean<200ms", &times(199_800));
    assert!(held && measured.starts_with("mean response time 199."), "{measured}");
    assert_eq!(said("mean<=199.5ms", &times(199_800)).1, "mean response time 200ms");
    assert_eq!(said("mean<200ms", &times(253_000)), (false, "mean response time 253ms".into()));
    let mut requests = vec![(1_000, RequestEnd::Response(200)); 1_000_000 - 10_001];
    requests.extend(vec![(1_000, RequestEnd::Response(500)); 10_001]);
    assert_eq!(said("errors<=1%", &run(&requests)), (false, "errors 1.0001% (10001 of 1000000)".into()));
    assert_eq!(said("rate>100", &times(1)), (false, "rate of successes 100.0/s".into()));
}

#[test]
fn errors_below_one_are_a_share_and_from_one_on_a_percentage_that_was_meant() {
    assert_eq!(slo("errors<0.01").criterion(), Some(SloCriterion::Ok { allowed: 0.01 }));
    assert_eq!(slo("errors<=0").criterion(), Some(SloCriterion::Ok { allowed: 0.0 }));
    for (wrong, right) in [("errors<1", "errors<1%"), ("errors <= 5", "errors<=5%"), ("errors<1.5", "errors<1.5%")] {
        let why = wrong.parse::<Slo>().expect_err("meant is a percentage");
        assert!(why.contains(right), "{why}");
    }
}

#[test]
fn an_upper_bound_on_times_or_errors_demands_something_of_a_load() {
    let demand = |text: &str| text.parse::<Slo>().expect("an objective").criterion();
    let limit = Nanos::from_millis(200);
    let Some(SloCriterion::InTime { kind: TimeKind::Response, limit: of_p99, allowed }) = demand("p99<200ms") else {
        panic!("a share in time")
    };
    assert!(of_p99 == limit && (allowed - 0.01).abs() < 1e-12);
    assert_eq!(demand("max<200ms"), Some(SloCriterion::InTime { kind: TimeKind::Response, limit, allowed: 0.0 }));
    assert_eq!(demand("mean<=200ms"), Some(SloCriterion::Mean { kind: TimeKind::Response, limit }));
    assert_eq!(demand("errors<1%"), Some(SloCriterion::Ok { allowed: 0.01 }));
    assert_eq!(demand("gap.max<200ms"), Some(SloCriterion::InTime { kind: TimeKind::Gap, limit, allowed: 0.0 }));
    let Some(SloCriterion::Goodput { allowed }) = demand("goodput>=99%") else { panic!("goodput") };
    assert!((allowed - 0.01).abs() < 1e-12);
    for other in ["goodput<99%", "ttft.p99>200ms", "rate>5", "rate<5", "p99>200ms", "service.p99<200ms", "errors>1%"] {
        assert_eq!(demand(other), None, "{other}");
    }
}

/// A run of a scenario with two steps: 100 successes of 10 ms and, of the second, `failed` failures.
fn run_of_steps(failed: u64) -> Run {
    let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
    let outcome = |status: u16, passed: bool, ms: u64| {
        let done = Nanos::from_millis(ms);
        Outcome { first_byte: done, done, ..outcome(RequestEnd::Checked { status, passed }) }
    };
    let mut steps = vec![StepCounts::default(), StepCounts::default()];
    for (index, ms) in [(0, 10), (1, 40)] {
        for number in 0..100 {
            let passed = index == 0 || number >= failed;
            let outcome = outcome(200, passed, ms);
            recorder.record(&outcome);
            steps[index].record(&outcome);
            steps[index].record_check(0, passed);
        }
    }
    recorder.counts.steps = steps;
    let facts = |name: &str| StepFacts {
        name: format!("shop: {name}"),
        scenario: "shop".to_owned(),
        checks: vec!["status == 200".to_owned()],
    };
    let steps = vec![facts("list"), facts("buy: now")];
    let facts = RunFacts { end: Nanos::from_secs(10), steps, ..RunFacts::default() };
    Run::of(facts, &recorder.counts, &[], &RunSeries::default(), Manifest::default())
}

#[test]
fn an_objective_may_be_about_a_scenario_a_step_or_the_checks() {
    let run = run_of_steps(10);
    for (text, ok, measured) in [
        ("shop: p99 < 30ms", false, "shop: p99 response time 40.0ms"),
        ("shop: list: response_ms p99 < 30ms", true, "shop: list: p99 response time 10.0ms"),
        ("shop: buy: now: service_ms max < 30ms", false, "shop: buy: now: max service time 40.0ms"),
        ("shop: buy: now: errors <= 10%", true, "shop: buy: now: errors 10% (10 of 100)"),
        ("shop: errors < 5%", false, "shop: errors 5% (10 of 200)"),
        ("shop: rate > 18", true, "shop: rate of successes 19.0/s"),
        ("checks > 99.5%", false, "checks 95% (190 of 200)"),
        ("shop: list: checks >= 100%", true, "shop: list: checks 100% (100 of 100)"),
        ("checks >= 1", false, "checks 95% (190 of 200)"),
        ("iterations: errors < 1%", false, "iterations, no requests"),
        ("unused: p50 < 1h", false, "unused: p50 response time: no success"),
    ] {
        let held = slo(text).check(&run);
        assert_eq!((held.objective.as_str(), held.ok, held.measured.as_str()), (text, ok, measured));
    }
    assert_eq!(slo("shop: buy: now: errors < 1%").scope_name(), Some("shop: buy: now"));
    assert_eq!(slo("a < b: p99 < 1s").scope_name(), Some("a < b"));
    assert!(slo("checks > 1%").needs_scenarios() && !slo("service.p99 < 1s").needs_scenarios());
    for wrong in
        ["shop: time p95 < 1s", "iterations: service_ms p95 < 1s", "shop: p99", "checks > 5", "shop: p99 p50 < 1s"]
    {
        assert!(wrong.parse::<Slo>().is_err(), "{wrong}");
    }
}

#[test]
fn objectives_of_parts_demand_nothing_of_all_requests() {
    for text in ["shop: p99<200ms", "iterations: errors<1%", "checks<1%"] {
        assert_eq!(slo(text).criterion(), None, "{text}");
    }
}

#[test]
fn objectives_of_streams_and_of_language_models_judge_their_times_and_are_missed_without_any() {
    let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
    let mut streams = StreamCounts::default();
    let mut timeline = StreamTimeline::new(Nanos::ZERO, Nanos::ZERO);
    timeline.record_event(Nanos::from_millis(100));
    let gap = timeline.record_event(Nanos::from_millis(130)).expect("a gap");
    streams.record_gap(gap);
    streams.record_response(&timeline, StreamEnd::Complete, 10);
    let mut llm = LlmCounts::default();
    let mut tokens = LlmTimeline::new(Nanos::ZERO, Nanos::ZERO);
    tokens.record_chunk(Nanos::from_millis(100), &TimeWindow::ALL);
    tokens.record_usage(Some(3), Some(1));
    llm.record_response(&tokens, Nanos::from_millis(200), &GoodputObjectives::default());
    recorder.record(&Outcome { done: Nanos::from_millis(200), ..outcome(RequestEnd::Response(200)) });
    recorder.record(&Outcome { done: Nanos::from_millis(200), ..outcome(RequestEnd::Response(500)) });
    recorder.counts.streams = Some(Box::new(streams));
    recorder.counts.llm = Some(Box::new(llm));
    let facts = RunFacts {
        end: Nanos::from_secs(10),
        reads_events: true,
        llm_objectives: Some(GoodputObjectives::default()),
        ..RunFacts::default()
    };
    let run = Run::of(facts, &recorder.counts, &[], &RunSeries::default(), Manifest::default());
    let measured = |text: &str| slo(text).check(&run);
    for text in ["first_event.p99<101ms", "gap.max<31ms", "ttft.p50<101ms", "e2e.mean<201ms", "goodput>=50%"] {
        assert!(measured(text).ok, "{:?}", measured(text));
    }
    // One request of two failed, and no time per token is known of a single one.
    for text in ["first_event.p99<99ms", "gap.p1<29ms", "goodput>50%", "tpot.p99<1h", "chunk_gap.p99<1h"] {
        assert!(!measured(text).ok, "{:?}", measured(text));
    }
    assert_eq!(measured("goodput>50%").measured, "goodput 50% (1 of 2)");
    assert_eq!(measured("tpot.p99<1h").measured, "p99 TPOT: none");
    assert!(slo("gap.p99<1s").needs_streams() && !slo("gap.p99<1s").needs_llm() && slo("goodput>1%").needs_llm());
    assert!(!slo("p99<1s").needs_streams());
    assert!("iterations: ttft.p99<1s".parse::<Slo>().is_err());
}
