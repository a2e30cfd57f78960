//! Each rule with a sound and a faulty run.

use super::super::llm_counts::LlmCounts;
use super::super::load_model::LoadModel;
use super::super::outcome::{Outcome, RequestEnd};
use super::super::recorder::Recorder;
use super::super::run::{Manifest, Run};
use super::super::run_facts::RunFacts;
use super::super::run_steps::StepFacts;
use super::super::series::RunSeries;
use super::super::websocket_counts::WebSocketCounts;
use super::*;
use weir_base::Nanos;
use weir_base::failure::FailureKind;

fn outcome(response_ms: u64, late_us: u64, end: RequestEnd) -> Outcome {
    Outcome { sent: Nanos(late_us * 1000), ..Outcome::new(end, Nanos::ZERO, Nanos::from_millis(response_ms)) }
}

fn counts(n: u64, response_ms: u64, late_us: u64) -> Counts {
    let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
    (0..n).for_each(|_| recorder.record(&outcome(response_ms, late_us, RequestEnd::Response(200))));
    Counts { cpu_utilization: 0.3, ..recorder.counts }
}

fn evidence(counts: &Counts) -> Evidence<'_> {
    Evidence { duration_s: 10.0, counts, achieved: 100.0, in_flight_mean: 1.0, model: LoadModel::Open, spins: false }
}

fn reasons(e: &Evidence<'_>) -> Vec<String> {
    Trust::judge(e).reasons
}

#[test]
fn a_sound_run_is_trusted() {
    let counts = counts(1000, 10, 30);
    assert_eq!(Trust::judge(&evidence(&counts)), Trust { ok: true, reasons: vec![] });
}

#[test]
fn connections_that_listen_are_measured_by_their_messages() {
    let mut streams = super::super::stream_counts::StreamCounts::default();
    (0..99).for_each(|_| streams.record_gap(Nanos::from_millis(20)));
    let few = Counts { websocket: Some(Box::default()), streams: Some(Box::new(streams.clone())), ..counts(5, 10, 30) };
    assert!(reasons(&evidence(&few)).iter().any(|why| why.contains("too few")));
    streams.record_gap(Nanos::from_millis(20));
    let enough = Counts { streams: Some(Box::new(streams)), ..few };
    assert_eq!(reasons(&evidence(&enough)), Vec::<String>::new());
    let http = Counts { websocket: None, ..enough };
    assert!(reasons(&evidence(&http)).iter().any(|why| why.contains("too few")));
}

#[test]
fn replies_that_may_be_mixed_up_are_named() {
    let sound = counts(1000, 10, 30);
    let with = |matched_in_order, repeated_ids, timeouts| {
        let websocket = WebSocketCounts { matched_in_order, repeated_ids, ..WebSocketCounts::default() };
        let mut counts = Counts { websocket: Some(Box::new(websocket)), ..sound.clone() };
        counts.failures[FailureKind::Timeout as usize] = timeouts;
        reasons(&evidence(&counts))
    };
    assert_eq!([with(500, 0, 0), with(0, 0, 1)], [[], []] as [[String; 0]; 2]);
    assert!(with(500, 0, 1)[0].contains("name it with --reply"));
    assert!(with(0, 3, 0)[0].contains("such as {{seq}}."));
}

#[test]
fn each_fault_is_one_reason() {
    let sound = counts(1000, 10, 30);
    let late = counts(1000, 10, 2500);
    let few = counts(99, 10, 30);
    let busy = Counts { cpu_utilization: 0.97, ..sound.clone() };
    let dropping = Counts { dropped: 20, ..sound.clone() };
    let cases = [
        (Evidence { duration_s: 0.4, ..evidence(&sound) }, "too short"),
        (evidence(&few), "too few"),
        (evidence(&late), "sent late"),
        (evidence(&busy), "97% of a core"),
        (Evidence { in_flight_mean: 1.2, ..evidence(&sound) }, "Little's law"),
        (evidence(&dropping), "20 of 1020 requests got no response"),
    ];
    for (evidence, words) in cases {
        let reasons = reasons(&evidence);
        assert!(reasons.len() == 1 && reasons[0].contains(words), "{words}: {reasons:?}");
    }
}

