//! Texts about WebSocket.

use std::collections::BTreeMap;

use super::ansi::AnsiPaint;
use super::number_format::{count, ms};
use weir_measure::Run;

/// Lines about connections and messages: what is not a reply as expected.
pub(crate) fn lines(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let facts = facts(run);
    if facts.is_empty() { Vec::new() } else { vec![paint.line("WebSocket", &facts)] }
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
