//! weir's own report of a run to a language model, within 80 columns.
//!
//! In this order: a high error rate, missed objectives and reasons not to trust the run; target and load; requests and
//! tokens; times; outcomes of requests and reasons of failures; objectives that were met; weir itself.

use crate::ansi::AnsiPaint;
use crate::number_format::{count, ms, rate, wrap};
use crate::replay::plural;
use crate::text::{generator, headline, objectives, outcomes, queue, reasons, request_counts, verdict};
use crate::times_table::times_table;
use crate::{steps, streams, trace};
use weir_measure::run_llm::RunLlm;
use weir_measure::{LoadModel, Run};

/// Report of a run, with ANSI colours if `color`.
pub(super) fn render(run: &Run, color: bool) -> String {
    let paint = AnsiPaint { enabled: color };
    let llm = run.llm.clone().unwrap_or_default();
    let steps = if run.steps.len() > 1 { steps::table(run, paint) } else { Vec::new() };
    let blocks = [
        verdict(run, paint),
        reasons(run, paint),
        headline(run, paint),
        trace::lines(run),
        totals(run, &llm, paint),
        times(run, &llm, paint),
        trace::clients(run, paint),
        steps,
        outcomes(run, paint),
        failures(run, paint),
        objectives(run, true, paint),
        itself(run, &llm, paint),
    ];
    let blocks: Vec<String> = blocks.iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    blocks.join("\n\n") + "\n"
}

fn totals(run: &Run, llm: &RunLlm, paint: AnsiPaint) -> Vec<String> {
    // What arrives in an open loop are conversations, each a request where they have one turn.
    let has_one_turn = !streams::has_sessions(run);
    let arrivals = run.arrivals_per_s();
    let offered = arrivals.filter(|_| has_one_turn).map(|rates| format!(" of {}/s offered", rate(rates.offered)));
    let mut lines = request_counts(run, paint);
    lines.push(paint.line(
        "rate",
        &[
            format!("{}/s{}", rate(llm.requests_per_s), offered.unwrap_or_default()),
            format!("{} in flight on average", rate(run.in_flight_mean)),
        ],
    ));
    let mut conversations = Vec::new();
    conversations.extend(
        arrivals
            .filter(|_| !has_one_turn)
            .map(|rates| format!("{}/s of {}/s conversations offered", rate(rates.achieved), rate(rates.offered))),
    );
    let unfinished = run.iterations.as_ref().map_or(0, |iterations| iterations.unfinished);
    if unfinished > 0 {
        let what = if has_one_turn { count(unfinished) } else { plural(unfinished, "conversation") };
        conversations.push(format!("{what} cut off by the end, not counted"));
    }
    if !conversations.is_empty() {
        lines.push(paint.line("", &conversations));
    }
    lines.extend(queue(run, paint));
    lines.extend(tokens(llm, paint));
    lines.extend(streams::goodput(llm).map(|words| paint.line("goodput", &[words])));
    lines
}

/// Tokens in all and per request; chunks where the server does not report how many tokens there were.
fn tokens(llm: &RunLlm, paint: AnsiPaint) -> Vec<String> {
    let mut lines = Vec::new();
    let requests = llm.requests.max(1) as f64;
    if llm.with_usage > 0 {
        let all = llm.input_tokens_per_s + llm.output_tokens_per_s;
        lines.push(paint.line(
            "tokens",
            &[
                format!("{}/s in", rate(llm.input_tokens_per_s)),
                format!("{}/s out", rate(llm.output_tokens_per_s)),
                format!("{}/s in all", rate(all)),
            ],
        ));
        let with_usage = llm.with_usage as f64;
        let mut each = vec![
            format!("{} tokens in", rate(llm.input_tokens as f64 / with_usage)),
            format!("{} out", rate(llm.output_tokens as f64 / with_usage)),
        ];
        let tpot = llm.tpot_ms.p50.filter(|tpot| *tpot > 0.0);
        each.extend(tpot.map(|tpot| format!("{} tokens/s while it streams (p50)", rate(1e3 / tpot))));
        lines.push(paint.line("per request", &each));
    }
    if llm.chunks > 0 {
        let mut chunks = vec![
            format!("{}/s", rate(llm.chunks_per_s)),
            format!("{} per request", rate(llm.chunks as f64 / requests)),
        ];
        chunks.extend(llm.tokens_per_chunk.map(|tokens| format!("{tokens:.2} tokens per chunk")));
        lines.push(paint.line("chunks", &chunks));
    }
    lines.extend(notices(llm).iter().flat_map(|words| wrap("", words)).map(|words| paint.red(&words)));
    lines
}

