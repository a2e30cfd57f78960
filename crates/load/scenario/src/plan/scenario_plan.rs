//! Files to plans.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use weir_hurl::{Assertion, HurlEntry, HurlFile, ParseError, TemplatePart, TextPosition};
use weir_request::url_text::UrlText;

use super::checks::StepChecks;
use super::credential_home::home_of;
use super::files::{FileContents, StepFiles};
use super::options::StepOptions;
use super::origin::{OriginTable, RequestOrigin};
use super::piece::PieceCompiler;
use super::request_compiler::RequestCompiler;
use super::scope::{SEQUENCE, VariableScope, assigned};
use super::secret_variables::SecretVariables;
use super::settings::ScenarioSettings;
use super::step::ScenarioStep;
use super::stream_end::StreamEndRule;
use crate::data::ThinkTime;
use crate::evaluate::{VariableNames, VariableSlot, VariableTable};

/// Steps of a scenario, compiled once and shared by all users.
#[derive(Clone, Debug)]
pub struct ScenarioPlan {
    /// Steps in order.
    pub steps: Vec<ScenarioStep>,
    /// Origins that the file names; each thread begins with a copy.
    pub origins: OriginTable,
    /// Origin to which the credentials of the settings belong; `None` if all hosts are in variables.
    pub home: Option<RequestOrigin>,
    /// Settings without effect, by their place.
    pub warnings: Vec<PlanWarning>,
    /// Time between the steps of a user.
    pub think: ThinkTime,
    /// Slots of the columns of data, in the order of the settings.
    pub columns: Vec<VariableSlot>,
    /// Whether a step uses one of these.
    pub uses_columns: bool,
    /// Names of all variables.
    pub(super) names: VariableNames,
    /// Slot of the number of the iteration, if a step uses it.
    pub(super) sequence: Option<VariableSlot>,
    /// Values at the start of an iteration.
    pub(super) variables: VariableTable,
    pub(super) continue_on_error: bool,
    pub(super) keep_cookies: bool,
}

/// Setting without effect in a load, or probable mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanWarning {
    /// Place in the file.
    pub position: TextPosition,
    /// Description for a person.
    pub text: String,
}

/// `12:5: verbose has no effect in a load`.
impl fmt::Display for PlanWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position, self.text)
    }
}

impl ScenarioPlan {
    /// Compiles a file.
    ///
    /// # Errors
    /// All mistakes, in the order of their places; [`weir_hurl::ErrorReport`] shows them.
    pub fn compile(
        file: &HurlFile,
        settings: &ScenarioSettings,
        files: &mut dyn FileContents,
    ) -> Result<Self, Vec<ParseError>> {
        let given = settings.variables.iter().map(|(name, _)| name.as_str());
        let findings = VariableScope::check(file, given.chain(settings.columns.iter().map(String::as_str)));
        let mut errors = findings.errors;
        let unused = findings.unused.into_iter().map(|(at, name)| (at, format!("nothing uses the capture {name}")));
        let mut warnings: Vec<(TextPosition, String)> = unused.collect();
        if file.entries.is_empty() {
            let position = TextPosition { line: 1, column: 1 };
            errors.push(super::problem(position, "a request, such as 'GET http://host/path'", "none", ""));
        }
        let mut names = VariableNames::default();
        let columns: Vec<VariableSlot> = settings.columns.iter().map(|name| names.slot(name)).collect();
        let constants = constants(file, settings);
        let mut origins = OriginTable::default();
        let mut files = StepFiles(files);
        let secrets = SecretVariables::of(file, settings);
        let mut steps = Vec::with_capacity(file.entries.len());
        for entry in &file.entries {
            let mut compiler = PieceCompiler { constants: &constants, names: &mut names, errors: &mut errors };
            let request = &entry.request;
            let options = StepOptions::compile(&request.options, settings.rules, &mut compiler, &mut warnings);
            let mut requests = RequestCompiler {
                settings,
                secrets: &secrets,
                compiler: &mut compiler,
                files: &mut files,
                origins: &mut origins,
            };
            let template = requests.compile(request, &options.request);
            let own_success = success(entry, compiler.errors);
            let success = own_success.as_ref().or(settings.success.as_ref());
            let checks = StepChecks::compile(
                entry.response.as_ref(),
                success,
                settings.codec.is_some(),
                &mut compiler,
                &mut files,
            );
            let stream_end = StreamEndRule::of(entry, compiler.errors);
            steps.push(ScenarioStep {
                name: name(entry),
                position: request.position,
                request: template,
                options,
                checks,
                stream_end,
            });
        }
        let home = home_of(settings, &steps).map_err(|error| errors.push(error)).ok().flatten();
        if !errors.is_empty() {
            errors.sort_by_key(|error| error.position);
            return Err(errors);
        }
        make_unique(&mut steps);
        warnings.sort();
        let mut variables = VariableTable::new(&names);
        for (name, value) in &settings.variables {
            if let Some(slot) = names.get(name) {
                variables.set(slot, value.clone());
            }
        }
        let is_given = settings.columns.iter().chain(settings.variables.iter().map(|(name, _)| name));
        let sequence = if is_given.into_iter().any(|name| name == SEQUENCE) { None } else { names.get(SEQUENCE) };
        Ok(Self {
            steps,
            origins,
            home,
            warnings: warnings.into_iter().map(|(position, text)| PlanWarning { position, text }).collect(),
            think: settings.think.clone(),
            uses_columns: settings.columns.iter().any(|name| findings.used.contains(name)),
            columns,
            names,
            sequence,
            variables,
            continue_on_error: settings.continue_on_error,
            keep_cookies: settings.keep_cookies,
        })
    }

