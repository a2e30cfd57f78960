//! Report in the format of k6's summary.
//!
//! Layout and names are those of k6, the figures those of weir: `http_req_duration` is the service time, from the send
//! on. Where the response time, from the intended start on, differs, the first lines say so.

use std::collections::BTreeMap;

use super::number_format::{percentage, sanitize};
use weir_measure::Run;
use weir_measure::run_script::{RunScript, ScriptCheck, ScriptMetric};

/// Columns of a name with its dots.
const NAME_COLUMNS: usize = 32;
/// Difference of the two clocks from which on it is said.
const CLOCK_FRACTION: f64 = 0.01;

/// Report of a run.
pub fn render(run: &Run) -> String {
    let empty = RunScript::default();
    let script = run.script.as_ref().unwrap_or(&empty);
    let mut text = notes(run);
    text += &thresholds(run);
    text += "\n  █ TOTAL RESULTS\n";
    text += &checks(script);
    for (title, begins) in GROUPS {
        text += &section(title, script, |metric| !metric.custom && begins.iter().any(|it| metric.name.starts_with(it)));
    }
    text
}

/// Titles of the parts, and beginnings of the names of their metrics.
const GROUPS: [(&str, &[&str]); 5] = [
    ("HTTP", &["http_"]),
    ("WEBSOCKET", &["ws_"]),
    ("GRPC", &["grpc_"]),
    ("EXECUTION", &["dropped_iterations", "group_duration", "iteration", "vus"]),
    ("NETWORK", &["data_"]),
];

/// Remarks that k6's figures lack.
fn notes(run: &Run) -> String {
    let mut lines: Vec<String> = Vec::new();
    if let (Some(response), Some(service)) = (run.response_ms.p99, run.service_ms.p99)
        && response > service * (1.0 + CLOCK_FRACTION)
    {
        lines.push(format!(
            "http_req_duration does not contain waiting for a free user: p(99) {} from the intended start, {} from the send",
            milliseconds(response),
            milliseconds(service)
        ));
    }
    lines.extend(run.trust.reasons.iter().map(|reason| format!("not trusted: {reason}")));
    lines.iter().map(|line| format!("  {}\n", sanitize(line))).collect()
}

fn thresholds(run: &Run) -> String {
    // Conditions have no colon with a space; names of tags may.
    let split = run.slo.iter().filter_map(|held| Some((held.objective.rsplit_once(": ")?, held)));
    let mut by_metric: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((metric, condition), held) in split {
        let sign = if held.ok { "✓" } else { "✗" };
        by_metric.entry(metric).or_default().push(format!("    {sign} '{condition}' {}\n", held.measured));
    }
    if by_metric.is_empty() {
        return String::new();
    }
    let mut text = "\n  █ THRESHOLDS\n".to_owned();
    for (metric, lines) in by_metric {
        text += &format!("\n    {}\n{}", sanitize(metric), lines.concat());
    }
    text
}

fn checks(script: &RunScript) -> String {
    let passed: u64 = script.checks.iter().map(|check| check.passed).sum();
    let failed: u64 = script.checks.iter().map(|check| check.failed).sum();
    let all = passed + failed;
    let mut text = String::new();
    if all > 0 {
        let share = |part: u64| percentage(part as f64 / all as f64);
        text += &format!("\n    {} {all}\n", dotted("checks_total"));
        text += &format!("    {} {} {passed} out of {all}\n", dotted("checks_succeeded"), share(passed));
        text += &format!("    {} {} {failed} out of {all}\n\n", dotted("checks_failed"), share(failed));
        text += &script.checks.iter().map(check).collect::<String>();
    }
    text + &section("CUSTOM", script, |metric| metric.custom)
}

