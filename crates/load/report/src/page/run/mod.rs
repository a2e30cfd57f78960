//! HTML report of a run.

mod method;
mod plots;
mod script;
mod step_plots;
mod steps;
mod stream_plots;
mod streams;
mod tables;
mod websockets;

use self::method::{manifest, method};
pub use self::plots::percentiles;
use self::plots::{course, times};
use self::script::script;
use self::steps::scenarios;
use self::streams::streams;
use self::tables::{agents, clocks, intervals, outcomes};
use self::websockets::websockets;
use super::{Block, KeyFigure, PageVerdict, ReportPage, Section, Tone, ValueUnit, VerdictPoint};
use crate::number_format;
use crate::steps::headline;
use crate::text::{ended_by, facts, failures, seconds, unfinished};
use weir_measure::end_reason::EndReason;
use weir_measure::run_streams::RunStreams;
use weir_measure::{LoadModel, Run};

/// HTML report of a run: verdict, charts, tables, method and manifest.
pub fn of_run(run: &Run) -> ReportPage {
    let mut about: Vec<String> = facts(run).into();
    about.extend(date(run.manifest.started_unix_s));
    let tables =
        [outcomes(run), clocks(run), agents(run), intervals(run)].into_iter().flatten().map(Block::Table).collect();
    let tables = Section::new("Details", tables);
    // Connections that listen are as long as their load.
    let times = if run.listens() { Section::default() } else { times(run) };
    let sections = [
        scenarios(run),
        script(run),
        streams(run),
        times,
        websockets(run),
        course(run),
        tables,
        method(run),
        manifest(run),
    ];
    ReportPage {
        title: format!("{} {}", run.target.method, run.target.url).trim_start().to_owned(),
        about,
        verdict: verdict(run),
        key_figures: key_figures(run),
        sections: sections.into_iter().filter(|section| !section.blocks.is_empty()).collect(),
    }
}

/// Date of a time in seconds since 1970; none for 0, invalid ones, and those after the year 9999.
pub fn date(unix_s: f64) -> Option<String> {
    let since = std::time::Duration::try_from_secs_f64(unix_s).ok().filter(|since| !since.is_zero())?;
    // The format ends with the year 9999, and a file may contain any number.
    (unix_s < 2.5e11).then(|| httpdate::fmt_http_date(std::time::UNIX_EPOCH + since))
}

/// Verdict on a run: objectives, trust, failures.
pub(crate) fn verdict(run: &Run) -> PageVerdict {
    let missed = run.slo.iter().filter(|held| !held.ok).count();
    let all = run.slo.len();
    let nothing = run.requests.total > 0 && run.requests.ok == 0;
    let no_iteration = run.iterations.as_ref().is_some_and(|all| all.total > 0 && all.ok == 0);
    let has_failed_checks = run.steps.iter().flat_map(|step| &step.checks).any(|check| check.failed > 0);
    let is_caution = run.only_digits_in_doubt();
    let (tone, words) = match (run.trust.ok, missed, all) {
        _ if nothing => (Tone::Bad, "No request succeeded".to_owned()),
        _ if no_iteration => (Tone::Bad, "No iteration succeeded".to_owned()),
        (_, 1, 1) => (Tone::Bad, "The objective was missed".to_owned()),
        (_, 1.., _) => (Tone::Bad, format!("{missed} of {all} objectives missed")),
        (false, ..) => (Tone::Doubt, if is_caution { "Caution" } else { "Not trusted" }.to_owned()),
        (true, 0, _) if has_failed_checks => (Tone::Bad, "Checks failed".to_owned()),
        (true, 0, 0) => (Tone::Plain, "The run is valid".to_owned()),
        (true, 0, 1) => (Tone::Good, "The objective was met".to_owned()),
        (true, 0, _) => (Tone::Good, format!("All {all} objectives met")),
    };
    let words = match (run.trust.ok || tone == Tone::Doubt, is_caution) {
        (true, _) => words,
        (false, true) => format!("{words}; read it with caution"),
        (false, false) => format!("{words}; not trusted"),
    };
    let objectives = |tone: Tone, ok: bool| {
        let those = run.slo.iter().filter(move |held| held.ok == ok);
        those.map(move |held| VerdictPoint::new(tone, format!("{} \u{2013} {}", held.objective, held.measured)))
    };
    let mut points: Vec<VerdictPoint> =
        failures(run).into_iter().chain(headline(run)).map(|words| VerdictPoint::new(Tone::Bad, words)).collect();
    points.extend(objectives(Tone::Bad, false));
    points.extend(run.trust.reasons.iter().map(|reason| VerdictPoint::new(Tone::Doubt, reason)));
    if let Some(why) = &run.aborted {
        points.push(VerdictPoint::new(Tone::Bad, format!("Aborted: {why}")));
    }
    if run.interrupted {
        let unfinished_text = number_format::count(run.requests.unfinished);
        points.push(VerdictPoint::new(
            Tone::Doubt,
            format!("Interrupted; {unfinished_text} requests in flight are not counted."),
        ));
    }
    if unfinished(run) > 0 {
        let unfinished_text = number_format::count(unfinished(run));
        points.push(VerdictPoint::new(
            Tone::Doubt,
            format!("{unfinished_text} requests were cut off by the end and are not counted."),
        ));
    }
    let of_end = if matches!(run.ended_by, Some(EndReason::ScriptError(_))) { Tone::Bad } else { Tone::Good };
    points.extend(ended_by(run).map(|words| VerdictPoint::new(of_end, format!("The run was {words}."))));
    points.extend(objectives(Tone::Good, true));
    if run.trust.ok {
        let late = match run.lateness_ms.p99 {
            None | Some(0.0) => String::new(), // a closed loop has no lateness
            ms => format!("weir sent 99% of the requests at most {} late, and ", ValueUnit::Milliseconds.format(ms)),
        };
        let busy = run.cpu_utilization * 100.0;
        let words = format!("The run is valid: {late}weir's busiest thread used {busy:.0}% of a core.");
        points.push(VerdictPoint::new(Tone::Good, words));
    }
    PageVerdict { tone, headline: words, sentence: sentence(run), points }
}

