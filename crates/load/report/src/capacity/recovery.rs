//! Test of recovery for a terminal: the verdict, its reasons, the course of good calls, and every phase.

use super::super::ansi::AnsiPaint;
use super::super::number_format::{TERMINAL_COLUMNS, percentage, rate, truncate, wrap};
use super::super::summary::blocks;
use super::time;
use weir_measure::recovery::recovery_report::PhaseReport;
use weir_measure::recovery::{RecoveryPhase, RecoveryReport, RecoveryVerdict};

/// Columns of the course of good calls.
const COURSE_COLUMNS: usize = 64;

/// Verdict in a line: `metastable at 80.0/s: did not recover within 30 s after a spike to 240/s for 5s`.
pub(super) fn headline(tested: &RecoveryReport) -> String {
    let load = load(tested);
    let after = format!("after {}", tested.trigger);
    let seconds = phase(tested, RecoveryPhase::Observation).map_or(0, |phase| phase.duration_s);
    match tested.verdict {
        RecoveryVerdict::Recovered => {
            format!("recovered {} s {after}, at {load}", tested.recovery_s.unwrap_or_default())
        }
        RecoveryVerdict::Undisturbed => format!("not disturbed by {}, at {load}", tested.trigger),
        RecoveryVerdict::Degraded => format!("degraded at {load}: not back to normal within {seconds} s {after}"),
        RecoveryVerdict::Metastable => format!("metastable at {load}: did not recover within {seconds} s {after}"),
        RecoveryVerdict::Inconclusive => format!("no verdict on recovery at {load}"),
    }
}

/// Load with what it is of the capacity: `400/s (80.0% of the capacity)`.
fn load(tested: &RecoveryReport) -> String {
    let of_capacity = tested.load_fraction.map(|fraction| format!(" ({} of the capacity)", percentage(fraction)));
    format!("{}/s{}", rate(tested.load_per_s), of_capacity.unwrap_or_default())
}

/// Finding when the load was taken away, as a sentence; none if it was not.
pub(super) fn rest(tested: &RecoveryReport) -> Option<String> {
    let rest = tested.rest?;
    Some(match rest.recovery_s {
        Some(seconds) => {
            format!("it recovered: back to normal {seconds} s after {} s of little load", rest.duration_s)
        }
        None if phase(tested, RecoveryPhase::Return).is_none() => {
            format!("it did not recover within {} s of little load either", rest.duration_s)
        }
        None => format!("it recovered for {} s of little load, but not at the load before", rest.duration_s),
    })
}

/// Clients of the load, as a sentence.
pub(super) fn clients(tested: &RecoveryReport) -> String {
    let retries = match tested.retries {
        0 => "do not retry".to_owned(),
        1 => "retry once".to_owned(),
        retries => format!("retry up to {retries} times"),
    };
    format!("they give up a request after {}, and {retries}", time(Some(tested.timeout_ms)))
}

fn phase(tested: &RecoveryReport, wanted: RecoveryPhase) -> Option<&PhaseReport> {
    tested.phases.iter().find(|phase| phase.phase == wanted)
}

/// Name of a phase.
pub fn phase_name(phase: RecoveryPhase) -> &'static str {
    match phase {
        RecoveryPhase::WarmUp => "warm-up",
        RecoveryPhase::Baseline => "baseline",
        RecoveryPhase::Trigger => "trigger",
        RecoveryPhase::Observation => "observation",
        RecoveryPhase::Rest => "rest",
        RecoveryPhase::Return => "return",
    }
}

/// Verdict, in its colour.
pub(super) fn verdict_lines(tested: &RecoveryReport, paint: AnsiPaint) -> Vec<String> {
    let is_good = matches!(tested.verdict, RecoveryVerdict::Recovered | RecoveryVerdict::Undisturbed);
    let color = |line: &String| if is_good { paint.bold(line) } else { paint.red(line) };
    let mut lines: Vec<String> = wrap("", &headline(tested)).iter().map(color).collect();
    for doubt in &tested.doubts {
        lines.extend(wrap("not trusted   ", doubt).iter().map(|line| paint.red(line)));
    }
    lines
}

