//! Tests: examples, naive parsers, any cut.

mod examples;
mod llm;
mod oracle;
mod properties;
