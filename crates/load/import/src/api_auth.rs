//! Authentication of requests, as Postman and Bruno describe it.

use std::collections::BTreeMap;

use weir_hurl::{OptionName, Template};

use crate::builder;
use crate::omission::OmissionKind;
use crate::placeholder::braces;
use crate::request::{ImportedStep, field};
use crate::session::ImportSession;
use crate::text;
use crate::tree::SourceNode;

/// Authentication with its attributes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApiAuth {
    /// Kind: `bearer`, `basic`, `apikey` ...
    pub(crate) kind: String,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) line: u32,
}

impl ApiAuth {
    /// Reads `{"type": "bearer", "bearer": [{"key": "token", "value": "..."}]}`.
    pub(crate) fn from_node(node: &SourceNode<'_>) -> Self {
        let kind = node.text_of("type").unwrap_or_default();
        let mut attributes = BTreeMap::new();
        if let Some(own) = node.get(&kind) {
            for item in own.items() {
                if let (Some(key), Some(value)) = (item.text_of("key"), item.text_of("value")) {
                    attributes.insert(key, value);
                }
            }
            // Version 2.0 has an object.
            attributes.extend(own.members().filter_map(|(key, value)| Some((key.into_owned(), value.scalar()?))));
        }
        Self { kind, attributes, line: node.line }
    }

    fn get(&self, names: &[&str]) -> String {
        names.iter().find_map(|name| self.attributes.get(*name)).cloned().unwrap_or_default()
    }

    /// Adds credentials to a request; what weir does not have is an omission.
    pub(crate) fn apply(&self, step: &mut ImportedStep, session: &mut ImportSession) {
        let value = |names: &[&str], fallback: &str, session: &mut ImportSession| {
            let text = self.get(names);
            match text.is_empty() {
                true => text::variable(&session.names.name(fallback)),
                false => braces(&text, self.line, session),
            }
        };
        match self.kind.as_str() {
            "noauth" | "none" | "inherit" | "" => {}
            "bearer" | "oauth2" => {
                let is_placed = self.get(&["addTokenTo"]) == "queryParams";
                let token = value(&["token", "accessToken"], "access_token", session);
                let prefix = self.get(&["headerPrefix", "prefix", "tokenType"]);
                let prefix = if prefix.trim().is_empty() { "Bearer".to_owned() } else { prefix.trim().to_owned() };
                let prefix = if prefix.eq_ignore_ascii_case("bearer") { "Bearer".to_owned() } else { prefix };
                if is_placed {
                    step.request.query.push(field(Template::text("access_token"), token));
                } else {
                    let header = text::concat([&Template::text(format!("{prefix} ")), &token]);
                    step.request.add_header("Authorization", header);
                }
                if self.kind == "oauth2" && self.get(&["accessToken"]).is_empty() {
                    let what = "OAuth 2.0: the token is the variable access_token";
                    builder::omit_at(step, self.line, OmissionKind::Authentication, what, session);
                }
            }
            "basic" | "digest" => {
                let user = value(&["username"], "username", session);
                let password = value(&["password"], "password", session);
                step.request.remove_header("Authorization");
                step.request.basic_auth = Some(field(user, password));
                if self.kind == "digest" {
                    // `user` with digest authentication is an option.
                    let user = step
                        .request
                        .basic_auth
                        .take()
                        .map(|auth| text::concat([&auth.name, &Template::text(":"), &auth.value]));
                    step.request.set_option(OptionName::User, weir_hurl::OptionValue::Text(user.unwrap_or_default()));
                    step.request.set_flag(OptionName::Digest);
                }
            }
            "apikey" => {
                let key = self.get(&["key"]);
                let key = if key.is_empty() { "X-API-Key".to_owned() } else { key };
                let value = credential(value(&["value"], "api_key", session), session);
                match self.get(&["in", "addTo"]).as_str() {
                    "query" | "queryParams" | "queryparams" => {
                        step.request.query.push(field(builder::encoded_name(&Template::text(key)), value));
                    }
                    "cookie" => step.request.cookies.push(field(Template::text(key), value)),
                    _ => {
                        let name = text::source(&braces(&key, self.line, session));
                        builder::add_header(step, &name, &value, session);
                    }
                }
            }
            other => {
                let what = format!("authentication of the kind {other}");
                builder::omit_at(step, self.line, OmissionKind::Authentication, &what, session);
            }
        }
    }
}

/// Variable in place of a fixed credential, which is a secret under any name of its header.
fn credential(value: Template, session: &mut ImportSession) -> Template {
    let Some(secret) = value.as_text().filter(|secret| !secret.is_empty()) else { return value };
    let known = session.credentials.get(secret).cloned();
    let name = known.unwrap_or_else(|| {
        let name = session.names.unique("api_key");
        session.import.define(&name, secret, true);
        session.credentials.insert(secret.to_owned(), name.clone());
        name
    });
    text::variable(&name)
}
