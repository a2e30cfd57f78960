//! Values of captures, checks and templates, computed from responses and variables. Regular expressions, JSONPaths and
//! fixed values are compiled once.

mod capture;
mod charset;
mod check;
mod dates;
mod filter;
mod filter_values;
mod functions;
mod predicate;
mod query;
mod regexes;
mod response_needs;
mod template;
mod value_tests;
mod variables;
mod view;
mod xpath;

#[cfg(test)]
mod tests;

pub use self::capture::{CaptureFailure, CompiledCapture};
pub use self::check::{CheckFailure, CompiledCheck};
pub use self::response_needs::ResponseNeeds;
pub use self::template::{CompiledTemplate, RenderContext, TemplateError};
pub use self::variables::{VariableNames, VariableSlot, VariableTable};
pub use self::view::ResponseView;

use weir_hurl::{ParseError, TextPosition};

/// Variables and context that an evaluation reads besides the response.
struct Scope<'a, 'c> {
    variables: &'a VariableTable,
    context: &'a mut RenderContext<'c>,
}

/// Mistake of a query, filter or predicate.
fn mistake(position: TextPosition, expected: &str, found: impl Into<String>) -> ParseError {
    ParseError { position, expected: expected.to_owned(), found: found.into(), hint: String::new() }
}

/// Something of hurl that scenarios do not have.
fn unsupported(position: TextPosition, name: &str, instead: &str) -> ParseError {
    ParseError {
        position,
        expected: "what a scenario can evaluate".to_owned(),
        found: format!("'{name}', which it cannot"),
        hint: instead.to_owned(),
    }
}
