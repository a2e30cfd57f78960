//! Setup and teardown of a scenario: files that are played once, before and after the load.

use weir_hurl::{ErrorReport, HurlFile, ParseError};
use weir_scenario::plan::{ScenarioPlan, ScenarioSettings, assigned_variables};

use super::file_root::FileRoot;
use super::{ScenarioFile, ScenarioSource};
use crate::plan::PlanError;

/// Variables that the setup of a scenario will set, as long as it has not been played. Mistakes of setup and teardown
/// are found before anything is sent; `settings` are those of the scenario without data.
pub(super) fn check(source: &ScenarioSource, settings: &ScenarioSettings) -> Result<Vec<String>, PlanError> {
    let mut names = Vec::new();
    if let Some(setup) = &source.setup {
        let file = parse(setup)?;
        compile(setup, &file, settings, &FileRoot::of_hook(setup, source))?;
        names.extend(assigned_variables(&file));
    }
    if let Some(teardown) = &source.teardown {
        let settings = ScenarioSettings { columns: names.clone(), ..settings.clone() };
        compile(teardown, &parse(teardown)?, &settings, &FileRoot::of_hook(teardown, source))?;
    }
    Ok(names)
}

fn parse(file: &ScenarioFile) -> Result<HurlFile, PlanError> {
    weir_hurl::parse(&file.text).map_err(|errors| mistakes(file, &errors))
}

fn compile(
    file: &ScenarioFile,
    parsed: &HurlFile,
    settings: &ScenarioSettings,
    root: &FileRoot,
) -> Result<(), PlanError> {
    let mut files = |name: &str| root.read(name);
    let plan = ScenarioPlan::compile(parsed, settings, &mut files);
    plan.map(drop).map_err(|errors| mistakes(file, &errors))
}

fn mistakes(file: &ScenarioFile, errors: &[ParseError]) -> PlanError {
    PlanError::Scenario(ErrorReport::new(&file.name, &file.text, errors).to_string())
}
