//! Trace of a language model in reports: what of it was sent, and what was left out.

use super::ansi::AnsiPaint;
use super::number_format::{count, ms_like, rate, truncate, wrap};
use super::replay::{plural, time};
use weir_histogram::percentiles::Percentiles;
use weir_measure::Run;
use weir_measure::run_trace::{RunTrace, TracedClient};

/// Columns of a label.
const LABEL_COLUMNS: usize = 13;
/// Columns of the name of a client.
const NAME_COLUMNS: usize = 17;

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
    let of = match trace.clients.len() {
        0 => format!("{} ({})", plural(trace.lines, "line"), trace.format),
        clients => plural(clients as u64, "client"),
    };
    let whole = format!("{} of {of}{turns} · {}{speed}", plural(trace.requests, "request"), time(trace.trace_s));
    let requests = trace.requests.max(1) as f64;
    let mut recorded = format!(
        "{} tokens in · {} out, per request",
        rate(trace.input_tokens as f64 / requests),
        rate(trace.output_tokens as f64 / requests)
    );
    if trace.blocks > 0 {
        recorded += &format!(" · {} in all", plural(trace.blocks, "block"));
    }
    let (what, lengths) = if trace.clients.is_empty() { ("trace", "recorded") } else { ("clients", "composed") };
    let mut facts = vec![(what, whole), (lengths, recorded)];
    if !trace.left_out.is_empty() {
        let reasons = trace.left_out.iter().map(|(reason, n)| format!("{} {}", count(*n), described(reason)));
        facts.push(("left out", reasons.collect::<Vec<_>>().join(" · ")));
        facts.extend(trace.first_broken.iter().map(|first| ("", first.clone())));
    }
    facts
}

/// Clients of a composition, a row each.
pub(super) fn clients(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let Some(trace) = run.trace.as_ref().filter(|trace| !trace.clients.is_empty()) else { return Vec::new() };
    let heading = format!(
        "{:<NAME_COLUMNS$}{:>9}{:>9}{:>8}{:>10}{:>8}{:>10}{:>8}",
        "client", "requests", "tok in", "out", "TTFT p50", "p99", "TPOT p50", "p99"
    );
    [paint.dim(&heading)].into_iter().chain(trace.clients.iter().map(client_row)).collect()
}

fn client_row(client: &TracedClient) -> String {
    let times = |times: &Percentiles| {
        let [p50, p99] = [times.p50, times.p99].map(|time| ms_like(time, time));
        format!("{p50:>10}{p99:>8}")
    };
    let each = |tokens: u64| rate(tokens as f64 / client.requests.max(1) as f64);
    format!(
        "{:<NAME_COLUMNS$}{:>9}{:>9}{:>8}{}{}",
        truncate(&client.name, NAME_COLUMNS - 1),
        count(client.requests),
        each(client.input_tokens),
        each(client.output_tokens),
        times(&client.ttft_ms),
        times(&client.tpot_ms)
    )
}

/// Reason why requests were left out, for a person.
fn described(reason: &str) -> &str {
    match reason {
        "too_long" => "longer than 1 MiB",
        "no_request" => "without a request",
        "no_tokens" => "without tokens, such as failed ones",
        "not_sampled" => "by --sample",
        "out_of_order" => "too far out of order",
        "lost_turn" => "that wait for a request that is not near them in the trace",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::number_format::TERMINAL_COLUMNS;
    use super::*;

    #[test]
    fn clients_of_a_composition_have_a_row_each() {
        let times = |p50, p99| Percentiles { p50: Some(p50), p99: Some(p99), ..Percentiles::default() };
        let chat = TracedClient {
            name: "chat".into(),
            requests: 1_200,
            input_tokens: 1_200_000,
            output_tokens: 240_000,
            responses: 1_199,
            ttft_ms: times(52.1, 85.2),
            tpot_ms: times(10.12, 11.8),
            ..TracedClient::default()
        };
        let silent = TracedClient { name: "a client with a very long name".into(), ..TracedClient::default() };
        let trace = RunTrace {
            format: "clients".into(),
            speed: 1.0,
            requests: 1_200,
            later_turns: 30,
            trace_s: 60.0,
            input_tokens: 1_200_000,
            output_tokens: 240_000,
            clients: vec![chat, silent],
            ..RunTrace::default()
        };
        let run = Run { trace: Some(trace), ..crate::tests::fixtures::language_model() };
        assert_eq!(
            lines(&run),
            [
                "clients      1,200 requests of 2 clients, 30 after a response · 60.0 s",
                "composed     1,000 tokens in · 200 out, per request",
            ]
        );
        let table = clients(&run, AnsiPaint { enabled: false });
        assert_eq!(
            table,
            [
                "client            requests   tok in     out  TTFT p50     p99  TPOT p50     p99",
                "chat                 1,200    1,000     200    52.1ms  85.2ms    10.1ms  11.8ms",
                "a client with a…         0        0       0         -       -         -       -",
            ]
        );
        assert!(table.iter().all(|line| line.chars().count() <= TERMINAL_COLUMNS));
    }

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
                "left out: 1 broken · 3 without tokens, such as failed ones",
                ": a.jsonl:7: no timestamp",
            ]
        );
    }
}
