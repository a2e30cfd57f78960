//! Elements that apply to the samplers below them in a tree: defaults, headers, timers, extractors, assertions.

use std::collections::HashSet;

use weir_hurl::Template;

use super::assertion;
use super::element::PlanElement;
use super::extractor;
use super::function::template;
use super::timer::PlanTimer;
use crate::builder;
use crate::omission::OmissionKind;
use crate::request::{ImportedStep, field};
use crate::session::ImportSession;
use crate::text;

/// Omission of a step that has too much of outer elements.
const INHERITS_TOO_MUCH: &str = "what outer elements give each request: too much";

/// Elements that hold for the samplers of a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanScope<'a> {
    /// Nearest defaults last.
    pub(super) defaults: Vec<PlanElement<'a>>,
    /// Nearest header manager last.
    pub(super) headers: Vec<PlanElement<'a>>,
    pub(super) timers: Vec<PlanTimer>,
    /// Extractors and assertions.
    pub(super) checks: Vec<PlanElement<'a>>,
    pub(super) authorizations: Vec<PlanElement<'a>>,
}

impl<'a> PlanScope<'a> {
    /// Adds an element that holds for its tree; whether it is one.
    pub(super) fn add(&mut self, element: PlanElement<'a>, session: &mut ImportSession) -> bool {
        match element.class() {
            "ConfigTestElement" if element.gui_class().contains("HttpDefaults") => self.defaults.push(element),
            "HeaderManager" => self.headers.push(element),
            "AuthManager" => self.authorizations.push(element),
            class if extractor::is_extractor(class) || assertion::is_assertion(class) => self.checks.push(element),
            class if class.ends_with("Timer") => match PlanTimer::read(element) {
                Some(timer) => {
                    if let Some(what) = timer.note() {
                        session.omit(element.line(), OmissionKind::Element, what);
                    }
                    self.timers.push(timer);
                }
                None => session.omit(element.line(), OmissionKind::Element, format!("the {class} {}", element.name())),
            },
            _ => return false,
        }
        true
    }

    /// Value of a property of a sampler, or of the nearest defaults.
    pub(super) fn property(&self, sampler: PlanElement<'a>, name: &str) -> &'a str {
        let own = sampler.text(name);
        let inherited = || self.defaults.iter().rev().map(|defaults| defaults.text(name)).find(|text| !text.is_empty());
        if own.trim().is_empty() { inherited().unwrap_or_default() } else { own }
    }

    /// Adds headers, credentials, waits, captures and checks to a step.
    pub(super) fn apply(&self, step: &mut ImportedStep, session: &mut ImportSession) {
        if !session.may_inherit() {
            return builder::omit(step, OmissionKind::Header, INHERITS_TOO_MUCH, session);
        }
        let own = step.request.headers.iter().map(|header| text::source(&header.name).to_ascii_lowercase());
        let mut names: HashSet<String> = own.collect();
        for header in self.headers.iter().rev().flat_map(|manager| manager.list("HeaderManager.headers")) {
            if !session.may_inherit() {
                return builder::omit(step, OmissionKind::Header, INHERITS_TOO_MUCH, session);
            }
            let name = header.text("Header.name").trim();
            if !name.is_empty() && names.insert(name.to_ascii_lowercase()) {
                let value = template(header.text("Header.value"), header.line(), session);
                builder::add_header(step, name, &value, session);
            }
        }
        self.authorize(step, session);
        builder::take_basic_auth(step);
        PlanTimer::apply(&self.timers, step, session);
        for check in &self.checks {
            if !session.may_inherit() {
                return builder::omit(step, OmissionKind::Check, INHERITS_TOO_MUCH, session);
            }
            let known = extractor::apply(*check, step, session) || assertion::apply(*check, step, session);
            if !known {
                let what = format!("the {} {}", check.class(), check.name());
                let kind = if check.class().contains("ssert") { OmissionKind::Check } else { OmissionKind::Capture };
                builder::omit_at(step, check.line(), kind, &what, session);
            }
        }
    }

    /// Adds the credentials of the nearest manager whose URL the request has.
    fn authorize(&self, step: &mut ImportedStep, session: &mut ImportSession) {
        let url = text::source(&step.request.url);
        let entries = self.authorizations.iter().rev().flat_map(|manager| manager.list("AuthManager.auth_list"));
        for entry in entries {
            if !session.may_inherit() {
                return;
            }
            let prefix = text::source(&template(entry.text("Authorization.url"), entry.line(), session));
            if !url.starts_with(prefix.trim_end_matches('/')) || step.request.basic_auth.is_some() {
                continue;
            }
            let mechanism = entry.text("Authorization.mechanism");
            if mechanism.contains("KERBEROS") || mechanism.contains("NTLM") {
                let what = format!("authentication by {mechanism}");
                builder::omit_at(step, entry.line(), OmissionKind::Authentication, &what, session);
                continue;
            }
            let mut value = |name: &str| template(entry.text(name), entry.line(), session);
            let (user, password): (Template, Template) =
                (value("Authorization.username"), value("Authorization.password"));
            if !text::is_empty(&user) {
                step.request.basic_auth = Some(field(user, password));
            }
        }
    }
}