#[test]
fn times_to_first_token_are_distorted_by_late_sends_beyond_a_hundredth_and_a_wake_up() {
    let judged = |ttft_us: u64, late_us: u64| {
        let mut llm = LlmCounts::default();
        llm.ttft.record(Nanos(ttft_us * 1_000));
        llm.ttft_lateness.record(Nanos(late_us * 1_000));
        let counts = Counts { llm: Some(Box::new(llm)), ..counts(1000, 500, 30) };
        reasons(&Evidence { in_flight_mean: 50.0, ..evidence(&counts) })
    };
    assert_eq!([judged(100_000, 1_000), judged(1_000, 55)], [Vec::<String>::new(), Vec::new()]);
    for (ttft_us, late_us) in [(100_000, 1_100), (1_000, 65)] {
        let found = judged(ttft_us, late_us);
        assert!(found.len() == 1 && found[0].contains("of the median time to first token"), "{found:?}");
    }
}

#[test]
fn lateness_is_judged_by_its_effect_on_response_times() {
    // 1% of the sends are late by 3 ms, those of the slowest responses or of the fastest.
    let run = |late_and_slow: bool| {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        for i in 0..1000 {
            let slow = i < 100;
            let late = if late_and_slow { i < 20 } else { i >= 980 };
            let response_ms = if slow { 80 } else { 5 };
            recorder.record(&outcome(response_ms, if late { 3_000 } else { 30 }, RequestEnd::Response(200)));
        }
        recorder.counts
    };
    for counts in [run(true), run(false)] {
        let reasons = reasons(&Evidence { in_flight_mean: 1.25, ..evidence(&counts) });
        assert_eq!(reasons, [] as [String; 0], "3 ms distort neither a 99th percentile of 80 ms nor the median");
    }
    let mut some_late = counts(800, 1, 30);
    some_late.add(&counts(200, 5, 4_500));
    let distorted = reasons(&Evidence { in_flight_mean: 0.18, ..evidence(&some_late) });
    assert!(
        distorted.len() == 1 && distorted[0].contains("sent late"),
        "the 90th percentile is weir's own: {distorted:?}"
    );
    let all_late = counts(1000, 1, 300);
    let distorted = reasons(&Evidence { in_flight_mean: 0.1, ..evidence(&all_late) });
    assert!(distorted.len() == 1 && distorted[0].contains("sent late"), "{distorted:?}");
}

#[test]
fn the_remedy_for_lateness_depends_on_its_cause() {
    let late = counts(1000, 10, 2500);
    let remedy = |model, spins, cpu_utilization| {
        let counts = Counts { cpu_utilization, ..late.clone() };
        reasons(&Evidence { model, spins, ..evidence(&counts) }).join(" ")
    };
    assert!(remedy(LoadModel::Open, false, 0.02).contains("--spin"));
    assert!(remedy(LoadModel::Open, false, 0.8).contains("Lower the rate"));
    assert!(!remedy(LoadModel::Open, true, 1.0).contains("--spin"));
    assert!(remedy(LoadModel::Closed, false, 0.02).contains("connections (-c) or users (--users)"));
    // A script that has no step yet: it has users, and no -c that its reader gave.
    let script = Counts { script_utilization: 0.01, ..late.clone() };
    let words = reasons(&Evidence { model: LoadModel::Closed, ..evidence(&script) }).join(" ");
    assert!(words.contains("Use fewer users (--users)") && !words.contains("-c"), "{words}");
}

