//! Summaries as k6 writes them: for `handleSummary`, and of `--summary-export`.

use std::collections::BTreeMap;

use md5::{Digest as _, Md5};
use serde_json::{Map, Value, json};
use weir_measure::Run;
use weir_measure::run_script::{RunScript, ScriptCheck, ScriptMetric};

use crate::options::K6Options;

/// A group with its checks and the groups in it.
#[derive(Debug, Default)]
struct Group<'r> {
    checks: Vec<&'r ScriptCheck>,
    groups: BTreeMap<String, Group<'r>>,
}

impl<'r> Group<'r> {
    /// All checks in their groups.
    fn root(script: &'r RunScript) -> Self {
        let mut root = Self::default();
        for check in &script.checks {
            let names = check.group.split("::").filter(|name| !name.is_empty());
            let group = names.fold(&mut root, |group, name| group.groups.entry(name.to_owned()).or_default());
            group.checks.push(check);
        }
        root
    }

    /// As `handleSummary` has it: lists.
    fn lists(&self, name: &str, path: &str) -> Value {
        let checks: Vec<Value> = self.checks.iter().map(|check| check_value(check, path)).collect();
        let inner = self.groups.iter().map(|(name, group)| group.lists(name, &format!("{path}::{name}")));
        json!({
            "name": name, "path": path, "id": id(path), "checks": checks, "groups": inner.collect::<Vec<Value>>()
        })
    }

    /// As `--summary-export` has it: objects by names.
    fn objects(&self, name: &str, path: &str) -> Value {
        let checks = self.checks.iter().map(|check| (check.name.clone(), check_value(check, path)));
        let inner =
            self.groups.iter().map(|(name, group)| (name.clone(), group.objects(name, &format!("{path}::{name}"))));
        json!({
            "name": name, "path": path, "id": id(path), "checks": checks.collect::<Map<String, Value>>(),
            "groups": inner.collect::<Map<String, Value>>()
        })
    }
}

fn check_value(check: &ScriptCheck, group: &str) -> Value {
    let path = format!("{group}::{}", check.name);
    json!({ "name": check.name, "path": path, "id": id(&path), "passes": check.passed, "fails": check.failed })
}

/// Number that k6 gives a path.
fn id(path: &str) -> String {
    Md5::digest(path).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Thresholds of a metric with whether they are met, by their conditions.
fn thresholds<'r>(run: &'r Run, metric: &ScriptMetric) -> Vec<(&'r str, bool)> {
    let split = run.slo.iter().filter_map(|held| Some((held.objective.rsplit_once(": ")?, held.ok)));
    split.filter(|((name, _), _)| *name == metric.name).map(|((_, condition), ok)| (condition, ok)).collect()
}

/// What `handleSummary` is given.
pub(crate) fn data(run: &Run, options: &K6Options) -> Value {
    let empty = RunScript::default();
    let script = run.script.as_ref().unwrap_or(&empty);
    let metric = |metric: &ScriptMetric| {
        let contains = match metric.unit.as_str() {
            "milliseconds" => "time",
            "bytes" => "data",
            _ => "default",
        };
        let mut value = json!({ "type": metric.kind, "contains": contains, "values": metric.values });
        let held = thresholds(run, metric);
        if !held.is_empty() {
            let held = held.into_iter().map(|(condition, ok)| (condition.to_owned(), json!({ "ok": ok })));
            value["thresholds"] = Value::Object(held.collect());
        }
        (metric.name.clone(), value)
    };
    json!({
        "root_group": Group::root(script).lists("", ""),
        "options": { "summaryTrendStats": options.trend_stats, "summaryTimeUnit": "", "noColor": true },
        "state": { "isStdOutTTY": false, "isStdErrTTY": false, "testRunDurationMs": run.duration_s * 1e3 },
        "metrics": script.metrics.iter().map(metric).collect::<Map<String, Value>>(),
    })
}

/// The file of `--summary-export`.
pub(crate) fn export(run: &Run) -> Value {
    let empty = RunScript::default();
    let script = run.script.as_ref().unwrap_or(&empty);
    let metric = |metric: &ScriptMetric| {
        let mut values: Map<String, Value> = metric.values.iter().map(|(name, it)| (name.clone(), json!(it))).collect();
        if let Some(rate) = values.get("rate").cloned().filter(|_| metric.kind == "rate") {
            values.remove("rate");
            values.insert("value".to_owned(), rate);
        }
        let held = thresholds(run, metric);
        if !held.is_empty() {
            // As k6 writes it: whether it has failed.
            let held = held.into_iter().map(|(condition, ok)| (condition.to_owned(), json!(!ok)));
            values.insert("thresholds".to_owned(), Value::Object(held.collect()));
        }
        (metric.name.clone(), Value::Object(values))
    };
    json!({
        "root_group": Group::root(script).objects("", ""),
        "metrics": script.metrics.iter().map(metric).collect::<Map<String, Value>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_their_checks_and_paths() {
        let check = |group: &str, name: &str| ScriptCheck {
            group: group.to_owned(),
            name: name.to_owned(),
            passed: 2,
            failed: 1,
        };
        let script = RunScript { checks: vec![check("", "a"), check("::g::h", "b")], ..RunScript::default() };
        let root = Group::root(&script).lists("", "");
        assert_eq!(root["id"], "d41d8cd98f00b204e9800998ecf8427e", "of an empty path");
        assert_eq!(root["groups"][0]["groups"][0]["checks"][0]["path"], "::g::h::b");
        let objects = Group::root(&script).objects("", "");
        assert_eq!(objects["checks"]["a"]["fails"], 1);
    }
}
