//! Texts about WebSocket.

use std::collections::BTreeMap;

use super::ansi::AnsiPaint;
use super::number_format::{bytes, count, ms, rate};
use super::times_table::times_table;
use weir_histogram::percentiles::Percentiles;
use weir_measure::Run;
use weir_measure::run_streams::RunStreams;

/// Lines about connections and messages: what is not a reply as expected.
pub(crate) fn lines(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let facts = facts(run);
    if facts.is_empty() { Vec::new() } else { vec![paint.line("WebSocket", &facts)] }
}

/// Messages of connections that only listen, and ends of these; none of other runs.
pub(crate) fn listened(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let Some(streams) = run.streams.as_ref().filter(|_| run.listens()) else { return Vec::new() };
    let [read, written] = run.traffic_per_s().map(bytes);
    let mut lines = vec![paint.line("messages", &messages(streams))];
    lines.extend(coalesced(streams).map(|words| paint.line("", &[words])));
    let mut connections = vec![format!("{} opened", count(run.connections.opened))];
    connections.push(format!("{} listening on average", rate(run.in_flight_mean)));
    lines.push(paint.line("connections", &connections));
    lines.push(paint.line("ends", &ends(run, streams)));
    lines.push(paint.line("traffic", &[format!("{read}/s in"), format!("{written}/s out")]));
    lines.extend(self::lines(run, paint));
    let times = times(run);
    if !times.is_empty() {
        lines.push(String::new());
        lines.extend(times_table(&times, paint));
    }
    lines
}

/// Number of messages, as short phrases.
pub(crate) fn messages(streams: &RunStreams) -> Vec<String> {
    vec![
        format!("{} total", count(streams.events)),
        format!("{}/s", rate(streams.events_per_s)),
        format!("{:.1} per connection", streams.events as f64 / streams.responses.max(1) as f64),
        format!("{}/s of content", bytes(streams.bytes_per_s)),
    ]
}

/// Number of messages that came together with the one before them; none without any.
pub(crate) fn coalesced(streams: &RunStreams) -> Option<String> {
    (streams.coalesced > 0).then(|| format!("{} arrived together with another", count(streams.coalesced)))
}

/// How connections that listen have ended, as short phrases.
pub(crate) fn ends(run: &Run, streams: &RunStreams) -> Vec<String> {
    let never_open = run.requests.failed.saturating_sub(streams.broken_off + streams.stalled + streams.timed_out);
    let all = [
        (streams.stopped, "ended by weir"),
        (streams.complete, "closed by the service"),
        (streams.broken_off, "broke off"),
        (streams.stalled, "stalled"),
        (streams.timed_out, "without a first message in time"),
        (never_open, "not open"),
        (run.requests.unfinished, "cut off, not counted"),
    ];
    let words: Vec<String> =
        all.iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{} {words}", count(*n))).collect();
    if words.is_empty() { vec!["none".to_owned()] } else { words }
}

/// Times of messages by their names, as far as there are any.
pub(crate) fn times(run: &Run) -> Vec<(&'static str, &Percentiles)> {
    let all = run.streams.iter().flat_map(|streams| {
        [("first message", &streams.first_event_ms), ("gap", &streams.gap_ms), ("longest gap", &streams.longest_gap_ms)]
    });
    all.filter(|(_, times)| times.max.is_some()).collect()
}

/// Facts about connections and messages, as short phrases; empty without WebSocket.
pub(crate) fn facts(run: &Run) -> Vec<String> {
    let Some(websocket) = &run.websocket else { return Vec::new() };
    let by_code = |codes: &BTreeMap<String, u64>, what: &'static str| {
        let texts: Vec<String> = codes.iter().map(|(code, n)| format!("{} {what} {code}", count(*n))).collect();
        texts
    };
    let mut words = vec![format!("{} upgraded", count(websocket.upgraded))];
    words.extend(by_code(&websocket.rejected, "rejected with"));
    words.extend(by_code(&websocket.closes, "closed with"));
    let counts = [
        (websocket.messages_sent, "messages sent by users"),
        (websocket.messages_received, "received"),
        (websocket.uncompressed, "without the compression that was offered"),
        (websocket.failed, "not connected"),
        (websocket.violations, "broke the protocol"),
        (websocket.unmatched, "messages without a request"),
        (websocket.pings, "pings of the service"),
    ];
    if websocket.pings_sent > 0 {
        let (p50, p99) = (ms(websocket.ping_ms.p50), ms(websocket.ping_ms.p99));
        words.push(format!("ping {p50} p50, {p99} p99"));
    }
    words.extend(counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n))));
    words
}
