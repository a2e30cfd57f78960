//! Authentication of operations: credentials are variables.

use weir_hurl::Template;

use super::description::ApiDescription;
use crate::builder;
use crate::names::snake_case;
use crate::omission::OmissionKind;
use crate::request::{ImportedStep, field};
use crate::session::ImportSession;
use crate::text;
use crate::tree::SourceNode;

/// Adds the credentials of the first alternative that an operation has.
pub(super) fn apply(
    description: &ApiDescription<'_>,
    operation: &SourceNode<'_>,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) {
    let Some(security) = operation.get("security").or_else(|| description.get("security")) else { return };
    // An empty alternative means that none is needed.
    let Some(first) = security.items().iter().find(|alternative| alternative.members().next().is_some()) else {
        return;
    };
    let schemes = match description.is_swagger() {
        true => description.get("securityDefinitions"),
        false => description.get("components").and_then(|components| components.get("securitySchemes")),
    };
    for (name, requirement) in first.members() {
        match schemes.and_then(|schemes| schemes.get(&name)) {
            Some(scheme) => scheme_of(&name, description.resolve(scheme), step, session),
            None => {
                let what = format!("the security scheme {name}, which the file does not describe");
                builder::omit_at(step, requirement.line, OmissionKind::Authentication, &what, session);
            }
        }
    }
}

fn scheme_of(name: &str, scheme: &SourceNode<'_>, step: &mut ImportedStep, session: &mut ImportSession) {
    let kind = scheme.text_of("type").unwrap_or_default();
    let credential = |session: &mut ImportSession| text::variable(&session.names.name(&snake_case(name)));
    match kind.as_str() {
        "apiKey" => {
            let key = scheme.text_of("name").unwrap_or_else(|| name.to_owned());
            let value = credential(session);
            match scheme.text_of("in").as_deref() {
                Some("query") => step.request.query.push(field(builder::encoded_name(&Template::text(key)), value)),
                Some("cookie") => step.request.cookies.push(field(Template::text(key), value)),
                _ => builder::add_header(step, &key, &value, session),
            }
        }
        "basic" => basic(step, session),
        "http" => match scheme.text_of("scheme").unwrap_or_default().to_ascii_lowercase().as_str() {
            "basic" => basic(step, session),
            "bearer" => bearer(&credential(session), step),
            other => {
                let what = format!("authentication by HTTP {other}");
                builder::omit_at(step, scheme.line, OmissionKind::Authentication, &what, session);
            }
        },
        "oauth2" | "openIdConnect" => bearer(&credential(session), step),
        other => {
            let what = format!("authentication of the kind {other}");
            builder::omit_at(step, scheme.line, OmissionKind::Authentication, &what, session);
        }
    }
}

fn bearer(token: &Template, step: &mut ImportedStep) {
    step.request.add_header("Authorization", text::concat([&Template::text("Bearer "), token]));
}

fn basic(step: &mut ImportedStep, session: &mut ImportSession) {
    let user = text::variable(&session.names.name("username"));
    let password = text::variable(&session.names.name("password"));
    step.request.basic_auth = Some(field(user, password));
}
