//! Runs as text, readable at a glance, within 100 columns.

use std::cmp::Ordering;
use std::fmt::Write;

use super::figures::{PhaseMetrics, SimulationReport};
use super::scenario;
use super::score::{HeadlineMetric, LimiterComparison, LimiterPairing};

/// The report. Runs of the same scenario stand together.
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
        "  {:10} {:12} {:>8} {:>7} {:>8} {:>6} {:>7} {:>7} {:>7} {:>8}\n",
        "limit", "stretch", "per s", "goodput", "p99", "", "refused", "settled", "limit", "at work"
    );
    for report in same {
        let mut rows = vec![&report.scored];
        // One limiter by its phases, several beside each other.
        if same.len() == 1 && report.phases.len() > 1 {
            rows.extend(&report.phases);
        }
        for figures in rows {
            let standing = all.ranks.iter().find(|s| s.scenario == report.scenario && s.limit == report.limit);
            let behind = standing.map_or(0, |standing| standing.behind.len());
            let behind = if behind > 0 { format!("  {behind} ahead") } else { String::new() };
            let _ = writeln!(text, "  {:10} {}{behind}", report.limit, row(figures));
        }
        if report.headline_metric == HeadlineMetric::Critical {
            let share = |served: &Option<f64>| served.map_or("-".to_owned(), percent);
            let served: Vec<String> = report.scored.served.iter().map(share).collect();
            let _ = writeln!(text, "  {:10} served, from low to critical: {}", "", served.join(", "));
        }
    }
    text
}

fn row(figures: &PhaseMetrics) -> String {
    let settled = match (figures.overload, figures.settling_time_s) {
        (false, _) => "-".to_owned(),
        (true, Some(after_s)) => format!("{after_s:.1}s"),
        (true, None) => "never".to_owned(),
    };
    format!(
        "{:12} {:>8.0} {:>7} {:>6.0}ms {:>5.2}x {:>7} {settled:>7} {:>7} {:>8}",
        figures.name,
        figures.offered_per_s,
        percent(figures.goodput),
        figures.p99_ms,
        figures.p99_slowdown,
        percent(figures.rejected),
        figures.limit.map_or("-".to_owned(), calls),
        calls(figures.in_flight),
    )
}

fn calls(number: f64) -> String {
    if number < 1000.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn pairings_text(duels: &[LimiterPairing]) -> String {
    let mut text = String::new();
    for duel in duels {
        let word = match duel.ahead.cmp(&duel.behind) {
            Ordering::Greater => "ahead of",
            Ordering::Equal => "even with",
            Ordering::Less => "behind",
        };
        let _ = writeln!(
            text,
            "{} is {word} {}: ahead in {}, even in {}, behind in {}",
            duel.limit, duel.against, duel.ahead, duel.even, duel.behind
        );
    }
    text
}
