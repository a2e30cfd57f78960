//! weir's own text report, within 80 columns.
//!
//! In this order: a high error rate; missed objectives; reasons not to trust the run; target and load; totals; both
//! clocks; distribution of response times; outcomes of requests; objectives that were met; lateness and CPU of weir
//! itself; each agent. Times are those of successes; a row of its own has those of failures.

use super::ansi::{AnsiPaint, LABEL_WIDTH};
use super::number_format::{TERMINAL_COLUMNS, bytes, count, joined, ms, percent, percentage, rate, truncate, wrap};
use super::times_table::{cells, heading, percentiles};
use super::{agents, asked_load, bars, http2, replay, script, steps, streams, websocket};
use weir_base::Nanos;
use weir_base::grpc_status::{is_grpc_status, parse_status};
use weir_measure::end_reason::EndReason;
use weir_measure::run_changes::RunChanges;
use weir_measure::{LoadModel, Run};

/// Report of a run, with ANSI colours if `color`.
pub fn render(run: &Run, color: bool) -> String {
    let paint = AnsiPaint { enabled: color };
    // Of connections that only listen, their messages were measured, and not how long they were open.
    let of_requests = |lines: fn(&Run, AnsiPaint) -> Vec<String>| match run.listens() {
        true => Vec::new(),
        false => lines(run, paint),
    };
    let blocks = [
        verdict(run, paint),
        reasons(run, paint),
        headline(run, paint),
        websocket::listened(run, paint),
        of_requests(totals),
        replay::lines(run, paint),
        steps::table(run, paint),
        steps::checks(run, paint),
        script::lines(run, paint),
        of_requests(clocks),
        of_requests(streams::lines),
        of_requests(shape),
        outcomes(run, paint),
        objectives(run, true, paint),
        generator(run, paint),
        agents::lines(run, paint),
    ];
    let blocks: Vec<String> = blocks.iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    blocks.join("\n\n") + "\n"
}

/// Error rate above [`HEADLINE_FAILURE_FRACTION`], and missed objectives.
pub(super) fn verdict(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let failures = failures(run).into_iter().chain(scenario_failures(run)).flat_map(|words| wrap("", &words));
    let mut lines: Vec<String> = failures.map(|line| paint.red(&line)).collect();
    if run.slo.iter().any(|held| !held.ok) {
        lines.push(paint.red("OBJECTIVES MISSED"));
        lines.extend(objectives(run, false, paint));
    }
    lines
}

/// Fraction of failed requests above which the first line reports failures.
const HEADLINE_FAILURE_FRACTION: f64 = 0.01;

/// Headline on failures, if there was no success or more than `HEADLINE_FAILURE_FRACTION` failed.
pub fn failures(run: &Run) -> Option<String> {
    let requests = &run.requests;
    if requests.total == 0 {
        return None;
    }
    // A status of success with nothing in it is only told apart by the reason.
    let content = run.target.failure_details.get("body").filter(|_| run.failures_of("body") > 0);
    let content = content.map(|why| format!(" ({why})")).unwrap_or_default();
    let kinds = run.failed_by_kind() + &content;
    if requests.ok == 0 {
        return Some(format!("NONE OF {} REQUESTS SUCCEEDED: {kinds}", count(requests.total)));
    }
    (run.error_fraction() > HEADLINE_FAILURE_FRACTION)
        .then(|| format!("{} OF REQUESTS FAILED: {kinds}", percentage(run.error_fraction())))
}

/// Headline on scenarios, if no iteration succeeded or checks failed.
pub fn scenario_failures(run: &Run) -> Option<String> {
    steps::headline(run)
}

pub(super) fn reasons(run: &Run, paint: AnsiPaint) -> Vec<String> {
    if run.trust.ok {
        return Vec::new();
    }
    let is_caution = run.only_digits_in_doubt();
    let mut lines = vec![if is_caution { "CAUTION" } else { "NOT TRUSTED" }.to_owned()];
    lines.extend(run.trust.reasons.iter().flat_map(|reason| wrap("  - ", reason)));
    lines.iter().map(|line| if is_caution { paint.yellow(line) } else { paint.red(line) }).collect()
}

