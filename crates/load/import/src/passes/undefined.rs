//! Variables that a scenario uses and that have no value.

use std::collections::BTreeSet;

use weir_hurl::{OptionName, OptionValue, PredicateKind, PredicateValue, QueryKind, ScalarValue};

use crate::collection::{Import, ImportedScenario, ImportedVariable};
use crate::request::ImportedStep;
use crate::text;

/// Adds the variables that steps use before anything sets them, without a value; drops variables that nothing uses.
pub(crate) fn find_undefined(import: &mut Import) {
    let mut used = BTreeSet::new();
    let mut needed = Vec::new();
    for scenario in &import.scenarios {
        let columns = scenario.load.data.iter().flat_map(|data| data.columns.iter().cloned());
        let mut set: BTreeSet<String> = columns.collect();
        for name in uses(scenario, &mut set) {
            if used.insert(name.clone()) {
                needed.push(name);
            }
        }
    }
    import.variables.retain(|variable| used.contains(&variable.name));
    let known: BTreeSet<String> = import.variables.iter().map(|variable| variable.name.clone()).collect();
    for name in needed {
        if !known.contains(&name) {
            import.places.insert(name.clone(), import.variables.len());
            import.variables.push(ImportedVariable { name, value: None, is_secret: false });
        }
    }
}

/// Names that steps use and that nothing before has set.
fn uses(scenario: &ImportedScenario, set: &mut BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for step in scenario.steps.iter().filter(|step| !step.is_disabled) {
        for option in &step.request.options {
            if let (OptionName::Variable, OptionValue::Variable(variable)) = (option.name, &option.value) {
                set.insert(variable.name.clone());
            }
        }
        let in_request = step.request.texts().into_iter().flat_map(text::variables).chain(options(step));
        found.extend(in_request.filter(|name| !set.contains(name)));
        let captured = step.response.iter().flat_map(|response| &response.captures);
        set.extend(captured.filter_map(|capture| capture.name.as_text().map(str::to_owned)));
        found.extend(checks(step).into_iter().filter(|name| !set.contains(name)));
    }
    found.retain(|name| name != "seq");
    found
}

/// Names of the variables of a step besides its request.
pub(super) fn uses_of(step: &ImportedStep) -> Vec<String> {
    options(step).into_iter().chain(checks(step)).collect()
}

/// Names of the variables of options.
fn options(step: &ImportedStep) -> Vec<String> {
    let texts = step.request.options.iter().filter_map(|option| match &option.value {
        OptionValue::Text(text) => Some(text),
        _ => None,
    });
    texts.flat_map(text::variables).collect()
}

/// Names of the variables of captures and checks.
fn checks(step: &ImportedStep) -> Vec<String> {
    let Some(response) = &step.response else { return Vec::new() };
    let fields = response.headers.iter().flat_map(|header| [&header.name, &header.value]);
    let mut names: Vec<String> = fields.flat_map(text::variables).collect();
    let queries = response.captures.iter().map(|capture| &capture.query);
    for query in queries.chain(response.asserts.iter().map(|assert| &assert.query)) {
        if let QueryKind::Text(_, template) = &query.kind {
            names.extend(text::variables(template));
        }
    }
    for assert in &response.asserts {
        if let PredicateKind::Compare(_, PredicateValue::Scalar(ScalarValue::Text(template))) = &assert.predicate.kind {
            names.extend(text::variables(template));
        }
    }
    names
}