/// Remarks on the numbers of tokens, as short phrases.
fn notices(llm: &RunLlm) -> Vec<String> {
    let mut words = Vec::new();
    let without_usage = llm.requests.saturating_sub(llm.with_usage);
    if llm.requests > 0 && llm.with_usage == 0 {
        words.push(
            "no usage from the server: chunks are counted instead, which may hold several tokens; no TPOT".to_owned(),
        );
    } else if without_usage > 0 {
        words.push(format!("{} responses without usage: their tokens are not counted", count(without_usage)));
    }
    if llm.with_counted_tokens > 0 {
        words.push(format!("tokens of {} responses counted by the tokenizer", count(llm.with_counted_tokens)));
    }
    if llm.without_tokens > 0 && llm.chunks > 0 {
        words.push(format!("{} responses without a token", count(llm.without_tokens)));
    }
    if llm.broken_events > 0 {
        words.push(format!("{} events that are not JSON", count(llm.broken_events)));
    }
    words
}

fn times(run: &Run, llm: &RunLlm, paint: AnsiPaint) -> Vec<String> {
    if llm.requests == 0 {
        return vec!["no times: no request succeeded".to_owned()];
    }
    // A response in one piece has its first token when it ends.
    let is_streamed = llm.chunks > llm.requests || llm.chunk_gap_ms.max.is_some_and(|ms| ms > 0.0);
    let all =
        [("TTFT", &llm.ttft_ms), ("TPOT", &llm.tpot_ms), ("chunk gap", &llm.chunk_gap_ms), ("NTPOT", &llm.ntpot_ms)];
    let of_tokens = all.into_iter().filter(|(_, times)| is_streamed && times.max.is_some());
    let rows: Vec<_> = of_tokens.chain([("end to end", &llm.e2e_ms)]).chain(streams::session_times(run)).collect();
    let mut lines = times_table(&rows, paint);
    let both = llm.ttft_service_ms.p99.zip(llm.ttft_ms.p99);
    if run.model == LoadModel::Open
        && is_streamed
        && let Some((sent, p99)) = both.filter(|(sent, p99)| p99 - sent > p99 * 0.05)
    {
        let (sent, p99) = (ms(sent), ms(p99));
        lines.push(paint.dim(&format!("TTFT from the send is {sent} at p99, and {p99} from the intended start")));
    }
    lines
}

/// Different reasons of failures, as far as there are samples.
fn failures(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let mut reasons: Vec<&str> = Vec::new();
    for sample in run.steps.iter().flat_map(|step| &step.samples) {
        if !reasons.contains(&sample.reason.as_str()) {
            reasons.push(&sample.reason);
        }
    }
    let first = |at| format!("{:<13}", if at == 0 { "reasons" } else { "" });
    reasons.iter().enumerate().flat_map(|(at, reason)| wrap(&first(at), reason)).map(|line| paint.red(&line)).collect()
}

/// Lateness and CPU time of weir, also per chunk.
fn itself(run: &Run, llm: &RunLlm, paint: AnsiPaint) -> Vec<String> {
    let mut lines = generator(run, paint);
    if let Some(per_request) = run.cpu_us_per_request.filter(|_| llm.chunks > 0) {
        let per_chunk = per_request * run.requests.total as f64 / llm.chunks as f64;
        lines.push(
            paint.line("", &[format!("{} CPU per chunk, including all work for its request", ms(per_chunk / 1e3))]),
        );
        lines.extend(
            streams::own_part(llm)
                .iter()
                .enumerate()
                .map(|(at, words)| paint.line(if at == 0 { "of TTFT" } else { "" }, std::slice::from_ref(words))),
        );
    }
    lines
}
