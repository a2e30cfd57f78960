//! Values of recorded responses that come again in later requests: they become captures, so that each user has its own.
//!
//! A value is taken if a machine has made it: long enough, of several kinds of characters, and not a word, a date or a
//! URL; if no request before the response has it, since then the client knew it already; and if it stands by itself in
//! the later request. Where it is from is tried in this order: a header of the response, a path of its JSON, a hidden
//! field of its HTML. Each capture has a comment with its reason.

use std::collections::{HashMap, HashSet};

use weir_hurl::{Capture, ExpectedResponse, ResponseQuery, Template, TextPosition};

use super::occurrence::replace;
use crate::builder::percent_decoded;
use crate::collection::{Import, ImportedScenario};
use crate::names::VariableNameTable;
use crate::omission::{Omission, OmissionKind};
use crate::recorded::RecordedValue;
use crate::request_words::words;
use crate::text;

/// Values of a scenario that become captures, at most.
const MAX_CAPTURES: usize = 500;

/// Makes captures in all scenarios.
pub(super) fn correlate(import: &mut Import, names: &mut VariableNameTable) {
    for scenario in &mut import.scenarios {
        import.omissions.extend(correlate_scenario(scenario, names));
    }
}

/// Makes captures in a scenario; returns that there are too many, if so.
fn correlate_scenario(scenario: &mut ImportedScenario, names: &mut VariableNameTable) -> Option<Omission> {
    // The requests that have a word, in order.
    let mut seen: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, step) in scenario.steps.iter().enumerate() {
        for word in words(&step.request) {
            let requests = seen.entry(word).or_default();
            if requests.last() != Some(&index) {
                requests.push(index);
            }
        }
    }
    let requests_of = |value: &str| seen.get(value).or_else(|| seen.get(percent_decoded(value)?.as_str()));
    let mut captures = 0;
    for index in 0..scenario.steps.len() {
        let step = &scenario.steps[index];
        if step.is_disabled {
            continue;
        }
        let comes_again =
            |value: &str| requests_of(value).and_then(|all| all.first()).is_some_and(|first| *first > index);
        let mut taken: HashSet<&str> = HashSet::new();
        let mut found: Vec<RecordedValue> = Vec::new();
        for value in &step.recorded {
            // Those after as many as there may be captures are not taken in any case.
            if found.len() <= MAX_CAPTURES && comes_again(&value.value) && taken.insert(&value.value) {
                found.push(value.clone());
            }
        }
        // A value that contains another one is replaced first.
        found.sort_by_key(|candidate| std::cmp::Reverse(candidate.value.len()));
        for candidate in found {
            if captures >= MAX_CAPTURES {
                let what = format!("captures after the first {MAX_CAPTURES}: more values come again");
                scenario.end_notes.push(format!("left out: {what}"));
                let (file, line) = (scenario.steps[index].file.clone(), scenario.steps[index].line);
                return Some(Omission { file, line, kind: OmissionKind::Capture, what });
            }
            let later = requests_of(&candidate.value).cloned().unwrap_or_default();
            captures += usize::from(capture(scenario, index, &later, candidate, names));
        }
    }
    None
}

/// Replaces a value in the requests that have it, and captures it at the step before them; whether any has had it.
fn capture(
    scenario: &mut ImportedScenario,
    index: usize,
    requests: &[usize],
    candidate: RecordedValue,
    names: &mut VariableNameTable,
) -> bool {
    let RecordedValue { value, name, query, filters, place } = candidate;
    let variable = names.unique(&name);
    let mut uses = Vec::new();
    for later in requests.iter().copied() {
        let Some(step) = scenario.steps.get_mut(later) else { continue };
        for used in replace(&mut step.request, &value, &variable) {
            uses.push(format!("{used} of request {}", later + 1));
        }
    }
    let Some(first) = uses.first() else { return false };
    let others = if uses.len() > 1 { format!(" and {} more", uses.len() - 1) } else { String::new() };
    let length = value.chars().count();
    let note = format!("{variable}: {length} characters of {place} that come again in the {first}{others}");
    let Some(step) = scenario.steps.get_mut(index) else { return false };
    step.notes.push(text::one_line(&note, 200));
    let query = ResponseQuery { kind: query, position: TextPosition::default() };
    let capture = Capture { name: Template::text(variable), query, filters, is_redacted: false };
    step.response.get_or_insert_with(ExpectedResponse::default).captures.push(capture);
    true
}
