//! Each rule with a sound and a faulty run.

use super::super::outcome::{Outcome, RequestEnd};
use super::super::recorder::Recorder;
use super::super::run::{Connections, LoadModel, Manifest, RunInput, RunTarget};
use super::*;
use crate::decide::Nanos;
use crate::decide::base::failure::FailureKind;
use crate::measure::counts::RunCounts;

fn outcome(response_ms: u64, late_us: u64, end: RequestEnd) -> Outcome {
    let done = Nanos::from_millis(response_ms);
    Outcome {
        number: 0,
        intended: Nanos::ZERO,
        ready: Nanos::ZERO,
        sent: Nanos(late_us * 1000),
        first_byte: done,
        done,
        connect: Nanos::ZERO,
        end,
        bytes_in: 1,
        body_in: 1,
        bytes_out: 1,
    }
}

fn totals(n: u64, response_ms: u64, late_us: u64) -> Totals {
    let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
    (0..n).for_each(|_| recorder.record(&outcome(response_ms, late_us, RequestEnd::Response(200))));
    recorder.totals
}

fn evidence(totals: &Totals) -> Evidence<'_> {
    Evidence {
        duration_s: 10.0,
        totals,
        offered: 100.0,
        achieved: 100.0,
        dropped: 0,
        cpu_utilization: 0.3,
        in_flight_mean: 1.0,
        model: LoadModel::Open,
        spins: false,
    }
}

fn reasons(e: &Evidence<'_>) -> Vec<String> {
    Trust::judge(e).reasons
}

#[test]
fn a_sound_run_is_trusted() {
    let totals = totals(1000, 10, 30);
    assert_eq!(Trust::judge(&evidence(&totals)), Trust { ok: true, reasons: vec![] });
}

#[test]
fn each_fault_is_one_reason() {
    let sound = totals(1000, 10, 30);
    let late = totals(1000, 10, 2500);
    let few = totals(99, 10, 30);
    let cases = [
        (Evidence { duration_s: 0.4, ..evidence(&sound) }, "too short"),
        (evidence(&few), "too few"),
        (evidence(&late), "sent late"),
        (Evidence { cpu_utilization: 0.97, ..evidence(&sound) }, "97% of a core"),
        (Evidence { in_flight_mean: 1.2, ..evidence(&sound) }, "Little's law"),
        (Evidence { dropped: 20, ..evidence(&sound) }, "20 of 1020 requests got no response"),
    ];
    for (evidence, words) in cases {
        let reasons = reasons(&evidence);
        assert!(reasons.len() == 1 && reasons[0].contains(words), "{words}: {reasons:?}");
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
        recorder.totals
    };
    for totals in [run(true), run(false)] {
        let reasons = reasons(&Evidence { in_flight_mean: 1.25, ..evidence(&totals) });
        assert_eq!(reasons, [] as [String; 0], "3 ms distort neither a 99th percentile of 80 ms nor the median");
    }
    let mut some_late = totals(800, 1, 30);
    some_late.add(&totals(200, 5, 4_500));
    let distorted = reasons(&Evidence { in_flight_mean: 0.18, ..evidence(&some_late) });
    assert!(
        distorted.len() == 1 && distorted[0].contains("sent late"),
        "the 90th percentile is weir's own: {distorted:?}"
    );
    let all_late = totals(1000, 1, 300);
    let distorted = reasons(&Evidence { in_flight_mean: 0.1, ..evidence(&all_late) });
    assert!(distorted.len() == 1 && distorted[0].contains("sent late"), "{distorted:?}");
}

#[test]
fn the_remedy_for_lateness_depends_on_its_cause() {
    let late = totals(1000, 10, 2500);
    let remedy = |model, spins, cpu_utilization| {
        reasons(&Evidence { model, spins, cpu_utilization, ..evidence(&late) }).join(" ")
    };
    assert!(remedy(LoadModel::Open, false, 0.02).contains("--spin"));
    assert!(remedy(LoadModel::Open, false, 0.8).contains("Lower the rate"));
    assert!(!remedy(LoadModel::Open, true, 1.0).contains("--spin"));
    assert!(remedy(LoadModel::Closed, false, 0.02).contains("-c"));
}

#[test]
fn a_run_without_responses_has_no_absurd_reasons() {
    let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
    (0..500).for_each(|_| recorder.record(&outcome(1, 0, RequestEnd::Failed(FailureKind::Reset))));
    let reasons = reasons(&Evidence { achieved: 0.0, in_flight_mean: 0.0, ..evidence(&recorder.totals) });
    assert!(reasons.len() == 2 && reasons[0].contains("none of 500 requests succeeded"), "{reasons:?}");
}

#[test]
fn one_agent_that_is_late_busy_or_lost_makes_the_run_untrusted() {
    let (sound, late) = (totals(1000, 10, 30), totals(1000, 10, 2500));
    let agent = |totals: &Totals, cpu_utilization: f64, began_ms: u64, lost: Option<&str>| {
        let began = Nanos::from_millis(began_ms);
        let counted = RunCounts { totals: totals.clone(), cpu_utilization, began, ..RunCounts::default() };
        let lost = lost.map(str::to_owned);
        let account =
            AgentCounts { node: "n".into(), threads: 1, counts: counted, clock_error: Nanos(50_000), failure: lost };
        let figures = Agent::of(&account, 10.0);
        (account, figures)
    };
    let mut all = totals(0, 10, 30);
    (0..9).for_each(|_| all.add(&sound));
    let judge = |odd: (AgentCounts, Agent)| {
        let agents: Vec<_> = (0..8).map(|_| agent(&sound, 0.3, 0, None)).chain([odd]).collect();
        Trust::judge_agents(&evidence(&all), &agents).reasons
    };
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
    let reasons = Trust::judge_agents(&evidence(&all), &many).reasons;
    assert!(reasons.len() == 4 && reasons[3].contains("6 more agents"), "{reasons:?}");
}

#[test]
fn a_saturated_thread_and_late_sends_are_faults_of_the_generator() {
    let run = |cpu_utilization: f64, late_us: u64| {
        Run::new(RunInput {
            model: LoadModel::Closed,
            target: RunTarget::default(),
            totals: totals(1000, 10, late_us),
            series: Vec::new(),
            duration_s: 10.0,
            warmup_s: 0.0,
            offered_per_s: None,
            dropped: 0,
            unfinished: 0,
            connections: Connections::default(),
            cpu_s: 0.0,
            cpu_utilization,
            spins: false,
            in_flight_mean: 1.0,
            interrupted: false,
            agents: Vec::new(),
            manifest: Manifest::default(),
        })
    };
    assert!(!is_generator_fault(&run(0.5, 1_900)), "an idle machine wakes threads up no sooner");
    assert!(is_generator_fault(&run(0.5, 2_500)), "more than a tenth of 10 ms");
    assert!(is_generator_fault(&run(0.97, 30)));
}
