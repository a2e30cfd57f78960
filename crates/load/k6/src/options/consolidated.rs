//! PURE. The options as `exec.test.options` has them: what the script writes, the defaults, and the load that runs.

use serde_json::{Map, Value, json};

/// Names of the short form of one scenario.
const SHORT: [&str; 4] = ["vus", "duration", "iterations", "stages"];

/// The load of the command line, in place of the script's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CommandLineLoad<'a> {
    /// Name of the executor.
    pub(crate) executor: &'a str,
    /// Name of the function of an iteration.
    pub(crate) exec: &'a str,
    pub(crate) users: u64,
    /// Length in seconds.
    pub(crate) seconds: f64,
}

/// Consolidated options of those that a script has `written`. `load` is that of the command line; `None` if the script's
/// own runs.
pub(crate) fn consolidated(written: &Value, load: Option<CommandLineLoad<'_>>) -> Value {
    let mut all = written.as_object().cloned().unwrap_or_default();
    let short: Vec<(&str, Value)> =
        SHORT.into_iter().filter_map(|name| Some((name, all.remove(name)?))).filter(|(_, it)| !it.is_null()).collect();
    let scenarios = match load {
        Some(load) => json!({ "default": {
            "executor": load.executor,
            "exec": load.exec,
            "vus": load.users,
            "duration": format!("{}s", load.seconds),
        } }),
        None => match all.remove("scenarios") {
            Some(scenarios) if scenarios.is_object() => scenarios,
            _ => json!({ "default": of_short_form(short) }),
        },
    };
    let scenarios = scenarios.as_object().cloned().unwrap_or_default();
    let scenarios: Map<String, Value> =
        scenarios.into_iter().map(|(name, scenario)| (name, with_defaults(scenario))).collect();
    all.insert("scenarios".to_owned(), Value::Object(scenarios));
    for (name, default) in defaults() {
        let own = all.entry(name).or_insert(Value::Null);
        if own.is_null() {
            *own = default;
        }
    }
    Value::Object(all)
}

/// The scenario that a short form stands for.
fn of_short_form(parts: Vec<(&str, Value)>) -> Value {
    let has = |name: &str| parts.iter().any(|(known, _)| *known == name);
    let executor = match (has("stages"), has("duration") && !has("iterations")) {
        (true, _) => "ramping-vus",
        (false, true) => "constant-vus",
        (false, false) => "shared-iterations",
    };
    let mut scenario = Map::from_iter([("executor".to_owned(), json!(executor))]);
    for (name, value) in parts {
        let name = match (executor, name) {
            ("ramping-vus", "vus") => "startVUs",
            ("shared-iterations", "duration") => "maxDuration",
            (_, name) => name,
        };
        scenario.insert(name.to_owned(), value);
    }
    if executor != "ramping-vus" {
        scenario.entry("vus").or_insert(json!(1));
    }
    if executor == "shared-iterations" {
        scenario.entry("iterations").or_insert(json!(1));
    }
    Value::Object(scenario)
}

fn with_defaults(scenario: Value) -> Value {
    let Value::Object(mut scenario) = scenario else { return scenario };
    let defaults = [
        ("startTime", json!("0s")),
        ("gracefulStop", json!("30s")),
        ("env", json!({})),
        ("tags", json!({})),
        ("exec", json!("default")),
    ];
    for (name, default) in defaults {
        scenario.entry(name).or_insert(default);
    }
    Value::Object(scenario)
}

/// Defaults of k6; others are `null`.
fn defaults() -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("batch", json!(20)),
        ("batchPerHost", json!(6)),
        ("maxRedirects", json!(10)),
        ("userAgent", json!(concat!("weir/", env!("CARGO_PKG_VERSION")))),
        ("setupTimeout", json!("60s")),
        ("teardownTimeout", json!("60s")),
        ("summaryTrendStats", json!(super::TREND_STATS)),
        ("thresholds", json!({})),
    ];
    let flags = [
        "throw",
        "discardResponseBodies",
        "noConnectionReuse",
        "noVUConnectionReuse",
        "noCookiesReset",
        "insecureSkipTLSVerify",
    ];
    all.extend(flags.map(|name| (name, json!(false))));
    all.extend(
        ["tags", "hosts", "rps", "minIterationDuration", "paused", "tlsVersion"].map(|name| (name, Value::Null)),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_form_is_a_scenario_and_the_command_line_replaces_it() {
        let written = json!({ "vus": 3, "duration": "5s", "thresholds": { "checks": ["rate>0.9"] } });
        let own = consolidated(&written, None);
        let scenario = &own["scenarios"]["default"];
        assert_eq!((&scenario["executor"], &scenario["vus"]), (&json!("constant-vus"), &json!(3)));
        assert_eq!((&own["thresholds"]["checks"][0], &own["batch"]), (&json!("rate>0.9"), &json!(20)));
        assert!(own.get("vus").is_none() && own["tags"].is_null());
        let load = CommandLineLoad { executor: "constant-vus", exec: "default", users: 7, seconds: 2.5 };
        let replaced = consolidated(&written, Some(load));
        assert_eq!(replaced["scenarios"]["default"]["duration"], "2.5s");
        assert_eq!(replaced["scenarios"]["default"]["vus"], 7);
    }

    #[test]
    fn scenarios_keep_what_is_written() {
        let written = json!({ "scenarios": { "a": { "executor": "constant-vus", "vus": 1, "startTime": "3s" } } });
        let all = consolidated(&written, None);
        let scenario = &all["scenarios"]["a"];
        assert_eq!((&scenario["startTime"], &scenario["exec"]), (&json!("3s"), &json!("default")));
        assert_eq!(consolidated(&json!({}), None)["scenarios"]["default"]["executor"], "shared-iterations");
        assert_eq!(consolidated(&json!({ "stages": [] }), None)["scenarios"]["default"]["executor"], "ramping-vus");
    }
}