/// Reasons of the verdict.
pub(super) fn reason_lines(tested: &RecoveryReport) -> Vec<String> {
    let mut lines = wrap("reason        ", &tested.reason);
    lines.extend(rest(tested).iter().flat_map(|words| wrap("rest          ", words)));
    lines.extend(wrap("clients       ", &clients(tested)));
    lines
}

/// Course and phases.
pub(super) fn phase_lines(tested: &RecoveryReport, paint: AnsiPaint) -> Vec<String> {
    if tested.series.len() < 2 {
        return Vec::new();
    }
    let good: Vec<f64> = tested.series.iter().map(|second| second.good as f64).collect();
    let heading = format!(
        "{:>12}{:>6}{:>10}{:>10}{:>10}{:>9}{:>9}{:>10}",
        "phase", "time", "offered", "good", "failed", "p50", "p99", "requests"
    );
    let mut lines =
        vec![format!("good calls    {}", blocks(&good, COURSE_COLUMNS)), String::new(), paint.dim(&heading)];
    lines.extend(tested.phases.iter().map(|phase| {
        let per_s = |value: f64| format!("{}/s", rate(value));
        let requests = phase.requests_per_call.map_or_else(|| "-".to_owned(), |requests| format!("{requests:.2}x"));
        let line = format!(
            "{:>12}{:>6}{:>10}{:>10}{:>10}{:>9}{:>9}{requests:>10}",
            phase_name(phase.phase),
            format!("{}s", phase.duration_s),
            per_s(phase.offered_per_s),
            per_s(phase.good_per_s),
            per_s(phase.failed_per_s),
            time(phase.p50_ms),
            time(phase.p99_ms),
        );
        truncate(&line, TERMINAL_COLUMNS)
    }));
    lines
}

#[cfg(test)]
pub(super) mod fixtures {
    use weir_base::Nanos;
    use weir_measure::recorder::Interval;
    use weir_measure::recovery::*;

    /// Seconds of a load: offered, good, failed and requests per second, and the median in milliseconds.
    type Course<'c> = &'c [(f64, u64, u64, u64, u64)];

    fn tested(course: Course<'_>, facts: RecoveryFacts) -> RecoveryReport {
        let trigger = TriggerLength::Seconds(2);
        let mut test =
            RecoveryTest::new(RecoveryRules { warmup_s: 1, baseline_s: 3, trigger, stable_s: 3, observe_s: 4 });
        for (offered, good, failed, requests, ms) in course {
            let mut second =
                RecoverySecond::of(&Interval { ok: *good, failed: *failed, ..Interval::default() }, *offered);
            second.requests = *requests;
            (0..*good).for_each(|_| second.times.record(Nanos::from_millis(*ms)));
            test.add(second);
        }
        RecoveryReport::of(&test, facts)
    }

    fn facts() -> RecoveryFacts {
        RecoveryFacts {
            load_per_s: 80.0,
            trigger: "a spike to 240/s for 2s".into(),
            retries: 2,
            timeout_ms: 1000.0,
            cut_off: "interrupted".into(),
            ..RecoveryFacts::default()
        }
    }

    pub(in crate::capacity) fn metastable() -> RecoveryReport {
        let (calm, stormy) = ((80.0, 80, 0, 80, 20), (80.0, 3, 70, 210, 2100));
        let spike = (240.0, 60, 90, 300, 1900);
        let (rest, back) = ((4.0, 4, 0, 4, 20), (80.0, 79, 0, 79, 21));
        let course = [
            calm, calm, calm, calm, spike, spike, stormy, stormy, stormy, stormy, stormy, rest, rest, rest, back, back,
            back, back,
        ];
        tested(&course, facts())
    }

