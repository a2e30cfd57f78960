//! Compiles the scenarios of a load, one after the other.

use std::sync::Arc;

use weir_base::Nanos;
use weir_hurl::{ErrorReport, ParseError};
use weir_measure::run_steps::StepFacts;
use weir_request::secret_mask::SecretMask;
use weir_scenario::plan::{
    BodyCodec, RequestOrigin, ScenarioPlan, ScenarioStep, call_status_mistake, merge_missing_values,
};

use super::compiled_scenario::CompiledScenario;
use super::file_root::FileRoot;
use super::mix_settings::scenario_settings;
use super::scenario_data::{ParsedData, ScenarioData};
use super::single_request::{LITERAL_BRACES, mistake};
use super::{OriginResolver, ScenarioSource, first_iteration, scenario_hook};
use crate::grpc::JsonCodec;
use crate::options::Options;
use crate::plan::PlanError;

/// Scenarios that have been compiled so far, and what all of them have in common.
#[derive(Debug)]
pub(super) struct MixCompiler<'a> {
    options: &'a Options,
    keep_alive: bool,
    seed: u64,
    resolver: &'a OriginResolver,
    /// Secrets that results leave out.
    pub(super) mask: SecretMask,
    parsed: ParsedData<'a>,
    first_step: u32,
    pub(super) scenarios: Vec<CompiledScenario>,
    /// Settings without effect, for a person.
    pub(super) warnings: Vec<String>,
    /// Descriptions of scenarios that are invalid.
    pub(super) mistakes: Vec<String>,
    /// Origins to which credentials of the command line may belong.
    pub(super) homes: Vec<RequestOrigin>,
}

impl<'a> MixCompiler<'a> {
    pub(super) fn new(options: &'a Options, keep_alive: bool, seed: u64, resolver: &'a OriginResolver) -> Self {
        Self {
            options,
            keep_alive,
            seed,
            resolver,
            mask: options.secret_mask(),
            parsed: ParsedData::default(),
            first_step: 0,
            scenarios: Vec::new(),
            warnings: Vec::new(),
            mistakes: Vec::new(),
            homes: Vec::new(),
        }
    }

    /// Compiles the next scenario. One that is invalid is described in `mistakes`.
    pub(super) fn add(&mut self, source: &'a ScenarioSource) -> Result<(), PlanError> {
        let mut settings = scenario_settings(source, self.options, self.keep_alive)?;
        let target = source.made_for.as_ref().or(self.options.grpc.target());
        let codec = target.map(|target| target.call().map(|call| Arc::new(JsonCodec(call))));
        let codec = codec.transpose().map_err(PlanError::Grpc)?;
        settings.codec = codec.clone().map(|codec| codec as Arc<dyn BodyCodec>);
        let success_mistake = settings.success.as_ref().filter(|_| codec.is_some()).and_then(call_status_mistake);
        if let (Some(error), Some(text)) = (success_mistake, &self.options.success) {
            return Err(PlanError::Scenario(mistake(&format!("--success '{text}'"), &error, "")));
        }
        let hooks = scenario_hook::check(source, &settings)?;
        self.homes.extend(hooks.homes);
        let data = source.data.as_ref().map(|data| self.parsed.parse(data)).transpose()?;
        settings.columns = data.iter().flat_map(|data| data.columns().iter().cloned()).chain(hooks.variables).collect();
        let root = FileRoot::of(source);
        let mut files = |name: &str| root.read(name);
        let compiled = weir_hurl::parse(&source.text)
            .and_then(|file| ScenarioPlan::compile(&file, &settings, &mut files))
            .map_err(|errors| described(source, &errors));
        let plan = match compiled {
            Ok(plan) => plan,
            Err(description) => {
                self.mistakes.push(description);
                return Ok(());
            }
        };
        self.homes.extend(plan.home.clone());
        if codec.is_some() {
            first_iteration::check_first_call(source, &plan, data.as_ref(), self.seed)?;
        }
        self.warnings.extend(plan.warnings.iter().map(|warning| format!("{}:{warning}", source.name)));
        if let Some(data) = data.as_ref().filter(|_| !plan.uses_columns) {
            self.warnings.push(unused_columns(data));
        }
        let addresses = plan.origins.iter().map(|origin| self.resolver.resolve(origin)).collect::<Result<_, _>>()?;
        let name = unique_name(&self.mask.text(source.scenario_name()), &self.scenarios);
        let prefix = if self.options.scenarios.len() > 1 { format!("{name}: ") } else { String::new() };
        let steps: Vec<StepFacts> = plan.steps.iter().map(|step| facts(&name, &prefix, step, &self.mask)).collect();
        let count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
        self.scenarios.push(CompiledScenario {
            name,
            plan,
            first_step: self.first_step,
            addresses,
            data,
            pacing: source.pacing.map(Nanos::from),
            codec,
            has_setup: source.setup.is_some(),
            steps,
        });
        self.first_step += count;
        Ok(())
    }
}

/// Warning about data that no step uses.
fn unused_columns(data: &ScenarioData) -> String {
    let columns = data.columns().join(", ");
    let example = data.columns().first().map_or("name", String::as_str);
    format!("nothing uses the columns of {}: {columns}; write e.g. {{{{{example}}}}}", data.name)
}

fn facts(scenario: &str, prefix: &str, step: &ScenarioStep, mask: &SecretMask) -> StepFacts {
    let checks = (0..step.checks.len()).filter_map(|check| step.checks.text(u32::try_from(check).ok()?));
    StepFacts {
        name: mask.shown(&format!("{prefix}{}", step.name)),
        scenario: scenario.to_owned(),
        checks: checks.map(|check| mask.shown(check)).collect(),
    }
}

/// Name that no earlier scenario has: `shop (2)` of a second `shop`.
fn unique_name(stem: &str, earlier: &[CompiledScenario]) -> String {
    let is_taken = |name: &str| earlier.iter().any(|scenario| scenario.name == name);
    if !is_taken(stem) {
        return stem.to_owned();
    }
    let numbered = (2_usize..).map(|number| format!("{stem} ({number})"));
    numbered.into_iter().find(|name| !is_taken(name)).unwrap_or_else(|| stem.to_owned())
}

/// Mistakes of a scenario with their places: lines of a file, or options.
fn described(source: &ScenarioSource, errors: &[ParseError]) -> String {
    if source.line_origins.is_empty() {
        return ErrorReport::new(&source.name, &source.text, &merge_missing_values(errors)).to_string();
    }
    let of_option = |error: &ParseError| {
        let line = usize::try_from(error.position.line).unwrap_or_default().saturating_sub(1);
        let origin = source.line_origins.get(line).map_or("", String::as_str);
        let is_template = error.expected.contains("variable") && !origin.starts_with("--check");
        mistake(origin, error, if is_template { LITERAL_BRACES } else { "" })
    };
    errors.iter().map(of_option).collect::<Vec<_>>().join("\n")
}
