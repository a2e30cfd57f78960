//! Comparability of runs: another machine, plan or tool is a difference of its own.

use super::side::{SavedRun, Side};
use crate::read::Tool;

/// Maximum relative difference of offered rates of the same plan.
const RATE_TOLERANCE_FRACTION: f64 = 0.02;

/// Differences that forbid a comparison, a sentence each; the first run is compared with all others.
pub fn obstacles(sides: &[Side]) -> Vec<String> {
    let mut runs = sides.iter().flat_map(|side| &side.runs);
    let Some(first) = runs.next() else { return Vec::new() };
    let mut found: Vec<String> = Vec::new();
    for run in runs {
        for obstacle in [tools(first, run), machines(first, run), plans(first, run)].into_iter().flatten() {
            // One sentence of each kind, also for twenty runs on another machine.
            let kind = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
            if !found.iter().any(|known| kind(known) == kind(&obstacle)) {
                found.push(obstacle);
            }
        }
    }
    found
}

/// Note on runs of other tools, which have no machine and no trust.
pub fn unknowns(sides: &[Side]) -> Option<String> {
    let foreign = sides.iter().flat_map(|side| &side.runs).find(|run| run.result.tool != Tool::Weir)?;
    Some(format!(
        "{} does not report its machine, nor whether it kept up with its own load; check both",
        foreign.result.tool
    ))
}

fn tools(a: &SavedRun, b: &SavedRun) -> Option<String> {
    let (one, other) = (a.result.tool, b.result.tool);
    (one != other)
        .then(|| format!("different tools: {} is by {one}, {} by {other}; tools measure differently", a.file, b.file))
}

fn machines(a: &SavedRun, b: &SavedRun) -> Option<String> {
    let (one, other) = (a.result.machine.as_ref()?, b.result.machine.as_ref()?);
    let differs = [
        ("host", one.hostname.clone(), other.hostname.clone()),
        ("system", one.os.clone(), other.os.clone()),
        ("processor", one.cpu.clone(), other.cpu.clone()),
        ("cores", one.cores.to_string(), other.cores.to_string()),
        ("MiB of memory", one.memory_mib.to_string(), other.memory_mib.to_string()),
    ];
    let (what, one, other) = differs.into_iter().find(|(_, one, other)| one != other)?;
    Some(format!("different machines: {} has {what} {one}, {} has {other}", a.file, b.file))
}

fn plans(a: &SavedRun, b: &SavedRun) -> Option<String> {
    let (one, other) = (&a.result.plan, &b.result.plan);
    let differs = |what: &str, one: Option<String>, other: Option<String>| {
        let (one, other) = (one?, other?);
        (one != other).then(|| format!("different plans: {} has {what} {one}, {} has {other}", a.file, b.file))
    };
    let model = |plan: &crate::read::foreign_run::ToolPlan| plan.model.map(|model| format!("{model:?}").to_lowercase());
    let rate = |rate: f64| format!("{rate:.0}/s");
    differs("loop", model(one), model(other))
        .or_else(|| differs("method", one.method.clone(), other.method.clone()))
        .or_else(|| differs("path", one.path.clone(), other.path.clone()))
        .or_else(|| {
            differs("connections", one.connections.map(|n| n.to_string()), other.connections.map(|n| n.to_string()))
        })
        .or_else(|| {
            let (x, y) = (one.offered_per_s?, other.offered_per_s?);
            let apart = (x - y).abs() > RATE_TOLERANCE_FRACTION * x.max(y);
            apart.then(|| differs("offered rate", Some(rate(x)), Some(format!("{} ({y:.2})", rate(y)))))?
        })
}
