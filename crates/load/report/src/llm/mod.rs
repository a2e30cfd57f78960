//! Reports of runs to language models.
//!
//! - `text`: weir's own; `vllm`: the table of `vllm bench serve`, field by field
//! - [`LlmSweep`]: several runs at different loads

mod sweep;
mod text;
mod vllm;

use clap::ValueEnum;

pub use self::sweep::{LlmSweep, LlmSweepPoint};
use weir_measure::Run;

/// Format of a report of a run to a language model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LlmReportFormat {
    /// weir's own report
    #[default]
    Text,
    /// whole run as one JSON object
    Json,
    /// report of vllm bench serve
    Vllm,
}

/// Report of a run with a final newline. Only [`LlmReportFormat::Text`] has colours, if `color`.
pub fn render(run: &Run, format: LlmReportFormat, color: bool) -> String {
    match format {
        LlmReportFormat::Text => text::render(run, color),
        LlmReportFormat::Json => run.to_json(),
        LlmReportFormat::Vllm => vllm::render(run),
    }
}

#[cfg(test)]
mod tests;