/// Load, duration, threads, HTTP and TLS, as short phrases.
pub(super) fn facts(run: &Run) -> [String; 4] {
    let limit = count(run.connections.max);
    let plural = if run.connections.max == 1 { "" } else { "s" };
    let what = if run.iterations.is_some() { "user" } else { "connection" };
    let model = match run.arrivals_per_s() {
        None => match asked_load::stages(run) {
            Some(stages) => format!("closed loop, {stages}, up to {limit} {what}{plural}"),
            None => format!("closed loop, {limit} {what}{plural}"),
        },
        Some(arrivals) => {
            format!("open loop, {}, up to {limit} {what}{plural}", asked_load::offered(run, arrivals.offered))
        }
    };
    let warmup = match run.warmup_s {
        w if w > 0.0 => format!(" after {} of warm-up", seconds(w)),
        _ => String::new(),
    };
    let threads = run.manifest.threads;
    [
        model,
        format!("{}{warmup}", seconds(run.duration_s)),
        format!("{threads} thread{}", if threads == 1 { "" } else { "s" }),
        http2::protocol(run),
    ]
}

pub(super) fn headline(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let target = format!("{} {}", run.target.method, run.target.url).trim_start().to_owned();
    let facts = facts(run);
    let mut lines = vec![paint.bold(&truncate(&target, TERMINAL_COLUMNS)), joined(&facts, 0)];
    if let Some(why) = &run.aborted {
        lines.push(paint.red(&truncate(&format!("aborted: {why}"), TERMINAL_COLUMNS)));
    }
    if run.interrupted {
        let unfinished = match run.requests.unfinished {
            0 => String::new(),
            n => format!("; {} in flight, not counted", count(n)),
        };
        lines.push(paint.red(&format!("interrupted{unfinished}")));
    }
    lines.extend(run.changes.as_ref().map(changed));
    lines.extend(ended_by(run).map(|words| truncate(&words, TERMINAL_COLUMNS)));
    lines
}

/// Number of changes of the load while it ran, and the stages that repeat it: whole, to be copied.
pub(crate) fn changed(changes: &RunChanges) -> String {
    // Recorded times have no stages, and can only be stopped.
    if let ([stop], "") = (changes.made.as_slice(), changes.stages.as_str()) {
        return format!("stopped by hand at {}", Nanos::from_secs_f64(stop.t_s));
    }
    let times = if changes.made.len() == 1 { "once".to_owned() } else { format!("{} times", changes.made.len()) };
    format!("changed {times} while it ran; again: --stages {}", changes.stages)
}

/// Reason of an early end, other than an interrupt.
pub(crate) fn ended_by(run: &Run) -> Option<String> {
    match run.ended_by.as_ref()? {
        EndReason::DataRows(file) => Some(format!("ended by its data: each row of {file} was used once")),
        EndReason::ScriptStop(name) => Some(format!("ended by its script: {name} stopped all threads")),
        EndReason::ScriptError(why) => Some(format!("ended by an error of its script: {why}")),
    }
}

/// Counts of requests, and those that the end has cut off where no other line reports them.
pub(super) fn request_counts(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let requests = &run.requests;
    let failed = match requests.failed {
        0 => "0 failed".into(),
        n => paint.red(&format!("{} failed ({})", count(n), percentage(run.error_fraction()))),
    };
    let mut lines =
        vec![paint.line(
            "requests",
            &[format!("{} total", count(requests.total)), format!("{} ok", count(requests.ok)), failed],
        )];
    if unfinished(run) > 0 {
        lines.push(paint.line("", &[format!("{} cut off by the end, not counted", count(unfinished(run)))]));
    }
    lines
}

/// Requests that the end of a run has cut off; those of an interrupt, and of iterations, have their own lines.
pub(super) fn unfinished(run: &Run) -> u64 {
    if run.interrupted || run.iterations.is_some() { 0 } else { run.requests.unfinished }
}

fn totals(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let rates = &run.rate_per_s;
    // Of a scenario iterations are offered, which have their own lines.
    let offered = match run.model {
        LoadModel::Open if run.iterations.is_none() => format!(" of {}/s offered", rate(rates.offered)),
        _ => String::new(),
    };
    let mut rate_words = vec![format!("{}/s{offered}", rate(rates.achieved))];
    // Without this, 475/s of 500/s with all requests ok would look like a contradiction.
    let within = (rates.achieved * run.duration_s).round() as u64;
    let late = run.response_count().saturating_sub(within);
    if late * 100 > run.response_count() {
        rate_words.push(format!("{} responses came after the end", count(late)));
    }
    let [read, written] = run.traffic_per_s().map(bytes);
    let mut lines = request_counts(run, paint);
    lines.extend([
        paint.line("rate", &rate_words),
        paint.line(
            "traffic",
            &[format!("{read}/s in"), format!("{written}/s out"), format!("{} read", bytes(run.bytes.read as f64))],
        ),
        paint.line(
            "connections",
            &[
                format!("{} opened", count(run.connections.opened)),
                format!("{} requests in flight on average", rate(run.in_flight_mean)),
            ],
        ),
    ]);
    let notices = http2::notices(run);
    if !notices.is_empty() {
        lines.push(paint.line("HTTP/2", &notices));
    }
    let errors = http2::errors(run);
    if !errors.is_empty() {
        // As many codes as fit; the JSON has all.
        let shown = errors.iter().scan(LABEL_WIDTH, |width, words| {
            *width += words.len() + " · ".len();
            (*width <= TERMINAL_COLUMNS).then(|| words.clone())
        });
        lines.push(paint.line("h2 errors", &shown.collect::<Vec<_>>()));
    }
    lines.extend(websocket::lines(run, paint));
    lines.extend(queue(run, paint));
    lines
}

