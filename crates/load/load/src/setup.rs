//! Setup and teardown of a load: scenarios that are played once before it, and once after it.

use std::sync::mpsc;

use weir_hurl::HurlFile;
use weir_scenario::plan::assigned_variables;
use weir_scenario::value::Value;

use super::steps::{ScenarioFile, ScenarioSource, StepTrace};
use super::{LoadError, LoadPlan, Options, run};

/// Observer of a setup, called about ten times a second; `false` ends it.
pub type SetupCallback<'a> = dyn FnMut() -> bool + 'a;

/// Variables with their values as JSON texts.
type CapturedValues = Vec<(String, String)>;

impl Options {
    /// Options that play `scenarios` once: one user, one iteration.
    pub fn single_iteration(&self, scenarios: Vec<ScenarioSource>) -> Self {
        Self {
            scenarios,
            connections: None,
            requests: Some(1),
            duration: None,
            users: None,
            ramp_up: None,
            loops: None,
            rate: None,
            stages: Vec::new(),
            user_stages: Vec::new(),
            warmup: None,
            threads: Some(1),
            spin: false,
            ..self.clone()
        }
    }
}

/// Plays the setups of the scenarios, each file once, and returns options for the load: what setups captured are
/// variables of all users.
///
/// # Errors
/// A setup that fails, with its step and the reason; nothing of the load was sent.
pub fn set_up(options: &Options, go_on: &mut SetupCallback<'_>) -> Result<Options, LoadError> {
    let mut ready = options.clone();
    let mut played: Vec<(ScenarioSource, CapturedValues)> = Vec::new();
    for source in ready.scenarios.iter_mut().chain([&mut ready.request_scenario]) {
        let Some(file) = source.setup.take() else { continue };
        let setup = ScenarioSource { variables: source.variables.clone(), ..file.clone().into() };
        source.captured = match played.iter().find(|(other, _)| *other == setup) {
            Some((_, captured)) => captured.clone(),
            None => {
                let captured = play("setup", &file, setup.clone(), options, go_on)?;
                played.push((setup, captured.clone()));
                captured
            }
        };
    }
    Ok(ready)
}

/// Plays the teardowns of the scenarios, each file once; all are played, even if one fails.
///
/// # Errors
/// The first teardown that fails, with its step and the reason.
pub fn tear_down(options: &Options, go_on: &mut SetupCallback<'_>) -> Result<(), LoadError> {
    let mut played: Vec<ScenarioSource> = Vec::new();
    let mut result = Ok(());
    for source in options.scenarios.iter().chain([&options.request_scenario]) {
        let Some(teardown) = &source.teardown else { continue };
        let (variables, captured) = (source.variables.clone(), source.captured.clone());
        let teardown_source = ScenarioSource { variables, captured, ..teardown.clone().into() };
        if played.contains(&teardown_source) {
            continue;
        }
        let ended = play("teardown", teardown, teardown_source.clone(), options, go_on);
        result = result.and(ended.map(drop));
        played.push(teardown_source);
    }
    result
}

/// Plays a file once; returns what it captured, as JSON texts.
fn play(
    what: &str,
    file: &ScenarioFile,
    source: ScenarioSource,
    options: &Options,
    go_on: &mut SetupCallback<'_>,
) -> Result<CapturedValues, LoadError> {
    let failed = |why: String| LoadError::Setup(format!("the {what} '{}' failed: {why}", file.name));
    let parsed = weir_hurl::parse(&file.text).map_err(|_| failed("it is invalid".to_owned()))?;
    // Options of the load's requests are not those of a setup's, and the URL of a single request is not a base URL.
    let url = if options.scenarios.is_empty() { String::new() } else { options.url.clone() };
    let options = Options {
        url,
        request_scenario: ScenarioSource::default(),
        checks: Vec::new(),
        success: None,
        no_template: false,
        method: None,
        bodies: Vec::new(),
        weights: Vec::new(),
        pipeline: None,
        ..options.single_iteration(vec![source])
    };
    let plan = LoadPlan::new(&options).map_err(|error| failed(error.to_string()))?;
    let (trace, steps) = mpsc::channel::<StepTrace>();
    let plan = LoadPlan { trace: Some(trace), ..plan };
    let ended = run(&plan, &[], &mut |_| go_on(), None).map_err(|error| match error {
        LoadError::Interrupted => LoadError::SetupInterrupted,
        other => failed(other.to_string()),
    })?;
    drop(plan);
    if ended.interrupted {
        return Err(LoadError::SetupInterrupted);
    }
    let steps: Vec<StepTrace> = steps.iter().collect();
    if ended.iterations.as_ref().is_some_and(|iterations| iterations.failed == 0 && iterations.ok > 0) {
        return Ok(steps.last().map_or_else(Vec::new, |last| captured(&parsed, last)));
    }
    let unsent = ended.steps.iter().find(|step| step.unsent > 0);
    let why = match (unsent, steps.iter().rev().find(|step| step.verdict == "failed")) {
        (Some(step), _) => {
            let reason = step.samples.first().map_or("", |sample| sample.reason.as_str());
            format!("step '{}' was not sent: {reason}", step.name)
        }
        (None, Some(step)) => format!("step '{}': {}", step.step, reasons(step)),
        (None, None) => "no step was executed".to_owned(),
    };
    Err(failed(why))
}

/// Why a step has failed.
fn reasons(step: &StepTrace) -> String {
    let checks = step.checks.iter().filter_map(|check| {
        let failure = check.failure.as_ref()?;
        Some(format!("{}: {failure}", check.text))
    });
    let failures = step.failures.iter().cloned();
    let transfer = step.transfer_failure.filter(|_| step.failures.is_empty()).map(|kind| kind.name().to_owned());
    checks.chain(failures).chain(transfer).collect::<Vec<_>>().join("; ")
}

/// Variables that steps of the file have set. Bytes have no JSON text, and are left out.
fn captured(file: &HurlFile, last: &StepTrace) -> CapturedValues {
    let set = assigned_variables(file);
    let ours = last.variables.iter().filter(|(name, value)| set.contains(name) && !matches!(value, Value::Bytes(_)));
    ours.map(|(name, value)| (name.clone(), value.json())).collect()
}
