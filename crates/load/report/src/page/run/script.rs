//! Measurements of a script's own: checks, metrics, exceptions.

use crate::page::{Block, PageTable, Section, TableCell};
use crate::script::values;
use weir_measure::Run;

/// Maximum number of rows of a table.
const MAX_ROWS: usize = 1000;

/// Section on what a script has measured itself; empty without such a script.
pub(super) fn script(run: &Run) -> Section {
    let Some(script) = &run.script else { return Section::default() };
    let mut exceptions = PageTable::new("Exceptions", &["message", "iterations"]);
    exceptions.rows.extend(
        script.exceptions.iter().map(|it| vec![TableCell::text(it.message.as_str()), TableCell::count(it.count)]),
    );
    let mut checks = PageTable::new("Checks", &["group", "check", "passed", "failed"]);
    checks.rows.extend(script.checks.iter().take(MAX_ROWS).map(|check| {
        let group = check.group.trim_start_matches("::").replace("::", " / ");
        let counts = [check.passed, check.failed].map(TableCell::count);
        let names = vec![TableCell::text(group), TableCell::text(check.name.as_str())];
        names.into_iter().chain(counts).collect()
    }));
    let mut metrics = PageTable::new("Metrics", &["metric", "kind", "values"]);
    metrics.rows.extend(script.metrics.iter().take(MAX_ROWS).map(|metric| {
        let texts = [metric.name.clone(), metric.kind.clone(), values(metric)];
        texts.into_iter().map(TableCell::text).collect()
    }));
    let tables = [exceptions, checks, metrics].into_iter().filter(|table| !table.rows.is_empty());
    Section::new("Script", tables.map(Block::Table).collect())
}