fn check(check: &ScriptCheck) -> String {
    let group = check.group.trim_start_matches("::").replace("::", " / ");
    let name = if group.is_empty() { check.name.clone() } else { format!("{group}: {}", check.name) };
    let name = sanitize(&name);
    if check.failed == 0 {
        return format!("    ✓ {name}\n");
    }
    let share = percentage(check.passed as f64 / (check.passed + check.failed) as f64);
    format!("    ✗ {name}\n      ↳  {share} — ✓ {} / ✗ {}\n", check.passed, check.failed)
}

fn section(title: &str, script: &RunScript, belongs: impl Fn(&ScriptMetric) -> bool) -> String {
    let lines: Vec<String> = script.metrics.iter().filter(|metric| belongs(metric)).map(metric_line).collect();
    if lines.is_empty() { String::new() } else { format!("\n    {title}\n{}", lines.concat()) }
}

fn metric_line(metric: &ScriptMetric) -> String {
    let value = |name: &str| metric.values.get(name).copied().unwrap_or(0.0);
    let shown = |value: f64| match metric.unit.as_str() {
        "milliseconds" => milliseconds(value),
        "bytes" => bytes(value),
        _ => number(value),
    };
    // A metric of some tags belongs to the one before it.
    let name = match metric.name.find('{') {
        Some(at) => format!("  {{ {} }}", metric.name[at + 1..].trim_end_matches('}')),
        None => metric.name.clone(),
    };
    let values = match metric.kind.as_str() {
        "counter" => format!("{} {}/s", shown(value("count")), shown(value("rate"))),
        "gauge" => format!("{} min={} max={}", shown(value("value")), shown(value("min")), shown(value("max"))),
        "rate" => {
            let all = value("passes") + value("fails");
            format!("{} {} out of {}", percentage(value("rate")), number(value("passes")), number(all))
        }
        _ => {
            let order = ["avg", "min", "med", "max"];
            let rest = metric.values.keys().map(String::as_str).filter(|name| !order.contains(name));
            let names = order.into_iter().filter(|name| metric.values.contains_key(*name)).chain(rest);
            names.map(|name| format!("{name}={}", shown(value(name)))).collect::<Vec<_>>().join(" ")
        }
    };
    format!("    {} {values}\n", dotted(&sanitize(&name)))
}

fn dotted(name: &str) -> String {
    let dots = NAME_COLUMNS.saturating_sub(name.chars().count() + 1).max(1);
    format!("{name}{}:", ".".repeat(dots))
}

/// Time with its unit, as Go writes it.
fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms <= 0.0 => "0s".to_owned(),
        ms if ms < 1.0 => format!("{}µs", number(ms * 1e3)),
        ms if ms < 1e3 => format!("{}ms", number(ms)),
        ms if ms < 60e3 => format!("{}s", number(ms / 1e3)),
        ms => format!("{}m{}s", (ms / 60e3).floor(), number((ms / 1e3) % 60.0)),
    }
}

fn bytes(value: f64) -> String {
    match value {
        value if value < 1e3 => format!("{value:.0} B"),
        value if value < 1e6 => format!("{:.0} kB", value / 1e3),
        value if value < 1e9 => format!("{:.1} MB", value / 1e6),
        value => format!("{:.1} GB", value / 1e9),
    }
}

/// Number with at most two digits after the point.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_go_writes_them() {
        let shown: Vec<String> = [0.0, 0.0123, 1.5, 999.0, 1234.0, 61_500.0].into_iter().map(milliseconds).collect();
        assert_eq!(shown, ["0s", "12.3µs", "1.5ms", "999ms", "1.23s", "1m1.5s"]);
    }

    #[test]
    fn metrics_of_some_tags_stand_below_their_metric() {
        let metric = |name: &str| ScriptMetric {
            name: name.to_owned(),
            kind: "counter".to_owned(),
            values: [("count".to_owned(), 3.0), ("rate".to_owned(), 1.5)].into(),
            ..ScriptMetric::default()
        };
        assert_eq!(metric_line(&metric("http_reqs")), "    http_reqs......................: 3 1.5/s\n");
        assert!(metric_line(&metric("http_reqs{scenario:a}")).starts_with("      { scenario:a }..."));
    }
}
