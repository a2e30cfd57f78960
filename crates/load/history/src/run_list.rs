//! Saved runs as text, and as JSON.

use serde_json::json;

use super::StoredRun;
use super::start_time::started;
use weir_report::comparison::MetricSelector;
use weir_report::page::ValueUnit;

/// Figures of a row, and their widths.
const COLUMNS: [(&str, usize); 4] = [("rate", 11), ("p50", 9), ("p99", 9), ("errors", 8)];

/// Runs with the plan that they share above them.
pub fn run_list(runs: &[StoredRun]) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let heading: String = COLUMNS.iter().map(|(name, width)| format!("{name:>width$}")).collect();
    let mut lines = vec![format!("{:>6}  {:<16}{heading}  {:<15}{}", "run", "started (UTC)", "commit", "")];
    let mut plan = "";
    for run in runs {
        if run.plan != plan {
            plan = &run.plan;
            lines.extend([String::new(), format!("{plan}; {}", run.machine)]);
        }
        let figures: String = COLUMNS.iter().map(|(name, width)| format!("{:>width$}", figure(run, name))).collect();
        let commit: String = run.note.commit.chars().take(13).collect();
        let rest: Vec<String> =
            [run.note.label.clone(), verdict(run)].into_iter().filter(|text| !text.is_empty()).collect();
        let line = format!(
            "{:>6}  {:<16}{figures}  {commit:<15}{}",
            format!("#{}", run.id),
            started(run.started_unix_s),
            rest.join(" · ")
        );
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n") + "\n"
}

/// Figure with its unit; empty without one.
fn figure(run: &StoredRun, name: &str) -> String {
    let unit = name.parse::<MetricSelector>().map(|selector| ValueUnit::of(&selector.metric()));
    run.figure(name).zip(unit.ok()).map_or_else(String::new, |(value, unit)| unit.format(value).replace('\u{a0}', ""))
}

fn verdict(run: &StoredRun) -> String {
    match run {
        run if run.is_interrupted => "interrupted".to_owned(),
        run if !run.is_trusted => "not trusted".to_owned(),
        StoredRun { missed: 0, .. } => String::new(),
        StoredRun { missed: 1, .. } => "1 objective missed".to_owned(),
        StoredRun { missed, .. } => format!("{missed} objectives missed"),
    }
}

/// Run as the page of `weir ui` lists it: as in the JSON, with figures as text.
pub fn run_row(run: &StoredRun) -> serde_json::Value {
    let mut value = run_object(run);
    value["shown"] = json!({
        "started": started(run.started_unix_s),
        "figures": COLUMNS.map(|(name, _)| json!([name, figure(run, name)])),
        "verdict": verdict(run),
    });
    value
}

/// Run as JSON.
pub fn run_object(run: &StoredRun) -> serde_json::Value {
    let figures: serde_json::Map<String, serde_json::Value> =
        run.figures.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({
        "run": run.id,
        "started_unix_s": run.started_unix_s,
        "label": run.note.label,
        "commit": run.note.commit,
        "plan": run.plan,
        "offered_per_s": run.offered_per_s,
        "machine": run.machine,
        "trusted": run.is_trusted,
        "interrupted": run.is_interrupted,
        "objectives_missed": run.missed,
        "figures": figures,
    })
}