    /// Whether logs hide the captures of this name.
    pub fn is_redacted_capture(&self, name: &str) -> bool {
        let mut captures = self.steps.iter().flat_map(|step| step.checks.captures());
        captures.any(|capture| capture.name() == name && capture.is_redacted())
    }
}

/// Text of the variables that nothing changes during a run.
fn constants(file: &HurlFile, settings: &ScenarioSettings) -> BTreeMap<String, String> {
    let mut changing: BTreeSet<String> = assigned(file);
    changing.extend(settings.columns.iter().cloned());
    let constant = settings.variables.iter().filter(|(name, _)| !changing.contains(name));
    constant.filter_map(|(name, value)| Some((name.clone(), value.template_text()?))).collect()
}

/// Name of a step: that of a comment `# @name login`, or the method and the path.
fn name(entry: &HurlEntry) -> String {
    if let Some(name) = entry.name() {
        return name.to_owned();
    }
    let url = entry.request.url.to_string();
    let after_scheme = UrlText::of(&url).scheme.map_or(url.as_str(), |scheme| &url[scheme.len() + "://".len()..]);
    let host_is_variable = matches!(entry.request.url.parts.first(), Some(TemplatePart::Expression(_)));
    let path = match after_scheme.find('/') {
        Some(start) => &after_scheme[start..],
        None if host_is_variable && entry.request.url.parts.len() > 1 => after_scheme,
        None => "/",
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    format!("{} {}", entry.request.method, if path.is_empty() { "/" } else { path })
}

/// Predicate of a comment `# @success status < 500`, which makes a response of the step a success.
fn success(entry: &HurlEntry, errors: &mut Vec<ParseError>) -> Option<Assertion> {
    let (comment, text) = entry.comments.iter().find_map(|it| Some((it, it.annotation("success")?)))?;
    Assertion::parse(text)
        .map_err(|error| {
            let before = comment.text.find(text).map_or(0, |at| comment.text[..at].chars().count());
            let offset = u32::try_from(before).unwrap_or(0) + error.position.column;
            let position = TextPosition { column: comment.position.column + offset, ..comment.position };
            errors.push(ParseError { position, ..error });
        })
        .ok()
}

/// Numbers steps of the same name: `GET /items (2)`.
fn make_unique(steps: &mut [ScenarioStep]) {
    let mut taken: BTreeSet<String> = steps.iter().map(|step| step.name.clone()).collect();
    let mut seen = BTreeSet::new();
    for step in steps {
        if seen.insert(step.name.clone()) {
            continue;
        }
        let numbered = (2_u32..).map(|number| format!("{} ({number})", step.name));
        if let Some(name) = numbered.into_iter().find(|name| !taken.contains(name)) {
            taken.insert(name.clone());
            seen.insert(name.clone());
            step.name = name;
        }
    }
}
