//! Variables whose values are secrets: a header with one of them is a credential under any name.

use std::collections::BTreeSet;

use weir_hurl::{ExpressionSource, HurlFile, Template, TemplatePart};
use weir_request::secret_names::is_secret_name;

use super::settings::ScenarioSettings;

/// Length from which a given value is looked for in text: shorter ones are words of other texts, too.
const MIN_VALUE_BYTES: usize = 8;

/// Variables of a file whose values are secrets: by their names, by `redact` of a capture, or since the settings say
/// so.
#[derive(Clone, Debug, Default)]
pub(super) struct SecretVariables {
    names: BTreeSet<String>,
    /// Values that are given before the run.
    values: Vec<String>,
}

impl SecretVariables {
    pub(super) fn of(file: &HurlFile, settings: &ScenarioSettings) -> Self {
        let captures = file.entries.iter().filter_map(|entry| entry.response.as_ref());
        let captures = captures.flat_map(|response| &response.captures).filter(|capture| capture.is_redacted);
        let captured = captures.filter_map(|capture| capture.name.as_text()).map(str::to_owned);
        let mut secrets =
            Self { names: settings.secret_variables.iter().cloned().chain(captured).collect(), values: Vec::new() };
        let given = settings.variables.iter().filter(|(name, _)| secrets.has(name));
        let given = given.filter_map(|(_, value)| value.template_text());
        secrets.values = given.filter(|value| value.len() >= MIN_VALUE_BYTES).collect();
        secrets
    }

    /// Whether a header is a credential, by its name in lower case or its value; lines about the body are not, and a
    /// name that is known only when it is rendered may be any.
    pub(super) fn make_credential(&self, name: Option<&str>, value: &Template) -> bool {
        let Some(name) = name else { return true };
        let is_of_body = name.starts_with("content-") || name == "transfer-encoding";
        is_secret_name(name) || (!is_of_body && self.are_in(value))
    }

    /// Whether a template has such a value.
    fn are_in(&self, template: &Template) -> bool {
        template.parts.iter().any(|part| match part {
            TemplatePart::Text(text) => self.values.iter().any(|value| text.contains(value)),
            TemplatePart::Expression(expression) => match &expression.source {
                ExpressionSource::Variable(name) => self.has(name),
                ExpressionSource::Function(_) => false,
            },
        })
    }

    fn has(&self, name: &str) -> bool {
        is_secret_name(name) || self.names.contains(name)
    }
}
