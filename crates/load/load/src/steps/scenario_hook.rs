//! Setup and teardown of a scenario: files that are played once, before and after the load.

use weir_hurl::{ErrorReport, HurlFile, ParseError};
use weir_scenario::plan::{RequestOrigin, ScenarioPlan, ScenarioSettings, assigned_variables, merge_missing_values};

use super::file_root::FileRoot;
use super::{ScenarioFile, ScenarioSource};
use crate::plan::PlanError;

/// Facts about setup and teardown, known before they are played.
#[derive(Debug, Default)]
pub(super) struct HookFacts {
    /// Variables that the setup will set.
    pub(super) variables: Vec<String>,
    /// Origins to which credentials of the command line belong in them.
    pub(super) homes: Vec<RequestOrigin>,
}

/// Facts of the setup of a scenario, as long as it has not been played, and of its teardown. Their mistakes are found
/// before anything is sent; `settings` are those of the scenario without data.
pub(super) fn check(source: &ScenarioSource, settings: &ScenarioSettings) -> Result<HookFacts, PlanError> {
    let mut facts = HookFacts::default();
    if let Some(setup) = &source.setup {
        let file = parse(setup)?;
        facts.homes.extend(compile(setup, &file, settings, &FileRoot::of_hook(setup, source))?);
        facts.variables.extend(assigned_variables(&file));
    }
    if let Some(teardown) = &source.teardown {
        let settings = ScenarioSettings { columns: facts.variables.clone(), ..settings.clone() };
        let root = FileRoot::of_hook(teardown, source);
        facts.homes.extend(compile(teardown, &parse(teardown)?, &settings, &root)?);
    }
    Ok(facts)
}

fn parse(file: &ScenarioFile) -> Result<HurlFile, PlanError> {
    weir_hurl::parse(&file.text).map_err(|errors| mistakes(file, &errors))
}

fn compile(
    file: &ScenarioFile,
    parsed: &HurlFile,
    settings: &ScenarioSettings,
    root: &FileRoot,
) -> Result<Option<RequestOrigin>, PlanError> {
    let mut files = |name: &str| root.read(name);
    let plan = ScenarioPlan::compile(parsed, settings, &mut files);
    plan.map(|plan| plan.home).map_err(|errors| mistakes(file, &errors))
}

fn mistakes(file: &ScenarioFile, errors: &[ParseError]) -> PlanError {
    PlanError::Scenario(ErrorReport::new(&file.name, &file.text, &merge_missing_values(errors)).to_string())
}