#[test]
fn a_script_that_is_the_limit_is_named() {
    let of_script = |counts: Counts| reasons(&evidence(&counts)).join(" ");
    let sound = counts(1000, 10, 30);
    let busy = Counts { cpu_utilization: 0.99, script_utilization: 0.7, ..sound.clone() };
    assert!(
        of_script(busy.clone()).starts_with("the script is the limit: its calls took 70%"),
        "{:?}",
        of_script(busy)
    );
    let waiting = Counts { cpu_utilization: 0.02, script_utilization: 0.99, ..sound.clone() };
    assert!(of_script(waiting).contains("the script is the limit"));
    // The rest of the thread is weir's own work.
    let small = Counts { cpu_utilization: 0.99, script_utilization: 0.2, ..sound.clone() };
    assert!(of_script(small).starts_with("weir's busiest thread used 99% of a core"));
    let idle = Counts { cpu_utilization: 0.6, script_utilization: 0.6, ..sound };
    assert_eq!(of_script(idle), "");
    let late =
        Counts { longest_script_call: Nanos::from_millis(40), script_utilization: 0.1, ..counts(1000, 10, 2500) };
    let words = "Requests waited for the script: its calls took up to 40ms each, and 10% of its thread's time.";
    assert!(of_script(late.clone()).contains(words), "{}", of_script(late.clone()));
    let quick = Counts { longest_script_call: Nanos(90_000), ..late };
    assert!(!of_script(quick).contains("script"), "weir itself was woken up late");
}

#[test]
fn a_run_without_responses_has_no_absurd_reasons() {
    let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
    (0..500).for_each(|_| recorder.record(&outcome(1, 0, RequestEnd::Failed(FailureKind::Reset))));
    let reasons = reasons(&Evidence { achieved: 0.0, in_flight_mean: 0.0, ..evidence(&recorder.counts) });
    assert!(reasons.len() == 2 && reasons[0].contains("none of 500 requests succeeded"), "{reasons:?}");
}

#[test]
fn one_agent_that_is_late_busy_or_lost_makes_the_run_untrusted() {
    let (sound, late) = (counts(1000, 10, 30), counts(1000, 10, 2500));
    let agent = |counts: &Counts, cpu_utilization: f64, began_ms: u64, lost: Option<&str>| {
        let counts = Counts { cpu_utilization, began: Nanos::from_millis(began_ms), ..counts.clone() };
        let failure = lost.map(str::to_owned);
        AgentCounts { node: "n".into(), threads: 1, counts, clock_error: Nanos(50_000), failure }
    };
    let mut all = counts(0, 10, 30);
    (0..9).for_each(|_| all.add(&sound));
    let judge_all = |agents: &[AgentCounts]| {
        let figures: Vec<Agent> = agents.iter().map(|agent| Agent::of(agent, 10.0)).collect();
        Trust::judge_agents(&evidence(&all), agents, &figures).reasons
    };
    let judge =
        |odd: AgentCounts| judge_all(&(0..8).map(|_| agent(&sound, 0.3, 0, None)).chain([odd]).collect::<Vec<_>>());
    assert_eq!(judge(agent(&sound, 0.3, 0, None)), Vec::<String>::new());
    for (odd, words) in [
        (agent(&late, 0.3, 0, None), "agent 9 on n: weir itself sent late"),
        (agent(&sound, 0.97, 0, None), "agent 9 on n: weir's busiest thread used 97%"),
        (agent(&sound, 0.3, 11, None), "the agents started 11.0 ms apart"),
        (agent(&sound, 0.3, 0, Some("its node is gone")), "agent 9 on n was lost: its node is gone."),
    ] {
        let reasons = judge(odd);
        assert!(reasons.len() == 1 && reasons[0].contains(words), "{words}: {reasons:?}");
    }
    let many: Vec<_> = (0..9).map(|_| agent(&late, 0.3, 0, None)).collect();
    let reasons = judge_all(&many);
    assert!(reasons.len() == 4 && reasons[3].contains("6 more agents"), "{reasons:?}");
}

