//! Variables whose values have variables: their texts stand in their place.

use std::collections::HashMap;

use weir_hurl::{ExpressionSource, MultipartValue, Template, TemplatePart};

use crate::collection::Import;
use crate::request::{ImportedBody, ImportedRequest};
use crate::text;

/// Variables within variables that are followed.
const MAX_DEPTH: usize = 8;

/// Longest text that comes out.
const MAX_PARTS: usize = 1000;

/// Puts the texts of variables in their place, in all requests.
pub(crate) fn inline(import: &mut Import, formulas: &HashMap<String, Template>) {
    if formulas.is_empty() {
        return;
    }
    for step in import.scenarios.iter_mut().flat_map(|scenario| &mut scenario.steps) {
        for text in texts(&mut step.request) {
            for _ in 0..MAX_DEPTH {
                match replaced(text, formulas) {
                    Some(made) if made.parts.len() <= MAX_PARTS => *text = made,
                    _ => break,
                }
            }
        }
        // Only now is it known whether a URL begins with a scheme.
        if let Ok(url) = crate::address::absolute(&step.request.url) {
            step.request.url = url;
        }
    }
}

/// The text with the texts of variables; `None` if it has none.
fn replaced(text: &Template, formulas: &HashMap<String, Template>) -> Option<Template> {
    let formula = |part: &TemplatePart| match part {
        TemplatePart::Expression(expression) if expression.filters.is_empty() => match &expression.source {
            ExpressionSource::Variable(name) => formulas.get(name),
            ExpressionSource::Function(_) => None,
        },
        _ => None,
    };
    if !text.parts.iter().any(|part| formula(part).is_some()) {
        return None;
    }
    Some(text::from_parts(text.parts.iter().flat_map(|part| match formula(part) {
        Some(text) => text.parts.clone(),
        None => vec![part.clone()],
    })))
}

/// All texts of a request that may have variables.
fn texts(request: &mut ImportedRequest) -> Vec<&mut Template> {
    let mut texts = vec![&mut request.url];
    let fields = request.query.iter_mut().chain(&mut request.headers).chain(&mut request.cookies);
    texts.extend(fields.chain(&mut request.basic_auth).map(|field| &mut field.value));
    match &mut request.body {
        ImportedBody::Text { text, .. } => texts.push(text),
        ImportedBody::Form(fields) => texts.extend(fields.iter_mut().map(|field| &mut field.value)),
        ImportedBody::Multipart(fields) => texts.extend(fields.iter_mut().filter_map(|field| match &mut field.value {
            MultipartValue::Text(value) => Some(value),
            MultipartValue::File { .. } => None,
        })),
        ImportedBody::None | ImportedBody::Bytes(_) | ImportedBody::File(_) => {}
    }
    texts
}
