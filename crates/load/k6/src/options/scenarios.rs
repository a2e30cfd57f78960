//! Scenarios of a script, and their executors.

use serde_json::Value;
use weir_base::Nanos;
use weir_pace::scenario_pace::{IterationPace, ScenarioPace};
use weir_pace::schedule::{Arrivals, LoadStage, Schedule};
use weir_pace::user_stages::UserStages;

use super::reader::OptionReader;

/// A scenario of a script.
#[derive(Clone, Debug)]
pub(crate) struct ScenarioOptions {
    pub(crate) name: String,
    /// Name of the function that is an iteration.
    pub(crate) exec: String,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) tags: Vec<(String, String)>,
    /// Name of its executor.
    pub(crate) executor: &'static str,
    pub(crate) pace: ScenarioPace,
}

/// Default of `gracefulStop` and `gracefulRampDown`.
const GRACE: Nanos = Nanos(30_000_000_000);
/// Default of `maxDuration`.
const MAX_DURATION: Nanos = Nanos(600_000_000_000);
/// Longest wait of an iteration that arrives for a free user.
const MAX_WAIT: Nanos = Nanos(30_000_000_000);
/// Name of the scenario of options that name none.
const DEFAULT: &str = "default";
/// Most users of all scenarios.
const MAX_USERS: u64 = 1_000_000;
/// Largest rate, and largest target of a stage.
const MAX_LEVEL: f64 = 1e9;

/// Reads the scenarios, or the short form of one; none without either.
///
/// # Errors
/// One line.
pub(super) fn read_scenarios(reader: &mut OptionReader) -> Result<Vec<ScenarioOptions>, String> {
    let short = read_short(reader)?;
    let Some(scenarios) = reader.take("scenarios") else { return Ok(short.into_iter().collect()) };
    if let Some(short) = short {
        return Err(format!(
            "options has scenarios beside the short form of one ({}); leave one of them out",
            short.executor
        ));
    }
    let scenarios = scenarios.as_object().cloned().ok_or("options.scenarios is not an object")?;
    let made = scenarios.iter().map(|(name, value)| read_scenario(name, value)).collect::<Result<Vec<_>, _>>()?;
    let users: u64 = made.iter().map(|scenario| scenario.pace.users()).fold(0, u64::saturating_add);
    if users > MAX_USERS {
        return Err(format!("options.scenarios have {users} users; at most {MAX_USERS} are possible"));
    }
    Ok(made)
}

/// The short form of one scenario: `vus`, `duration`, `iterations`, `stages`.
fn read_short(reader: &mut OptionReader) -> Result<Option<ScenarioOptions>, String> {
    let vus = positive(reader, "vus")?;
    let duration = reader.duration("duration")?;
    let iterations = positive(reader, "iterations")?;
    let stages = reader.take("stages").filter(|stages| stages.as_array().is_none_or(|stages| !stages.is_empty()));
    let (executor, beginnings) = match (stages, iterations, duration) {
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
            return Err("options.stages cannot be used with duration or iterations; leave one of them out".to_owned());
        }
        (Some(stages), None, None) => {
            let stages = user_stages(vus.unwrap_or(1), &stages, "options.stages")?;
            ("ramping-vus", IterationPace::Users { stages, graceful_ramp_down: GRACE })
        }
        (None, Some(iterations), within) => {
            let within = within.unwrap_or(MAX_DURATION);
            ("shared-iterations", IterationPace::Shared { users: vus.unwrap_or(1).min(iterations), iterations, within })
        }
        (None, None, Some(duration)) => ("constant-vus", constant_users(vus.unwrap_or(1), duration)),
        (None, None, None) => match vus {
            Some(vus) if vus > 1 => return Err("options.vus needs a duration or iterations; add one".to_owned()),
            _ => return Ok(None),
        },
    };
    let pace = checked(ScenarioPace::new(beginnings, Nanos::ZERO, GRACE), "options")?;
    Ok(Some(ScenarioOptions {
        name: DEFAULT.to_owned(),
        exec: DEFAULT.to_owned(),
        environment: Vec::new(),
        tags: Vec::new(),
        executor,
        pace,
    }))
}

