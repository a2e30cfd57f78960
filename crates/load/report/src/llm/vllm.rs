//! Report of `vllm bench serve`, so that scripts that read it go on.
//!
//! Differences, and why:
//! - TTFT and E2EL count from the intended start, and there from the send: what waits for a connection waits;
//! - ITL is the gap between chunks, as there; with several tokens per chunk it is not the time of a token, and the number of
//!   tokens is that of the server's usage and never of a tokenizer;
//! - "Peak output token throughput" and "Peak concurrent requests" are missing: they need a record of each token;
//! - rates are of what came within the run's time, and there of all until the last response has ended;
//! - E2EL is always there; times of nothing are 0, as there.

use crate::number_format::zero_if_not_measured;
use weir_histogram::percentiles::Percentiles;
use weir_measure::Run;

const COLUMNS: usize = 50;

/// Report of a run.
pub(super) fn render(run: &Run) -> String {
    let llm = run.llm.clone().unwrap_or_default();
    let mut lines = vec![title(" Serving Benchmark Result ", '=')];
    lines.push(whole("Successful requests:", llm.requests));
    lines.push(whole("Failed requests:", run.requests.failed));
    match run.arrivals_per_s() {
        None => lines.push(whole("Maximum request concurrency:", run.connections.max)),
        Some(arrivals) => lines.push(decimal("Request rate configured (RPS):", arrivals.offered)),
    }
    lines.push(decimal("Benchmark duration (s):", run.duration_s));
    lines.push(whole("Total input tokens:", llm.input_tokens));
    lines.push(whole("Total generated tokens:", llm.output_tokens));
    lines.push(decimal("Request throughput (req/s):", llm.requests_per_s));
    if !llm.objectives.is_empty() {
        lines.push(decimal("Request goodput (req/s):", llm.goodput_per_s));
    }
    lines.push(decimal("Output token throughput (tok/s):", llm.output_tokens_per_s));
    lines.push(decimal("Total token throughput (tok/s):", llm.input_tokens_per_s + llm.output_tokens_per_s));
    let times = [
        ("Time to First Token", "TTFT", &llm.ttft_ms),
        ("Time per Output Token (excl. 1st token)", "TPOT", &llm.tpot_ms),
        ("Inter-token Latency", "ITL", &llm.chunk_gap_ms),
        ("End-to-end Latency", "E2EL", &llm.e2e_ms),
    ];
    for (heading, name, times) in times {
        lines.push(title(heading, '-'));
        lines.extend(of_times(name, times));
    }
    lines.push("=".repeat(COLUMNS));
    lines.join("\n") + "\n"
}

/// Text in the middle of a line.
fn title(text: &str, fill: char) -> String {
    let room = COLUMNS.saturating_sub(text.chars().count());
    let (before, after) = (room / 2, room - room / 2);
    format!("{}{text}{}", fill.to_string().repeat(before), fill.to_string().repeat(after))
}

fn whole(label: &str, value: u64) -> String {
    format!("{label:<40} {value:<10}")
}

fn decimal(label: &str, value: f64) -> String {
    format!("{label:<40} {value:<10.2}")
}

fn of_times(name: &str, times: &Percentiles) -> [String; 3] {
    [
        decimal(&format!("Mean {name} (ms):"), zero_if_not_measured(times.mean)),
        decimal(&format!("Median {name} (ms):"), zero_if_not_measured(times.p50)),
        decimal(&format!("P99 {name} (ms):"), zero_if_not_measured(times.p99)),
    ]
}