    pub(in crate::capacity) fn recovered() -> RecoveryReport {
        let (calm, slow) = ((80.0, 80, 0, 80, 20), (80.0, 90, 0, 90, 700));
        let spike = (240.0, 100, 0, 100, 600);
        let facts = RecoveryFacts {
            load_fraction: Some(0.8),
            retries: 0,
            doubts: vec!["weir itself was the limit: sent late by 41.0 ms at the 99th percentile".into()],
            ..facts()
        };
        tested(&[calm, calm, calm, calm, spike, spike, slow, calm, calm, calm], facts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{render, tests::given};
    use super::*;
    use crate::tests::fixtures::same;

    #[test]
    fn a_test_of_recovery_is_readable_at_a_glance() {
        let reports = [given(fixtures::metastable(), false), given(fixtures::recovered(), true)];
        let shown = reports.map(|report| render(&report, false)).join("\n=====\n\n");
        same(&shown, include_str!("../golden/capacity.recovery.txt"), "capacity.recovery.txt");
        for line in shown.lines() {
            assert!(line.chars().count() <= TERMINAL_COLUMNS && !line.ends_with(' '), "{line:?}");
        }
    }

    #[test]
    fn each_verdict_is_true_in_its_first_line() {
        let of = |verdict| headline(&RecoveryReport { verdict, ..fixtures::recovered() });
        assert_eq!(
            of(RecoveryVerdict::Recovered),
            "recovered 1 s after a spike to 240/s for 2s, at 80.0/s (80.0% of the capacity)"
        );
        assert!(of(RecoveryVerdict::Undisturbed).starts_with("not disturbed by a spike"));
        assert!(of(RecoveryVerdict::Degraded).starts_with("degraded at 80.0/s"));
        assert!(of(RecoveryVerdict::Inconclusive).starts_with("no verdict on recovery at 80.0/s"));
        let metastable = fixtures::metastable();
        assert_eq!(
            headline(&metastable),
            "metastable at 80.0/s: did not recover within 4 s after a spike to 240/s for 2s"
        );
        let rest_of = |recovered: bool| {
            let rest = metastable.rest.map(|rest| weir_measure::recovery::RestFinding {
                recovered,
                recovery_s: rest.recovery_s.filter(|_| recovered),
                ..rest
            });
            rest_words(&RecoveryReport { rest, ..metastable.clone() })
        };
        assert!(rest_of(true).starts_with("it recovered: back to normal 0 s after "));
        assert!(rest_of(false).ends_with("but not at the load before"));
    }

    fn rest_words(tested: &RecoveryReport) -> String {
        rest(tested).unwrap_or_default()
    }

    #[test]
    fn the_page_has_the_course_with_the_trigger_marked() {
        use crate::page::{Block, Tone, render};
        let page = super::super::page::of_capacity(&given(fixtures::metastable(), false));
        assert_eq!(page.verdict.tone, Tone::Bad);
        assert!(page.verdict.headline.starts_with("Metastable at 80.0/s"), "{}", page.verdict.headline);
        let blocks = page.sections.iter().flat_map(|section| &section.blocks);
        let charts: Vec<_> = blocks
            .filter_map(|block| match block {
                Block::Chart(chart) => Some(chart),
                _ => None,
            })
            .collect();
        assert_eq!(charts.len(), 3);
        assert_eq!(charts[0].lines[0].y[0], Some(80.0));
        let names: Vec<&str> = charts[0].spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(
            (names, charts[0].spans[1].from, charts[0].spans[1].to),
            (vec!["warm-up", "trigger", "rest"], 4.0, 6.0)
        );
        assert!(charts[1].levels[0].at > 20.0);
        assert!(render(&page).ends_with("</html>\n"));
        let searched = super::super::page::of_capacity(&given(fixtures::recovered(), true));
        let points: Vec<&str> = searched.verdict.points.iter().map(|point| point.text.as_str()).collect();
        assert!(
            searched.verdict.headline.starts_with("Passes at 497/s")
                && points.iter().any(|text| text.starts_with("Recovery: recovered 1 s")),
            "{points:?}"
        );
    }
}