/// Line on requests that waited for a connection, if there are any.
pub(super) fn queue(run: &Run, paint: AnsiPaint) -> Option<String> {
    let counts = [
        (run.requests.waited, "waited for a free connection"),
        (run.requests.dropped, "dropped, never sent"),
        (run.connections.max_backlog, "max backlog"),
    ];
    let parts: Vec<String> =
        counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{} {words}", count(n))).collect();
    (!parts.is_empty()).then(|| paint.line("queue", &parts))
}

fn clocks(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let failed = run.failed_histogram().is_ok_and(|times| times.count() > 0).then(|| percentiles(&run.failed_ms));
    let heading = heading(paint);
    let failed = failed.map(|times| format!("{:<15}{}", "of failures", cells(&times, &times)));
    if run.requests.ok == 0 {
        let why = if run.needs_no_requests() { "the script sent none" } else { "no request succeeded" };
        let none = format!("no response times: {why}");
        return [none].into_iter().chain(failed.into_iter().flat_map(|row| [heading.clone(), row])).collect();
    }
    let (response, service) = (percentiles(&run.response_ms), percentiles(&run.service_ms));
    let mut lines = vec![heading, format!("{:<15}{}", "response time", paint.bold(&cells(&response, &service)))];
    if clocks_agree(run) {
        lines.push(paint.dim("service time   the same, within 1%"));
    } else {
        lines.push(format!("{:<15}{}", "service time", cells(&service, &response)));
    }
    lines.extend(failed);
    lines
}

/// Whether all percentiles of response and service times differ by at most 1%.
pub(super) fn clocks_agree(run: &Run) -> bool {
    let (response, service) = (percentiles(&run.response_ms), percentiles(&run.service_ms));
    let agree = |r: f64, s: f64| (r - s).abs() <= r * 0.01;
    response.iter().zip(service).all(|(r, s)| r.zip(s).is_some_and(|(r, s)| agree(r, s)))
}

fn shape(run: &Run, paint: AnsiPaint) -> Vec<String> {
    // A damaged histogram was rejected when the run was read.
    run.response_histogram().map_or_else(|_| Vec::new(), |histogram| bars::lines(&histogram, paint))
}

pub(super) fn outcomes(run: &Run, paint: AnsiPaint) -> Vec<String> {
    // Names of gRPC are longer than what HTTP has.
    let names =
        run.status.keys().chain(run.failures.keys()).filter(|name| parse_status(name).is_some_and(is_grpc_status));
    let width = names.map(String::len).fold(10, usize::max);
    let rows = |section: &str, kind: &str, n: u64, words: &str, failed: bool| {
        let percentage = percent(n as f64 / run.requests.total.max(1) as f64);
        let first =
            format!("{section:<LABEL_WIDTH$}{:<width$}{:>11}  {percentage:>7}  ", truncate(kind, width), count(n));
        let lines = wrap(&first, words).into_iter();
        lines.map(move |line| if failed { paint.red(line.trim_end()) } else { line.trim_end().to_owned() })
    };
    let statuses = run.status.iter().enumerate().flat_map(|(i, (status, n))| {
        let is_failed = run.failed_by_status(status) > 0;
        let words = accepted_text(run, status, *n);
        let words = run.target.failure_details.get(status).cloned().unwrap_or(words);
        rows(if i == 0 { "status" } else { "" }, status, *n, &words, is_failed).collect::<Vec<_>>()
    });
    // Classes and names of statuses are in the rows above.
    let is_status = |kind: &str| kind.ends_with("xx") || kind == "check" || run.status.contains_key(kind);
    let without_response = run.failures.iter().filter(|(kind, _)| !is_status(kind)).enumerate();
    let failures = without_response.flat_map(|(i, (kind, n))| {
        let words = run.target.failure_details.get(kind).map_or("", String::as_str);
        rows(if i == 0 { "no response" } else { "" }, kind, *n, words, true)
    });
    statuses.chain(failures).collect()
}