#[test]
fn a_saturated_thread_and_late_sends_are_faults_of_the_generator() {
    let run = |cpu_utilization: f64, late_us: u64| {
        let facts = RunFacts { end: Nanos::from_secs(10), ..RunFacts::default() };
        let counts = Counts { cpu_utilization, ..counts(1000, 10, late_us) };
        Run::of(facts, &counts, &[], &RunSeries::default(), Manifest::default())
    };
    assert!(!run(0.5, 1_900).is_generator_fault(), "an idle machine wakes threads up no sooner");
    assert!(run(0.5, 2_500).is_generator_fault(), "more than a tenth of 10 ms");
    assert!(run(0.97, 30).is_generator_fault());
}

#[test]
fn time_that_the_machine_took_is_a_cause_where_weir_was_late_and_nothing_elsewhere() {
    let run = |late_us: u64, steal_fraction: f64, throttled_ms: u64| {
        let stolen = StolenTime { steal_fraction, throttled: Nanos::from_millis(throttled_ms) };
        let facts = RunFacts { end: Nanos::from_secs(10), stolen, ..RunFacts::default() };
        Run::of(facts, &counts(1000, 10, late_us), &[], &RunSeries::default(), Manifest::default()).trust
    };
    let has_cause =
        |trust: &Trust| trust.reasons.iter().any(|reason| reason.contains("steal") || reason.contains("quota"));
    assert!(!has_cause(&run(30, 0.2, 500)), "the sends were on time");
    assert!(!has_cause(&run(2_500, 0.001, 0)), "the machine took next to nothing");
    let stolen = run(2_500, 0.032, 120);
    let [.., steal, quota] = stolen.reasons.as_slice() else { panic!("{stolen:?}") };
    assert!(
        steal.contains("3.2% of this machine's CPU time") && quota.contains("stopped its threads for 120"),
        "{stolen:?}"
    );
    assert!(!stolen.ok && stolen.reasons.iter().any(|reason| reason.contains("weir itself sent late")));
}

/// Run of two steps: one of 900 requests on time, and one of requests that were sent late.
fn run_of_steps(late_requests: u64, late_us: u64) -> Run {
    let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
    let all = (0..900).map(|_| (0, 30)).chain((0..late_requests).map(|_| (1, late_us)));
    for (step, late_us) in all {
        let outcome = outcome(10, late_us, RequestEnd::Response(200));
        recorder.record(&outcome);
        recorder.counts.step(step).record(&outcome);
    }
    let name = |name: &str| StepFacts { name: name.into(), ..StepFacts::default() };
    let facts =
        RunFacts { end: Nanos::from_millis(10_000), steps: vec![name("list"), name("buy")], ..RunFacts::default() };
    Run::of(facts, &recorder.counts, &[], &RunSeries::default(), Manifest::default())
}

#[test]
fn a_step_that_is_late_is_named_where_the_whole_is_not() {
    let run = run_of_steps(9, 2_500);
    assert_eq!(run.steps.iter().map(|step| step.untrusted).collect::<Vec<_>>(), [false, true]);
    let named: Vec<&String> = run.trust.reasons.iter().filter(|reason| reason.contains("sent late")).collect();
    assert!(named.len() == 1 && named[0].starts_with("weir itself sent late in step 'buy': "), "{named:?}");
    assert!(!run.trust.ok && run.steps[1].lateness_ms.p99 > Some(2.4));
    let on_time = run_of_steps(9, 100);
    assert!(on_time.steps.iter().all(|step| !step.untrusted), "{:?}", on_time.trust);
}

#[test]
fn a_quantile_of_a_step_beyond_which_there_are_few_responses_is_not_judged() {
    for few in [1, 2, 5] {
        assert!(run_of_steps(few, 9_000).steps.iter().all(|step| !step.untrusted), "{few}");
    }
    assert!(run_of_steps(6, 9_000).steps[1].untrusted, "three are beyond the median");
}