fn sentence(run: &Run) -> String {
    let requests = &run.requests;
    if requests.total == 0 {
        return "No request was sent.".into();
    }
    let failed = match requests.failed {
        0 => "No request failed.".into(),
        n => {
            let (n, all) = (number_format::count(n), number_format::count(requests.total));
            format!("{n} of {all} requests failed ({}).", ValueUnit::Fraction.format(run.error_fraction()))
        }
    };
    if requests.ok == 0 {
        return format!("No request succeeded. {failed}");
    }
    let rate = per_second(run.rate_per_s.achieved);
    let length = seconds(run.duration_s);
    let what = if run.iterations.is_some() { "user" } else { "connection" };
    let users = match run.connections.max {
        1 => format!("1 {what}"),
        n => format!("{} {what}s", number_format::count(n)),
    };
    let load = match run.arrivals_per_s().map(|rates| [rates.achieved, rates.offered].map(per_second)) {
        None => format!("{users}, {rate} for {length}"),
        Some([_, offered]) if run.iterations.is_none() => format!("{rate} of {offered} offered for {length}"),
        Some([ended, offered]) => format!("{ended} of {offered} iterations offered, {rate} requests for {length}"),
    };
    if let Some(streams) = run.streams.as_ref().filter(|_| run.listens()) {
        let [first, gap] =
            [streams.first_event_ms.p99, streams.gap_ms.p99].map(|ms| ValueUnit::Milliseconds.format(ms));
        let messages = per_second(streams.events_per_s);
        return format!(
            "{users} listened for {length}: {messages} messages; first message p99 {first}, gap p99 {gap}. {failed}"
        );
    }
    let [p50, p99] = [run.response_ms.p50, run.response_ms.p99].map(|ms| ValueUnit::Milliseconds.format(ms));
    format!("{load}; response time p50 {p50}, p99 {p99}. {failed}")
}

fn per_second(rate: f64) -> String {
    ValueUnit::PerSecond.format(rate)
}

fn key_figures(run: &Run) -> Vec<KeyFigure> {
    if run.requests.total == 0 {
        return Vec::new();
    }
    if let Some(streams) = run.streams.as_ref().filter(|_| run.listens()) {
        return listening_figures(run, streams);
    }
    let rate = KeyFigure::new("responses", run.rate_per_s.achieved, ValueUnit::PerSecond);
    let rate = match run.model {
        LoadModel::Open if run.iterations.is_none() => {
            rate.with_note(format!("of {} offered", per_second(run.rate_per_s.offered)))
        }
        _ => rate,
    };
    let failed = KeyFigure::new("failed", run.requests.failed as f64, ValueUnit::Count);
    let failed = match run.requests.failed {
        0 => failed,
        _ => failed.with_note(ValueUnit::Fraction.format(run.error_fraction())).in_tone(Tone::Bad),
    };
    let mut all = vec![rate, KeyFigure::new("requests", run.requests.total as f64, ValueUnit::Count), failed];
    if let Some(llm) = run.llm.as_ref().filter(|llm| llm.chunks > 0) {
        if llm.with_usage > 0 {
            all.push(KeyFigure::new("output tokens", llm.output_tokens_per_s, ValueUnit::PerSecond));
        }
        let times = [
            ("TTFT", llm.ttft_ms.p50, "p50"),
            ("TTFT", llm.ttft_ms.p99, "p99"),
            ("TPOT", llm.tpot_ms.p50, "p50"),
            ("end to end", llm.e2e_ms.p99, "p99"),
        ];
        let times = times.into_iter().filter_map(|(name, ms, note)| Some((name, ms?, note)));
        all.extend(times.map(|(name, ms, note)| KeyFigure::new(name, ms, ValueUnit::Milliseconds).with_note(note)));
    } else if run.requests.ok > 0 {
        let spread = &run.response_ms;
        let times = [("p50", spread.p50), ("p99", spread.p99), ("p99.9", spread.p999), ("max", spread.max)];
        let times = times.into_iter().filter_map(|(name, ms)| Some((name, ms?)));
        all.extend(
            times.map(|(name, ms)| KeyFigure::new(name, ms, ValueUnit::Milliseconds).with_note("response time")),
        );
    }
    all
}

