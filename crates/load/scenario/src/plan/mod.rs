//! Plans: files compiled to steps, and the flow of a user through them.
//!
//! - [`ScenarioPlan`] is compiled once from a [`weir_hurl::HurlFile`] and [`ScenarioSettings`]; it finds all mistakes of
//!   the file before anything is sent
//! - [`ScenarioUser`] is one user: [`FlowAction`]s come out of `begin`, `response`, `failed` and `woken`
//! - [`StepFindings`] are what a response meant for its step: checks, captures, failures
//!
//! A request that never changes is bytes that are copied. One with variables is `piece`s: fixed bytes and templates,
//! each with the `encoding` of its place, so that no value leaves its place: a line break in a header or a URL is a
//! failure of the step. Options with a fixed value are [`StepRules`]; the others are evaluated before each execution.

mod body;
mod body_codec;
mod call_status;
mod checks;
mod credential_home;
mod credential_lines;
mod digest;
mod encoding;
mod files;
mod findings;
mod flow;
mod given_length;
mod header_line;
mod missing_values;
mod multipart;
mod options;
mod origin;
mod piece;
mod place;
mod redirect;
mod render_error;
mod request_bytes;
mod request_compiler;
mod request_template;
mod rules;
mod scenario_plan;
mod scope;
mod secret_variables;
mod sent_url;
mod settings;
mod source_url;
mod step;
mod stream_end;
mod support;
mod url_template;
mod user;

#[cfg(test)]
mod tests;

pub use self::body_codec::BodyCodec;
pub use self::call_status::call_status_mistake;
pub use self::checks::StepChecks;
pub use self::digest::DigestRequest;
pub use self::encoding::EncodingError;
pub use self::files::FileContents;
pub use self::findings::{FlowFailure, StepFindings, StepVerdict};
pub use self::flow::{FlowAction, FlowContext};
pub use self::missing_values::merge_missing_values;
pub use self::origin::{OriginId, OriginTable, RequestOrigin};
pub use self::render_error::RenderError;
pub use self::request_bytes::RequestBytes;
pub use self::request_template::RenderScratch;
pub use self::rules::StepRules;
pub use self::scenario_plan::{PlanWarning, ScenarioPlan};
pub use self::scope::assigned as assigned_variables;
pub use self::settings::ScenarioSettings;
pub use self::step::ScenarioStep;
pub use self::stream_end::StreamEndRule;
pub use self::user::ScenarioUser;

use weir_hurl::{ParseError, TextPosition};

/// Mistake of a plan, shown as the parser's are.
fn problem(
    position: TextPosition,
    expected: impl Into<String>,
    found: impl Into<String>,
    hint: impl Into<String>,
) -> ParseError {
    ParseError { position, expected: expected.into(), found: found.into(), hint: hint.into() }
}
