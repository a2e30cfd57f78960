//! Hosts of recorded requests as variables, so that a scenario can be played against another host.

use std::collections::HashMap;

use weir_hurl::{ExpressionSource, Template, TemplatePart};

use crate::address::{self, BASE_URL};
use crate::collection::Import;
use crate::names::VariableNameTable;
use crate::request::is_named;
use crate::text;

/// Adds `http://` before URLs that begin with a variable whose value has no scheme, as most tools do.
pub(super) fn add_schemes(import: &mut Import) {
    let hosts = import.variables.iter().filter(|variable| {
        variable.value.as_deref().is_some_and(|value| !value.contains("://") && !value.trim().is_empty())
    });
    let hosts: Vec<String> = hosts.map(|variable| variable.name.clone()).collect();
    for step in import.scenarios.iter_mut().flat_map(|scenario| &mut scenario.steps) {
        let first = step.request.url.parts.first();
        let is_host = matches!(first, Some(TemplatePart::Expression(expression))
            if expression.filters.is_empty()
                && matches!(&expression.source, ExpressionSource::Variable(name) if hosts.contains(name)));
        let next = match step.request.url.parts.get(1) {
            Some(TemplatePart::Text(text)) => text.as_str(),
            _ => "",
        };
        // {{protocol}}://{{host}}
        if is_host && !next.starts_with("://") {
            step.request.url = text::concat([&Template::text("http://"), &step.request.url]);
        }
    }
}

/// Replaces the most frequent scheme and host by `{{base_url}}`, also in `Origin` and `Referer`; other hosts stay.
pub(super) fn name_origins(import: &mut Import, names: &mut VariableNameTable) {
    let mut counts: Vec<(String, usize)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let steps = || import.scenarios.iter().flat_map(|scenario| &scenario.steps);
    for origin in steps().filter(|step| !step.is_disabled).filter_map(|step| address::origin(&step.request.url)) {
        match places.get(origin).and_then(|place: &usize| counts.get_mut(*place)) {
            Some((_, count)) => *count += 1,
            None => {
                places.insert(origin.to_owned(), counts.len());
                counts.push((origin.to_owned(), 1));
            }
        }
    }
    // The first one of the most frequent.
    let Some((origin, _)) = counts.into_iter().rev().max_by_key(|(_, count)| *count) else { return };
    let name = names.name(BASE_URL);
    for step in import.scenarios.iter_mut().flat_map(|scenario| &mut scenario.steps) {
        if address::origin(&step.request.url) == Some(origin.as_str()) {
            let rest = text::start(&step.request.url)[origin.len()..].to_owned();
            let others = text::from_parts(step.request.url.parts.iter().skip(1).cloned());
            step.request.url = text::concat([&text::variable(&name), &Template::text(rest), &others]);
        }
        // A service may compare them with its own host.
        for header in &mut step.request.headers {
            let is_origin = is_named(header, "Origin") || is_named(header, "Referer");
            let start = text::start(&header.value).strip_prefix(&origin).map(str::to_owned);
            if let Some(rest) = start.filter(|rest| is_origin && (rest.is_empty() || rest.starts_with('/'))) {
                let others = text::from_parts(header.value.parts.iter().skip(1).cloned());
                header.value = text::concat([&text::variable(&name), &Template::text(rest), &others]);
            }
        }
    }
    import.define(&name, &origin, false);
}