/// Objectives that were met, or those that were missed.
pub(super) fn objectives(run: &Run, are_met: bool, paint: AnsiPaint) -> Vec<String> {
    let width = run.slo.iter().map(|held| held.objective.chars().count()).max().unwrap_or(0);
    let line = |held: &weir_measure::run::SloResult| {
        let line = format!("{:<width$}  {}", held.objective, held.measured);
        let line = truncate(&line, TERMINAL_COLUMNS - 2);
        if held.ok { format!("{} {line}", paint.green("✓")) } else { paint.red(&format!("✗ {line}")) }
    };
    run.slo.iter().filter(|held| held.ok == are_met).map(line).collect()
}

pub(super) fn generator(run: &Run, paint: AnsiPaint) -> Vec<String> {
    if run.requests.total == 0 {
        return Vec::new();
    }
    let late = &run.lateness_ms;
    let facts = [
        format!("sent late by {} p50, {} p99", ms(late.p50), ms(late.p99)),
        format!("{} CPU per request", ms(run.cpu_us_per_request.map(|us| us / 1e3))),
        format!("busiest thread {:.0}%", run.cpu_utilization * 100.0),
    ];
    vec![paint.line("weir itself", &facts)]
}

/// Words on the responses with a status of 400 and above that are successes.
pub(super) fn accepted_text(run: &Run, status: &str, n: u64) -> String {
    match run.accepted.get(status) {
        None | Some(0) => String::new(),
        Some(accepted) if *accepted == n => "accepted".to_owned(),
        Some(accepted) => format!("{} accepted", count(*accepted)),
    }
}

/// Duration in seconds, to the millisecond.
pub(super) fn seconds(s: f64) -> String {
    Nanos::from_secs_f64((s * 1e3).round() / 1e3).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures;

    #[test]
    fn a_run_without_a_success_reports_that_first() {
        let report = render(&fixtures::broken(), false);
        let first = report.lines().next().unwrap_or_default();
        assert_eq!(first, "NONE OF 400 REQUESTS SUCCEEDED: 300 x 500, 100 x 404");
        assert!(
            report.contains("no response times: no request succeeded") && report.contains("of failures"),
            "{report}"
        );
    }

    #[test]
    fn iterations_are_offered_not_their_requests_and_what_the_end_cuts_off_is_told_once() {
        let mut run = fixtures::shop();
        (run.model, run.rate_per_s.offered) = (LoadModel::Open, run.rate_per_s.achieved);
        run.requests.unfinished = 7;
        if let Some(iterations) = &mut run.iterations {
            (iterations.rate_per_s.offered, iterations.unfinished) = (95.0, 5);
        }
        let report = render(&run, false);
        assert!(
            report.contains("open loop, 95.0/s offered") && report.contains("40.0/s of 95.0/s offered"),
            "{report}"
        );
        assert!(!report.contains("60.0/s of"), "{report}");
        assert!(report.contains("5 cut off by the end, not counted") && !report.contains("7 cut off"), "{report}");
        run.iterations = None;
        assert!(render(&run, false).contains("7 cut off by the end, not counted"));
        run.interrupted = true;
        let report = render(&run, false);
        assert!(report.contains("7 in flight, not counted") && !report.contains("7 cut off"), "{report}");
    }

    #[test]
    fn the_report_is_readable_at_a_glance() {
        fixtures::same(&render(&fixtures::closed(), false), include_str!("golden/closed.text.txt"), "closed.text.txt");
        fixtures::same(&render(&fixtures::open(), false), include_str!("golden/open.text.txt"), "open.text.txt");
        fixtures::same(&render(&fixtures::wide(), false), include_str!("golden/wide.text.txt"), "wide.text.txt");
        fixtures::same(&render(&fixtures::empty(), false), include_str!("golden/empty.text.txt"), "empty.text.txt");
    }

    #[test]
    fn colours_change_no_word_and_failures_come_first_then_objectives_then_reasons_in_red() {
        let colored = render(&fixtures::open(), true);
        let at =
            |words: &str| colored.find(&format!("\x1b[31m{words}")).unwrap_or_else(|| panic!("{words}: {colored}"));
        let order = ["10.6% OF REQUESTS FAILED", "OBJECTIVES MISSED", "✗ p99<200ms", "NOT TRUSTED", "  - "].map(at);
        assert!(order[0] == 0 && order.is_sorted(), "{order:?}: {colored}");
        let mut bare = String::new();
        for (i, part) in colored.split('\x1b').enumerate() {
            bare += if i == 0 { part } else { part.split_once('m').expect("the end of a colour").1 };
        }
        let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        assert_eq!(trimmed(&bare), trimmed(&render(&fixtures::open(), false)));
    }
}