fn read_scenario(name: &str, value: &Value) -> Result<ScenarioOptions, String> {
    let place = format!("options.scenarios.{name}");
    let mut reader = OptionReader::new(value, &place)?;
    let executor =
        reader.text("executor")?.ok_or_else(|| format!("{place} has no executor; add e.g. 'constant-vus'"))?;
    let start = reader.duration("startTime")?.unwrap_or(Nanos::ZERO);
    let graceful_stop = reader.duration("gracefulStop")?.unwrap_or(GRACE);
    let exec = reader.text("exec")?.unwrap_or_else(|| DEFAULT.to_owned());
    let environment = reader.texts("env")?;
    let tags = reader.texts("tags")?;
    if reader.take("options").is_some() {
        return Err(format!("{place}.options is for k6/browser, which is not supported; leave it out"));
    }
    let (executor, beginnings) = match executor.as_str() {
        "shared-iterations" => {
            let users = positive(&mut reader, "vus")?.unwrap_or(1);
            let iterations = positive(&mut reader, "iterations")?.unwrap_or(1);
            let within = reader.duration("maxDuration")?.unwrap_or(MAX_DURATION);
            ("shared-iterations", IterationPace::Shared { users: users.min(iterations), iterations, within })
        }
        "per-vu-iterations" => {
            let users = positive(&mut reader, "vus")?.unwrap_or(1);
            let iterations = positive(&mut reader, "iterations")?.unwrap_or(1);
            let within = reader.duration("maxDuration")?.unwrap_or(MAX_DURATION);
            ("per-vu-iterations", IterationPace::PerUser { users, iterations, within })
        }
        "constant-vus" => {
            let users = positive(&mut reader, "vus")?.unwrap_or(1);
            ("constant-vus", constant_users(users, needed(&mut reader, "duration")?))
        }
        "ramping-vus" => {
            let start = reader.count("startVUs")?.unwrap_or(1);
            let graceful_ramp_down = reader.duration("gracefulRampDown")?.unwrap_or(GRACE);
            let stages = reader.take("stages").ok_or_else(|| format!("{place} has no stages; add them"))?;
            let stages = user_stages(start, &stages, &format!("{place}.stages"))?;
            ("ramping-vus", IterationPace::Users { stages, graceful_ramp_down })
        }
        "constant-arrival-rate" => {
            let per_s = rate(&mut reader, "rate")?.ok_or_else(|| format!("{place} has no rate; add one"))?;
            let length = needed(&mut reader, "duration")?;
            let users = arrival_users(&mut reader)?;
            let stages = vec![LoadStage { from_per_s: per_s, to_per_s: per_s, length }];
            ("constant-arrival-rate", arrivals(users, stages))
        }
        "ramping-arrival-rate" => {
            let unit = time_unit(&mut reader)?;
            let start = reader.number("startRate")?.unwrap_or(0.0);
            if !(0.0..=MAX_LEVEL).contains(&start) {
                return Err(format!("invalid {place}.startRate {start}; write a number from 0 to {MAX_LEVEL}"));
            }
            let start = start / unit;
            let users = arrival_users(&mut reader)?;
            let stages = reader.take("stages").ok_or_else(|| format!("{place} has no stages; add them"))?;
            let stages = read_stages(start, unit, &stages, &format!("{place}.stages"))?;
            ("ramping-arrival-rate", arrivals(users, stages))
        }
        "externally-controlled" => {
            return Err(format!("{place}: externally-controlled is not supported; change a load that runs by --web"));
        }
        other => {
            return Err(format!(
                "{place}: unknown executor '{other}'; write shared-iterations, per-vu-iterations, constant-vus, \
                 ramping-vus, constant-arrival-rate or ramping-arrival-rate"
            ));
        }
    };
    let pace = checked(ScenarioPace::new(beginnings, start, graceful_stop), reader.place())?;
    reader.finish()?;
    Ok(ScenarioOptions { name: name.to_owned(), exec, environment, tags, executor, pace })
}

