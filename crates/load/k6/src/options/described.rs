//! The load that options describe, without a script.

use serde_json::Value;
use weir_base::Nanos;
use weir_pace::shard::Shard;

use super::K6Options;
use crate::metrics::registry::MetricRegistry;

/// A scenario of options, as a load has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedScenario {
    /// Name.
    pub name: String,
    /// Maximum number of users.
    pub users: u64,
    /// Start and end of its iterations, and the latest end of one.
    pub times: [Nanos; 3],
    /// Start of the first iteration of its first user, if it has one.
    pub first: Option<Nanos>,
}

/// Scenarios that the object `options` of a script describes; none: the load is that of the command line.
///
/// # Errors
/// One line that names the option, and what to write.
pub fn described_scenarios(options: &Value) -> Result<Vec<DescribedScenario>, String> {
    let options = K6Options::read(options)?;
    options.metric_plan(MetricRegistry::default().all())?;
    let scenario = |scenario: super::scenarios::ScenarioOptions| {
        let mut pace = scenario.pace.sharded(Shard::WHOLE);
        DescribedScenario {
            name: scenario.name,
            users: pace.users(),
            times: [pace.start(), pace.end(), pace.until()],
            first: pace.next(0, 0, Nanos::ZERO).map(|given| given.at),
        }
    };
    Ok(options.scenarios.into_iter().map(scenario).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, json};

    /// Names of options, of scenarios and of stages, and some that none has.
    const NAMES: [&str; 30] = [
        "vus",
        "duration",
        "iterations",
        "stages",
        "scenarios",
        "thresholds",
        "executor",
        "rate",
        "timeUnit",
        "preAllocatedVUs",
        "maxVUs",
        "startVUs",
        "startRate",
        "startTime",
        "gracefulStop",
        "gracefulRampDown",
        "maxDuration",
        "exec",
        "env",
        "tags",
        "target",
        "threshold",
        "abortOnFail",
        "delayAbortEval",
        "hosts",
        "maxRedirects",
        "batch",
        "http_req_duration",
        "checks{a:b}",
        "nope\n",
    ];
    const EXECUTORS: [&str; 6] = [
        "constant-vus",
        "ramping-vus",
        "shared-iterations",
        "per-vu-iterations",
        "constant-arrival-rate",
        "ramping-arrival-rate",
    ];
    const TEXTS: [&str; 12] =
        ["10s", "1e400", "-1s", "0s", "99999999d", "p(95)<300", "p(1e9)<1", "rate>", "default", "", "NaN", "a\nb"];

    fn any_json() -> impl Strategy<Value = Value> {
        let number = prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            (-2..50_i64).prop_map(Value::from),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            number,
            prop::sample::select([&TEXTS[..], &EXECUTORS].concat()).prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            let name = prop_oneof![prop::sample::select(&NAMES[..]).prop_map(str::to_owned), ".{0,6}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((name, inner), 0..6).prop_map(|all| Value::Object(all.into_iter().collect())),
            ]
        })
    }

    /// Options that are nearly right: each member of one that is may have another value.
    fn near_json() -> impl Strategy<Value = Value> {
        let whole = json!({ "executor": "ramping-arrival-rate", "startRate": 5, "timeUnit": "1s", "preAllocatedVUs": 2,
            "maxVUs": 9, "stages": [{ "duration": "5s", "target": 8 }], "startTime": "1s", "gracefulStop": "2s",
            "vus": 3, "duration": "5s", "iterations": 4, "rate": 3, "maxDuration": "9s", "startVUs": 1 });
        (prop::sample::select(&EXECUTORS[..]), prop::collection::vec((0..14_usize, any_json()), 0..3), any::<u16>())
            .prop_map(move |(executor, changes, kept)| {
                let mut scenario: Map<String, Value> = whole.as_object().cloned().unwrap_or_default();
                let names: Vec<String> = scenario.keys().cloned().collect();
                for (index, name) in names.iter().enumerate() {
                    if kept & (1 << index) == 0 {
                        scenario.remove(name);
                    }
                }
                for (index, value) in changes {
                    scenario.insert(names[index % names.len()].clone(), value);
                }
                scenario.insert("executor".to_owned(), Value::from(executor));
                json!({ "scenarios": { "a": scenario } })
            })
    }

    proptest! {
        #[test]
        fn options_are_a_plan_or_one_line(options in prop_oneof![any_json(), near_json()]) {
            match described_scenarios(&options) {
                Ok(scenarios) => for scenario in scenarios {
                    let [start, end, until] = scenario.times;
                    prop_assert!(scenario.users > 0 && start < end && end <= until, "{scenario:?}");
                    prop_assert!(scenario.first.is_none_or(|first| first >= start), "{scenario:?}");
                },
                Err(why) => prop_assert!(!why.is_empty() && !why.contains(char::is_control), "{why:?}"),
            }
        }
    }

    #[test]
    fn a_load_is_described() {
        let options = json!({ "vus": 2, "duration": "10s" });
        let seconds = |seconds: u64| Nanos(seconds * 1_000_000_000);
        let expected = DescribedScenario {
            name: "default".to_owned(),
            users: 2,
            times: [Nanos::ZERO, seconds(10), seconds(40)],
            first: Some(Nanos::ZERO),
        };
        assert_eq!(described_scenarios(&options), Ok(vec![expected]));
    }
}
