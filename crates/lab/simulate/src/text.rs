//! Text report of a simulation, within 100 columns.

use std::cmp::Ordering;
use std::fmt::Write;

use super::metrics::{PhaseMetrics, SimulationReport};
use super::ranking::{LimiterComparison, LimiterPairing};
use super::scenario;
use super::world::HeadlineMetric;

/// Text report; runs of the same scenario form one table.
pub fn render(all: &LimiterComparison) -> String {
    let mut text = String::new();
    let mut shown: Vec<&str> = Vec::new();
    for run in &all.runs {
        if shown.contains(&run.scenario.as_str()) {
            continue;
        }
        shown.push(&run.scenario);
        let same: Vec<&SimulationReport> = all.runs.iter().filter(|other| other.scenario == run.scenario).collect();
        let _ = writeln!(
            text,
            "{}{}",
            run.scenario,
            scenario::description(&run.scenario).map(|a| format!(": {a}")).unwrap_or_default()
        );
        text.push_str(&table(&same, all));
        text.push('\n');
    }
    text.push_str(&pairings_text(&all.pairings));
    text
}

fn table(same: &[&SimulationReport], all: &LimiterComparison) -> String {
    let mut text = format!(
        "  {:9} {:12} {:>7} {:>7} {:>7} {:>6} {:>8} {:>7} {:>6} {:>9}\n",
        "limiter", "phase", "per s", "goodput", "p99", "", "rejected", "settled", "limit", "in flight"
    );
    for report in same {
        let mut rows = vec![&report.scored];
        // A single limiter gets a row per phase.
        if same.len() == 1 && report.phases.len() > 1 {
            rows.extend(&report.phases);
        }
        for metrics in rows {
            let rank = all.ranks.iter().find(|rank| rank.scenario == report.scenario && rank.limiter == report.limiter);
            let winners = rank.map_or(0, |rank| rank.beaten_by.len());
            let losses = if winners > 0 { format!(" loses to {winners}") } else { String::new() };
            let _ = writeln!(text, "  {:9} {}{losses}", report.limiter, row(metrics));
        }
        if report.headline_metric == HeadlineMetric::Critical {
            let by_priority: Vec<String> =
                report.scored.goodput_by_priority.iter().map(|goodput| or_dash(*goodput, percent)).collect();
            let _ = writeln!(text, "  {:9} goodput from low to critical: {}", "", by_priority.join(", "));
        }
    }
    text
}

fn row(metrics: &PhaseMetrics) -> String {
    let settled = match (metrics.overload, metrics.settling_time_s) {
        (false, _) => "-".to_owned(),
        (true, Some(after_s)) => format!("{after_s:.1}s"),
        (true, None) => "never".to_owned(),
    };
    format!(
        "{:12} {:>7.0} {:>7} {:>7} {:>6} {:>8} {settled:>7} {:>6} {:>9}",
        metrics.name,
        metrics.offered_per_s,
        or_dash(metrics.goodput, percent),
        or_dash(metrics.p99_ms, |ms| format!("{ms:.0}ms")),
        or_dash(metrics.p99_ratio, |ratio| format!("{ratio:.2}x")),
        or_dash(metrics.rejected, percent),
        or_dash(metrics.limit, calls),
        calls(metrics.in_flight),
    )
}

/// Text of a value; a dash where nothing was measured.
fn or_dash(value: Option<f64>, text: fn(f64) -> String) -> String {
    value.map_or("-".to_owned(), text)
}

fn calls(number: f64) -> String {
    if number < 1000.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

fn percent(fraction: f64) -> String {
    format!("{:.1}%", fraction * 100.0)
}

fn pairings_text(pairings: &[LimiterPairing]) -> String {
    let mut text = String::new();
    for pairing in pairings {
        let verdict = match pairing.wins.cmp(&pairing.losses) {
            Ordering::Greater => "wins against",
            Ordering::Equal => "ties with",
            Ordering::Less => "loses to",
        };
        let _ = writeln!(
            text,
            "{} {verdict} {}: {} wins, {} ties, {} losses",
            pairing.limiter, pairing.other, pairing.wins, pairing.ties, pairing.losses
        );
    }
    text
}