/// Checks that a scenario has users and a length.
fn checked(pace: ScenarioPace, place: &str) -> Result<ScenarioPace, String> {
    if pace.users() == 0 {
        return Err(format!("{place} has no user; give at least one"));
    }
    if pace.users() > MAX_USERS {
        return Err(format!("{place} has {} users; at most {MAX_USERS} are possible", pace.users()));
    }
    if pace.end() == pace.start() {
        return Err(format!("{place} has no duration; give one"));
    }
    Ok(pace)
}

fn constant_users(users: u64, length: Nanos) -> IterationPace {
    let stage = LoadStage { from_per_s: users as f64, to_per_s: users as f64, length };
    IterationPace::Users { stages: UserStages::new(vec![stage]), graceful_ramp_down: GRACE }
}

fn arrivals(users: u64, stages: Vec<LoadStage>) -> IterationPace {
    IterationPace::Arrivals { users, schedule: Schedule::new(stages, Arrivals::Constant, 0), max_wait: MAX_WAIT }
}

fn user_stages(start: u64, stages: &Value, place: &str) -> Result<UserStages, String> {
    read_stages(start as f64, 1.0, stages, place).map(UserStages::new)
}

/// Stages from a level on, each of which changes it linearly; levels are per `unit` seconds.
fn read_stages(start: f64, unit: f64, stages: &Value, place: &str) -> Result<Vec<LoadStage>, String> {
    let all =
        stages.as_array().filter(|all| !all.is_empty()).ok_or_else(|| format!("{place} is not a list of stages"))?;
    let (mut level, mut made) = (start, Vec::new());
    for (index, stage) in all.iter().enumerate() {
        let mut reader = OptionReader::new(stage, &format!("{place}[{index}]"))?;
        let length = reader.duration("duration")?.ok_or_else(|| format!("{place}[{index}] has no duration"))?;
        let target = reader.number("target")?.ok_or_else(|| format!("{place}[{index}] has no target"))?;
        reader.finish()?;
        if !(0.0..=MAX_LEVEL).contains(&target) {
            return Err(format!("invalid {place}[{index}].target {target}; write a number from 0 to {MAX_LEVEL}"));
        }
        let to = target / unit;
        if length > Nanos::ZERO {
            made.push(LoadStage { from_per_s: level, to_per_s: to, length });
        }
        level = to;
    }
    if made.is_empty() {
        return Err(format!("{place} has no duration; give one"));
    }
    Ok(made)
}

fn positive(reader: &mut OptionReader, name: &str) -> Result<Option<u64>, String> {
    match reader.count(name)? {
        Some(0) => Err(format!("invalid {}.{name} 0; write 1 or more", reader.place())),
        count => Ok(count),
    }
}

fn needed(reader: &mut OptionReader, name: &str) -> Result<Nanos, String> {
    let given = reader.duration(name)?.filter(|time| *time > Nanos::ZERO);
    given.ok_or_else(|| format!("{} has no {name}; give one, e.g. '30s'", reader.place()))
}

/// Unit of rates, in seconds.
fn time_unit(reader: &mut OptionReader) -> Result<f64, String> {
    let unit = reader.duration("timeUnit")?.unwrap_or(Nanos::SECOND);
    if unit == Nanos::ZERO {
        return Err(format!("invalid {}.timeUnit 0; write e.g. '1s'", reader.place()));
    }
    Ok(unit.as_secs_f64())
}

/// Rate per second.
fn rate(reader: &mut OptionReader, name: &str) -> Result<Option<f64>, String> {
    let unit = time_unit(reader)?;
    match reader.number(name)? {
        Some(rate) if rate > 0.0 && rate <= MAX_LEVEL => Ok(Some(rate / unit)),
        Some(rate) => {
            Err(format!("invalid {}.{name} {rate}; write a number above 0, up to {MAX_LEVEL}", reader.place()))
        }
        None => Ok(None),
    }
}

