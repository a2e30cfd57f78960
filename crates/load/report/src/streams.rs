//! Streams of events, and what language models send in them.

use super::ansi::AnsiPaint;
use super::number_format::{bytes, count, ms, percentage, rate};
use super::times_table::times_table;
use weir_histogram::percentiles::Percentiles;
use weir_measure::Run;
use weir_measure::run_llm::RunLlm;
use weir_measure::run_streams::RunStreams;

/// Lines of the text report; none if responses were not read as streams.
pub(crate) fn lines(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let Some(streams) = &run.streams else { return Vec::new() };
    let mut lines = vec![paint.line("streams", &ends(streams)), paint.line("events", &events(streams))];
    if let Some(llm) = &run.llm {
        lines.push(paint.line("tokens", &tokens(llm)));
        lines.extend(goodput(llm).map(|words| paint.line("goodput", &[words])));
    }
    let times = times(run);
    if !times.is_empty() {
        lines.push(String::new());
        lines.extend(times_table(&times, paint));
    }
    lines
}

/// Times by their names, as far as there are any.
pub(crate) fn times(run: &Run) -> Vec<(&'static str, &Percentiles)> {
    let of_llm = run.llm.iter().flat_map(|llm| {
        [
            ("TTFT", &llm.ttft_ms),
            ("TPOT", &llm.tpot_ms),
            ("chunk gap", &llm.chunk_gap_ms),
            ("NTPOT", &llm.ntpot_ms),
            ("end to end", &llm.e2e_ms),
        ]
    });
    let of_streams = run.streams.iter().flat_map(|streams| {
        [("first event", &streams.first_event_ms), ("gap", &streams.gap_ms), ("longest gap", &streams.longest_gap_ms)]
    });
    // Events of a language model are its chunks, and some more.
    let has_tokens = run.llm.as_ref().is_some_and(|llm| llm.chunks > 0);
    let all: Vec<_> = if has_tokens { of_llm.chain(session_times(run)).collect() } else { of_streams.collect() };
    all.into_iter().filter(|(_, times)| times.max.is_some()).collect()
}

/// Whether sessions of a language model have several requests.
pub(crate) fn has_sessions(run: &Run) -> bool {
    // Each client of a composition has a step.
    match run.trace.as_ref().filter(|trace| !trace.clients.is_empty()) {
        Some(trace) => trace.later_turns > 0,
        None => run.steps.len() > 1,
    }
}

/// Times of sessions of several requests, from the first one's intended start to the last response: of a trace, or of
/// conversations.
pub(crate) fn session_times(run: &Run) -> Option<(&'static str, &Percentiles)> {
    let iterations = run.iterations.as_ref().filter(|all| run.llm.is_some() && has_sessions(run) && all.ok > 0)?;
    Some((if run.trace.is_some() { "session" } else { "conversation" }, &iterations.time_ms))
}

/// How streams ended, as short phrases.
pub(crate) fn ends(streams: &RunStreams) -> Vec<String> {
    let others = [
        (streams.unfinished, "ended within an event"),
        (streams.stopped, "ended on purpose"),
        (streams.broken_off, "broke off"),
        (streams.stalled, "stalled"),
        (streams.timed_out, "timed out"),
        (streams.without_events, "without an event"),
        (streams.cut_off, "cut off by the end of the run"),
    ];
    let others = others.iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{} {words}", count(*n)));
    [format!("{} read", count(streams.responses)), format!("{} whole", count(streams.complete))]
        .into_iter()
        .chain(others)
        .collect()
}

/// Number of events, as short phrases.
pub(crate) fn events(streams: &RunStreams) -> Vec<String> {
    let mut words = vec![
        format!("{} total", count(streams.events)),
        format!("{}/s", rate(streams.events_per_s)),
        format!("{:.1} per stream", streams.events as f64 / (streams.responses + streams.cut_off).max(1) as f64),
        format!("{}/s", bytes(streams.bytes_per_s)),
    ];
    if streams.coalesced > 0 {
        words.push(format!("{} arrived together with another", count(streams.coalesced)));
    }
    words
}

/// Tokens, as short phrases; chunks where the service does not report how many tokens there were.
pub(crate) fn tokens(llm: &RunLlm) -> Vec<String> {
    let mut words = Vec::new();
    if llm.with_usage > 0 {
        words.push(format!("{}/s in", rate(llm.input_tokens_per_s)));
        words.push(format!("{}/s out", rate(llm.output_tokens_per_s)));
    }
    words.push(format!("{} chunks/s", rate(llm.chunks_per_s)));
    words.extend(llm.tokens_per_chunk.map(|tokens| format!("{tokens:.2} tokens per chunk")));
    let without_usage = llm.requests.saturating_sub(llm.with_usage);
    if without_usage > 0 {
        words.push(format!("{} responses without usage", count(without_usage)));
    }
    words
}

/// Delays that weir itself has added to the times to first token, and delays with which it has read tokens.
pub(crate) fn own_part(llm: &RunLlm) -> Vec<String> {
    let both = |times: &Percentiles| format!("{} p50, {} p99", ms(times.p50), ms(times.p99));
    let mut words = Vec::new();
    // A response in one piece has its first token when it ends.
    if llm.chunks <= llm.requests && llm.chunk_gap_ms.max.is_none_or(|ms| ms == 0.0) {
        return words;
    }
    if llm.ttft_ms.max.is_some() {
        words.push(format!("weir sent late by {}", both(&llm.ttft_lateness_ms)));
    }
    if llm.ttft_read_delay_ms.max.is_some_and(|ms| ms > 0.0) {
        words.push(format!("not included: {} from arrival to reading", both(&llm.ttft_read_delay_ms)));
    }
    if llm.ttft_unstamped > 0 {
        words.push(format!("{} requests include their delay of reading, which is unknown", count(llm.ttft_unstamped)));
    }
    words
}

/// Requests that met all objectives; none without objectives.
pub(crate) fn goodput(llm: &RunLlm) -> Option<String> {
    let fraction = llm.good as f64 / llm.requests.max(1) as f64;
    (!llm.objectives.is_empty()).then(|| {
        let (good, all) = (rate(llm.goodput_per_s), rate(llm.requests_per_s));
        format!("{good}/s of {all}/s ({}) meet {}", percentage(fraction), llm.objectives)
    })
}
