//! Batch files of OpenAI and Anthropic: their lines as jobs, and results in the form in which the provider returns them,
//! so that code which reads a provider's batch reads these.
//!
//! - `line`: lines of requests as jobs; `base_url`: the base URL of an API, and the path of a line
//! - `openai`, `anthropic`: result lines; `ending`: how a job ended, in the words that both have
//! - `content_check`: responses that are not what the form holds

mod anthropic;
mod base_url;
mod content_check;
mod ending;
mod line;
mod openai;
#[cfg(test)]
mod tests;

use weir_send::{FinishedJob, JobDefaults};

pub(super) use self::content_check::BatchCheck;
pub(super) use self::line::BatchLines;

/// Version of the API, which its libraries send as well.
const ANTHROPIC_VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// Form of the lines of jobs and results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultsForm {
    /// weir's own (docs/schema/send.schema.json).
    #[default]
    Weir,
    /// OpenAI's Batch API: an output file, and an error file.
    OpenAiBatch,
    /// Anthropic's Message Batches: one file of results.
    AnthropicBatch,
}

impl ResultsForm {
    /// Value of `--results`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weir => "weir",
            Self::OpenAiBatch => "openai-batch",
            Self::AnthropicBatch => "anthropic-batch",
        }
    }

    /// Whether jobs that were not delivered go to a file of their own.
    pub(super) const fn has_error_file(self) -> bool {
        matches!(self, Self::OpenAiBatch)
    }

    /// Adds the header that the API needs and the lines do not have.
    pub(super) fn add_default_header(self, defaults: &mut JobDefaults) {
        let has = |name: &str| defaults.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        if self == Self::AnthropicBatch && !has(ANTHROPIC_VERSION.0) {
            defaults.headers.push((ANTHROPIC_VERSION.0.to_owned(), ANTHROPIC_VERSION.1.to_owned()));
        }
    }
}

/// Writes the result line of a job in a provider's form; returns whether it is one of the error file.
pub(super) fn write_line(form: ResultsForm, ended: &FinishedJob, to: &mut Vec<u8>) -> bool {
    match form {
        ResultsForm::AnthropicBatch => {
            anthropic::write_line(ended, to);
            false
        }
        ResultsForm::Weir | ResultsForm::OpenAiBatch => openai::write_line(ended, to),
    }
}