fn arrival_users(reader: &mut OptionReader) -> Result<u64, String> {
    let place = reader.place().to_owned();
    let first =
        positive(reader, "preAllocatedVUs")?.ok_or_else(|| format!("{place} has no preAllocatedVUs; add them"))?;
    Ok(positive(reader, "maxVUs")?.unwrap_or(first).max(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const S: u64 = 1_000_000_000;

    #[allow(clippy::needless_pass_by_value, reason = "values are made by json!")]
    fn read(value: Value) -> Result<Vec<ScenarioOptions>, String> {
        read_scenarios(&mut OptionReader::new(&value, "options")?)
    }

    #[test]
    fn the_short_forms_are_executors() {
        for (options, executor, users, until_s) in [
            (json!({ "vus": 5, "duration": "10s" }), "constant-vus", 5, 40),
            (json!({ "duration": "10s" }), "constant-vus", 1, 40),
            (json!({ "vus": 5, "iterations": 3 }), "shared-iterations", 3, 630),
            (
                json!({ "stages": [{ "duration": "5s", "target": 8 }, { "duration": "5s", "target": 0 }] }),
                "ramping-vus",
                8,
                40,
            ),
        ] {
            let read = read(options.clone()).expect("valid");
            let [scenario] = &read[..] else { panic!("{options}") };
            assert_eq!((scenario.executor, scenario.pace.users()), (executor, users), "{options}");
            assert_eq!(scenario.pace.until(), Nanos(until_s * S), "{options}");
        }
        assert!(read(json!({})).is_ok_and(|scenarios| scenarios.is_empty()));
        assert!(read(json!({ "vus": 5 })).is_err_and(|why| why.contains("duration")));
    }

    #[test]
    fn scenarios_have_their_executors_times_and_functions() {
        let one = |value: Value| read(json!({ "scenarios": { "a": value } })).map(|mut all| all.remove(0));
        let scenario = one(json!({
            "executor": "constant-arrival-rate", "rate": 30, "timeUnit": "1m", "duration": "1m", "preAllocatedVUs": 2,
            "maxVUs": 9, "startTime": "5s", "gracefulStop": "0s", "exec": "login", "env": { "X": "1" }, "tags": { "t": "u" }
        }));
        let scenario = scenario.expect("valid");
        assert_eq!((scenario.exec.as_str(), scenario.pace.users()), ("login", 9));
        assert_eq!((scenario.pace.start(), scenario.pace.until()), (Nanos(5 * S), Nanos(65 * S)));
        assert_eq!(scenario.pace.iterations(), Some(30));
        let rejected = |value: Value| one(value).map(drop).expect_err("invalid");
        assert!(rejected(json!({ "executor": "constant-vus", "vus": 1 })).contains("duration"));
        assert!(rejected(json!({ "executor": "constant-vus", "duration": "1s", "rate": 1 })).contains("'rate'"));
        assert!(rejected(json!({ "executor": "x" })).contains("unknown executor 'x'"));
        let arrivals = |executor: &str, name: &str, level: f64| {
            rejected(json!({ "executor": executor, name: level, "duration": "1s", "preAllocatedVUs": 1,
                "stages": [{ "target": 1, "duration": "1s" }] }))
        };
        assert!(arrivals("constant-arrival-rate", "rate", 1e18).contains(".rate 1000000000000000000; write a number"));
        assert!(arrivals("ramping-arrival-rate", "startRate", -5.0).contains(".startRate -5; write a number from 0"));
        assert!(rejected(json!({ "executor": "externally-controlled" })).contains("--web"));
        assert!(rejected(json!({ "executor": "ramping-vus", "stages": [{ "target": 1 }] })).contains("stages[0]"));
    }
}
