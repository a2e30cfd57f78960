//! Regular expressions of queries, filters and predicates.

use regex::Regex;
use weir_hurl::{ParseError, RegexPattern, Template, TextPosition};

use super::template::CompiledTemplate;
use super::variables::VariableNames;
use super::{Scope, mistake};

/// Regular expression: compiled once, or for each value of its variables.
#[derive(Clone, Debug)]
pub(super) enum CompiledRegex {
    Fixed(Box<Regex>),
    Dynamic(CompiledTemplate),
}

impl CompiledRegex {
    pub(super) fn compile(
        pattern: &RegexPattern,
        position: TextPosition,
        names: &mut VariableNames,
    ) -> Result<Self, ParseError> {
        match pattern {
            RegexPattern::Literal(literal) => Self::fixed(&literal.pattern, position),
            RegexPattern::Quoted(template) => Self::compile_template(template, names),
        }
    }

    pub(super) fn compile_template(template: &Template, names: &mut VariableNames) -> Result<Self, ParseError> {
        match template.as_text() {
            Some(text) => Self::fixed(text, template.position),
            None => CompiledTemplate::compile(template, names).map(Self::Dynamic),
        }
    }

    pub(super) fn fixed(pattern: &str, position: TextPosition) -> Result<Self, ParseError> {
        let regex = Regex::new(pattern);
        regex.map(|regex| Self::Fixed(Box::new(regex))).map_err(|error| {
            let reason = error.to_string();
            let last = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            mistake(position, "a valid regular expression", format!("an invalid one: {last}"))
        })
    }

    /// Calls with the compiled expression.
    pub(super) fn with<T>(&self, scope: &mut Scope<'_, '_>, call: impl FnOnce(&Regex) -> T) -> Result<T, String> {
        match self {
            Self::Fixed(regex) => Ok(call(regex)),
            Self::Dynamic(template) => {
                let pattern = template.evaluate(scope).map_err(|error| error.to_string())?;
                let regex = Regex::new(&pattern).map_err(|_| format!("'{pattern}' is not a regular expression"))?;
                Ok(call(&regex))
            }
        }
    }
}

/// First group of the first match.
pub(super) fn first_group(regex: &Regex, text: &str) -> Option<String> {
    regex.captures(text)?.get(1).map(|group| group.as_str().to_owned())
}
