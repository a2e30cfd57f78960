//! Proof that steps can be played: each is written, parsed and compiled.

use std::collections::BTreeSet;

use weir_hurl::{ExpectedResponse, HurlEntry, Template};
use weir_scenario::plan::{ScenarioPlan, ScenarioSettings};

use crate::collection::Import;
use crate::omission::OmissionKind;
use crate::request::{ImportedRequest, ImportedStep};
use crate::text;
use crate::write::entry;

/// Most characters of a reason.
const MAX_REASON_CHARS: usize = 200;

/// Takes away captures and checks that a scenario cannot have, and disables requests that it cannot send.
pub(crate) fn verify(import: &mut Import) {
    for scenario in &mut import.scenarios {
        for step in scenario.steps.iter_mut().filter(|step| !step.is_disabled) {
            let Err(problem) = problem(step) else { continue };
            if let Some(response) = step.response.take() {
                let (kept, lost) = split(response);
                step.response = Some(kept);
                for (kind, what) in lost {
                    Import::omit(&mut import.omissions, step, kind, text::one_line(&what, MAX_REASON_CHARS));
                }
                if self::problem(step).is_ok() {
                    continue;
                }
            }
            step.is_disabled = true;
            let what = format!("{}: {problem}", step.request.line());
            let what = text::one_line(&what, MAX_REASON_CHARS);
            Import::omit(&mut import.omissions, step, OmissionKind::Request, what);
        }
    }
}

/// The captures and checks that a step can have, and the others with their reasons.
fn split(response: ExpectedResponse) -> (ExpectedResponse, Vec<(OmissionKind, String)>) {
    let mut lost = Vec::new();
    let mut kept = ExpectedResponse { captures: Vec::new(), asserts: Vec::new(), ..response.clone() };
    // Without the request, which may be large: nothing of a capture or a check depends on it.
    let alone = |response: ExpectedResponse| {
        let request = ImportedRequest {
            method: "GET".to_owned(),
            url: Template::text("http://h/"),
            ..ImportedRequest::default()
        };
        problem(&ImportedStep { response: Some(response), request, ..ImportedStep::default() })
    };
    for capture in response.captures {
        match alone(ExpectedResponse { captures: vec![capture.clone()], ..ExpectedResponse::default() }) {
            Ok(()) => kept.captures.push(capture),
            Err(problem) => lost.push((OmissionKind::Capture, format!("{capture}: {problem}"))),
        }
    }
    for assertion in response.asserts {
        match alone(ExpectedResponse { asserts: vec![assertion.clone()], ..ExpectedResponse::default() }) {
            Ok(()) => kept.asserts.push(assertion),
            Err(problem) => lost.push((OmissionKind::Check, format!("{assertion}: {problem}"))),
        }
    }
    (kept, lost)
}

/// Reason why a step cannot be played.
fn problem(step: &ImportedStep) -> Result<(), String> {
    let entry = HurlEntry { comments: Vec::new(), ..entry(step) };
    let printed = entry.to_string();
    let first = |errors: Vec<weir_hurl::ParseError>| {
        errors
            .into_iter()
            .next()
            .map(|error| format!("expected {}, found {}", error.expected, error.found))
            .unwrap_or_default()
    };
    let file = weir_hurl::parse(&printed).map_err(first)?;
    if file.entries.len() != 1 {
        return Err("its text is that of several requests".to_owned());
    }
    // Columns of data have another value each time, so that no text of a variable is judged here.
    let mut columns: BTreeSet<String> = step.request.texts().into_iter().flat_map(text::variables).collect();
    columns.extend(super::undefined::uses_of(step));
    let settings = ScenarioSettings { columns: columns.into_iter().collect(), ..ScenarioSettings::default() };
    let mut files = |_: &str| Ok(Vec::new());
    ScenarioPlan::compile(&file, &settings, &mut files).map(|_| ()).map_err(first)
}
