//! Trace of a language model in reports: what of it was sent, and what was left out.

use super::number_format::{count, rate, wrap};
use super::replay::{plural, time};
use weir_measure::Run;
use weir_measure::run_trace::RunTrace;

/// Columns of a label.
const LABEL_COLUMNS: usize = 13;

/// Lines on the trace that a run has replayed.
pub(super) fn lines(run: &Run) -> Vec<String> {
    let rows = |(label, text): (&str, String)| wrap(&format!("{label:<LABEL_COLUMNS$}"), &text);
    run.trace.iter().flat_map(facts_of).flat_map(rows).collect()
}

/// Facts of the trace that a run has replayed, with their names.
pub(super) fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let named =
        |(label, text): (&'static str, String)| (if label.is_empty() { "first broken line" } else { label }, text);
    run.trace.iter().flat_map(facts_of).map(named).collect()
}

fn facts_of(trace: &RunTrace) -> Vec<(&'static str, String)> {
    let speed = if trace.speed == 1.0 { String::new() } else { format!(" at {}x speed", trace.speed) };
    let turns = match trace.later_turns {
        0 => String::new(),
        turns => format!(", {} after a response", count(turns)),
    };
    let whole = format!(
        "{} of {} ({}){turns} · {}{speed}",
        plural(trace.requests, "request"),
        plural(trace.lines, "line"),
        trace.format,
        time(trace.trace_s)
    );
    let requests = trace.requests.max(1) as f64;
    let mut recorded = format!(
        "{} tokens in · {} out, per request",
        rate(trace.input_tokens as f64 / requests),
        rate(trace.output_tokens as f64 / requests)
    );
    if trace.blocks > 0 {
        recorded += &format!(" · {} in all", plural(trace.blocks, "block"));
    }
    let mut facts = vec![("trace", whole), ("recorded", recorded)];
    if !trace.left_out.is_empty() {
        let reasons = trace.left_out.iter().map(|(reason, n)| format!("{} {}", count(*n), described(reason)));
        facts.push(("left out", reasons.collect::<Vec<_>>().join(" · ")));
        facts.extend(trace.first_broken.iter().map(|first| ("", first.clone())));
    }
    facts
}

/// Reason why requests were left out, for a person.
fn described(reason: &str) -> &str {
    match reason {
        "too_long" => "longer than 1 MiB",
        "no_request" => "without a request",
        "no_tokens" => "without tokens, as failed ones",
        "not_sampled" => "by --sample",
        "out_of_order" => "too far out of order",
        "lost_turn" => "whose session has no first request near before",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_described_in_a_few_lines() {
        let left_out = [("no_tokens", 3), ("broken", 1)].map(|(reason, n)| (reason.to_owned(), n));
        let trace = RunTrace {
            format: "mooncake".into(),
            speed: 2.0,
            lines: 1_234,
            requests: 1_230,
            later_turns: 30,
            trace_s: 190.0,
            input_tokens: 1_230_000,
            output_tokens: 12_300,
            blocks: 2_400,
            left_out: left_out.into(),
            first_broken: Some("a.jsonl:7: no timestamp".into()),
            ..RunTrace::default()
        };
        let text: Vec<String> = facts_of(&trace).into_iter().map(|(label, text)| format!("{label}: {text}")).collect();
        assert_eq!(
            text,
            [
                "trace: 1,230 requests of 1,234 lines (mooncake), 30 after a response · 3.2 min at 2x speed",
                "recorded: 1,000 tokens in · 10.0 out, per request · 2,400 blocks in all",
                "left out: 1 broken · 3 without tokens, as failed ones",
                ": a.jsonl:7: no timestamp",
            ]
        );
    }
}