/// Key figures of connections that only listen.
fn listening_figures(run: &Run, streams: &RunStreams) -> Vec<KeyFigure> {
    let failed = KeyFigure::new("failed", run.requests.failed as f64, ValueUnit::Count).with_note("connections");
    let failed = if run.requests.failed > 0 { failed.in_tone(Tone::Bad) } else { failed };
    let times = [
        ("first message", streams.first_event_ms.p50, "p50"),
        ("first message", streams.first_event_ms.p99, "p99"),
        ("gap", streams.gap_ms.p50, "p50"),
        ("gap", streams.gap_ms.p99, "p99"),
    ];
    let times = times.into_iter().filter_map(|(name, ms, note)| Some((name, ms?, note)));
    let counts = [
        KeyFigure::new("messages", streams.events_per_s, ValueUnit::PerSecond),
        KeyFigure::new("messages", streams.events as f64, ValueUnit::Count),
        failed,
    ];
    let times = times.map(|(name, ms, note)| KeyFigure::new(name, ms, ValueUnit::Milliseconds).with_note(note));
    counts.into_iter().chain(times).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures;

    fn words(run: &Run) -> [String; 2] {
        let verdict = of_run(run).verdict;
        [verdict.headline, verdict.sentence.replace('\u{a0}', " ")]
    }

    #[test]
    fn the_verdict_begins_with_objectives_and_trust() {
        assert_eq!(
            words(&fixtures::closed()),
            [
                "All 3 objectives met",
                "50 connections, 10,001/s for 2s; response time p50 4.91 ms, p99 6.28 ms. No request failed."
            ]
        );
        assert_eq!(
            words(&fixtures::open()),
            [
                "2 of 3 objectives missed; not trusted",
                "282/s of 520/s offered for 3s; response time p50 1.08 s, p99 2.11 s. \
                 165 of 1,560 requests failed (10.6%)."
            ]
        );
        assert_eq!(words(&fixtures::empty()), ["The objective was missed; not trusted", "No request was sent."]);
        assert_eq!(words(&fixtures::broken())[0], "No request succeeded; not trusted");
        let mut run = fixtures::closed();
        run.slo[1].ok = false;
        assert_eq!(words(&run)[0], "1 of 3 objectives missed");
        run.slo.clear();
        assert_eq!(words(&run)[0], "The run is valid");
    }

    #[test]
    fn iterations_are_offered_and_not_their_requests() {
        let mut run = fixtures::shop();
        (run.model, run.rate_per_s.offered) = (LoadModel::Open, run.rate_per_s.achieved);
        if let Some(iterations) = &mut run.iterations {
            iterations.rate_per_s.offered = 95.0;
        }
        let words = words(&run);
        assert!(words[1].starts_with("40.0/s of 95.0/s iterations offered, 60.0/s requests for 2s"), "{words:?}");
        run.iterations = None;
        run.requests.unfinished = 7;
        let page = of_run(&run);
        let has_point = |words: &str| page.verdict.points.iter().any(|point| point.text.contains(words));
        assert!(has_point("7 requests were cut off by the end"));
    }

    #[test]
    fn missed_objectives_come_first_then_reasons_not_to_trust_then_met_ones() {
        let tones: Vec<Tone> = of_run(&fixtures::open()).verdict.points.iter().map(|point| point.tone).collect();
        assert_eq!(tones, [Tone::Bad, Tone::Bad, Tone::Bad, Tone::Doubt, Tone::Doubt, Tone::Good]);
        let of_all = |run: &Run| of_run(run).verdict.tone;
        assert_eq!(of_all(&fixtures::open()), Tone::Bad);
        assert_eq!((of_all(&fixtures::closed()), of_all(&fixtures::broken())), (Tone::Good, Tone::Bad));
        let mut ended = fixtures::closed();
        ended.ended_by = Some(EndReason::DataRows("rows.csv".into()));
        ended.slo[0].ok = false;
        assert_eq!(of_all(&ended), Tone::Bad);
    }

    #[test]
    fn an_impossible_date_is_left_out() {
        assert_eq!(date(1.7e9).as_deref(), Some("Tue, 14 Nov 2023 22:13:20 GMT"));
        for unix_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 2.5e11] {
            assert_eq!(date(unix_s), None);
        }
    }
}
