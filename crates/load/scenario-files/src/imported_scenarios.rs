//! Imports without files: `weir load -s shop.postman_collection.json`.

use std::path::Path;

use weir_import::{Import, ImportSettings, ImportedScenario, ScenarioRole, count_omissions, detect, to_hurl};
use weir_load::steps::{AS_HURL, DataSource, RowOrder, ScenarioFile, ScenarioSource, path_within};
use weir_machine::input_file;

use crate::data_rows::{columns, with_header};
use crate::import_input::ImportInput;

/// Scenarios of an imported file, and the load that it describes.
#[derive(Debug)]
pub struct ImportedScenarios {
    /// Scenarios with their variables.
    pub sources: Vec<ScenarioSource>,
    /// Flags of `weir load`.
    pub flags: Vec<String>,
    /// Sum of the users.
    pub users: Option<u64>,
    /// Omissions of the import, a line each.
    pub warnings: Vec<String>,
}

impl ImportedScenarios {
    /// The only scenario, to be played once.
    ///
    /// # Errors
    /// One line, if there are several.
    pub fn into_single(self, path: &Path) -> Result<ScenarioSource, String> {
        let count = self.sources.len();
        let path = path.display();
        match <[ScenarioSource; 1]>::try_from(self.sources) {
            Ok([source]) => Ok(ScenarioSource { users: None, weight: 1.0, ..source }),
            Err(_) => Err(format!("{path} has {count} scenarios; write them with weir import {path} -o FILE.hurl")),
        }
    }
}

/// Imports a file that is not a scenario; `None` if it is none of the known kinds. Files that it names are in its
/// folder, or in `file_root`.
///
/// # Errors
/// One line, if the file cannot be read or is not of its kind.
pub fn import_scenarios(path: &Path, file_root: Option<&Path>) -> Result<Option<ImportedScenarios>, String> {
    let is_scenario = path.extension().is_some_and(|extension| extension == "hurl");
    // A scenario that cannot be read has an error of its own.
    let Some(text) =
        input_file::read(path).ok().filter(|_| !is_scenario).and_then(|bytes| String::from_utf8(bytes).ok())
    else {
        return Ok(None);
    };
    let name = path.display().to_string();
    if detect(&name, &text).is_none() {
        return Ok(None);
    }
    let mut input = ImportInput::of_text(path, text);
    let mut import = input.import(&ImportSettings::default())?;
    import.read_columns(&mut |file, data| columns(&input.path_of(file, &data.file), data));
    import.map_files(&mut |file, name| input.path_of(file, name).is_file().then(|| name.to_owned()));
    let sources = sources(&import, path, file_root)?;
    let warnings = warnings(&import, &name);
    Ok(Some(ImportedScenarios { sources, flags: flags(&import), users: users(&import), warnings }))
}

fn sources(import: &Import, path: &Path, file_root: Option<&Path>) -> Result<Vec<ScenarioSource>, String> {
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let variables: Vec<(String, String)> =
        import.variables.iter().filter_map(|variable| Some((variable.name.clone(), variable.value.clone()?))).collect();
    let file = |scenario: &ImportedScenario| ScenarioFile {
        name: format!("{}{AS_HURL}", path.display()),
        text: to_hurl(scenario),
        folder: folder.clone(),
    };
    let of_role = |role| import.scenarios.iter().find(|scenario| scenario.role == role).map(file);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let active = |scenario: &&ImportedScenario| scenario.role == ScenarioRole::Users;
    let is_single = import.scenarios.iter().filter(active).count() == 1;
    let mut sources: Vec<ScenarioSource> = Vec::new();
    for (index, scenario) in import.scenarios.iter().filter(active).enumerate() {
        let ScenarioFile { name, text, folder } = file(scenario);
        let own = if scenario.name.is_empty() { format!("{}", index + 1) } else { scenario.name.clone() };
        let title = if is_single { stem.clone() } else { own };
        let is_taken = sources.iter().any(|other| other.title == title);
        let users = import.scenarios.iter().any(|scenario| scenario.load.users.is_some());
        let users = (users && !is_single).then(|| scenario.load.users.unwrap_or(1));
        sources.push(ScenarioSource {
            name,
            text,
            weight: users.map_or(1.0, |users| users as f64),
            users,
            variables: variables.clone(),
            think: scenario.load.think.clone(),
            data: data(scenario, file_root.unwrap_or(&folder))?,
            folder,
            setup: of_role(ScenarioRole::Setup),
            teardown: of_role(ScenarioRole::Teardown),
            continue_on_error: scenario.load.continue_on_error,
            keep_cookies: scenario.load.keep_cookies,
            title: if is_taken { format!("{title} {}", index + 1) } else { title },
            ..ScenarioSource::default()
        });
    }
    Ok(sources)
}

fn data(scenario: &ImportedScenario, folder: &Path) -> Result<Option<DataSource>, String> {
    let Some(data) = &scenario.load.data else { return Ok(None) };
    let order = data.order.parse::<RowOrder>().unwrap_or_default();
    let path = path_within(folder, Path::new(&data.file))
        .map_err(|why| format!("cannot read the data '{}': {why}", data.file))?;
    let mut source = DataSource::read(&path, order)?;
    if let Some(content) = with_header(data, &source.content)? {
        source.content = content;
        // Commas, whatever the file's own name says.
        source.name = format!("{}.csv", source.name);
    }
    Ok(Some(source))
}

fn users(import: &Import) -> Option<u64> {
    let users = import.scenarios.iter().filter(|scenario| scenario.role == ScenarioRole::Users);
    let has_users = users.clone().any(|scenario| scenario.load.users.is_some());
    has_users.then(|| users.map(|scenario| scenario.load.users.unwrap_or(1)).sum())
}

/// Flags of the load of a test plan, as its mix file has them.
fn flags(import: &Import) -> Vec<String> {
    let loads = || import.scenarios.iter().map(|scenario| &scenario.load);
    let mut flags = Vec::new();
    flags.extend(loads().filter_map(|load| load.ramp_up_s).max().map(|seconds| format!("--ramp-up={seconds}s")));
    match loads().filter_map(|load| load.duration_s).max() {
        Some(seconds) => flags.push(format!("--duration={seconds}s")),
        None => flags.extend(loads().filter_map(|load| load.loops).max().map(|loops| format!("--loops={loops}"))),
    }
    flags
}

fn warnings(import: &Import, name: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if !import.omissions.is_empty() {
        warnings.push(format!("{name}: left out: {}; see 'weir import {name}'", count_omissions(&import.omissions)));
    }
    warnings
}
