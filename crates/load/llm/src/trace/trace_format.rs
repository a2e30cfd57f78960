//! Formats of traces, told from their first line.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::json_text::{is_object, members};

/// First line of a composition of clients.
const CLIENT_TABLE: &str = "[[client]]";

/// Format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TraceFormat {
    /// Mooncake's lines of JSON, also those with sessions, as Dynamo and AIPerf write them.
    Mooncake,
    /// Requests of agents with what each waits for, `dynamo.agentic_mooncake`.
    Agentic,
    /// Alibaba's lines of JSON, with times in seconds and blocks of 16 tokens.
    Bailian,
    /// Dynamo's records of requests, `dynamo.request.trace.v1`.
    Dynamo,
    /// Spans of OpenTelemetry with the attributes of generative AI, as lines of OTLP in JSON.
    Otel,
    /// Conversations of ShareGPT with a time each, as lines of JSON.
    ShareGpt,
    /// BurstGPT's table.
    BurstGpt,
    /// Azure's tables of 2023 and 2024.
    Azure,
    /// No trace, but clients whose sessions are made up: tables of TOML.
    Clients,
}

impl TraceFormat {
    /// All formats.
    pub const ALL: [Self; 9] = [
        Self::Mooncake,
        Self::Agentic,
        Self::Bailian,
        Self::Dynamo,
        Self::Otel,
        Self::ShareGpt,
        Self::BurstGpt,
        Self::Azure,
        Self::Clients,
    ];

    /// Name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mooncake => "mooncake",
            Self::Agentic => "agentic",
            Self::Bailian => "bailian",
            Self::Dynamo => "dynamo",
            Self::Otel => "otel",
            Self::ShareGpt => "sharegpt",
            Self::BurstGpt => "burstgpt",
            Self::Azure => "azure",
            Self::Clients => "clients",
        }
    }

    /// Whether its first line is about the others: a heading of a table, or a header.
    pub fn has_header(self) -> bool {
        self.is_table() || self == Self::Agentic
    }

    /// Whether its lines are rows of a table with a heading.
    pub fn is_table(self) -> bool {
        matches!(self, Self::BurstGpt | Self::Azure)
    }

    /// Fields that tell the format, all of which a line or a heading has.
    pub(super) fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Mooncake => &["timestamp", "input_length", "output_length"],
            Self::Agentic => &["schema", "version", "block_size"],
            Self::Bailian => &["chat_id", "timestamp", "input_length", "output_length"],
            Self::Dynamo => &["schema", "event_type", "request"],
            Self::Otel => &["resourceSpans"],
            Self::ShareGpt => &["conversations", "timestamp"],
            Self::BurstGpt => &["Timestamp", "Request tokens", "Response tokens"],
            Self::Azure => &["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
            Self::Clients => &[CLIENT_TABLE],
        }
    }

    /// Whether a composition of clients begins with this line.
    pub(crate) fn is_client_table(line: &str) -> bool {
        let line: String = line.trim_start_matches('\u{feff}').chars().filter(|one| !one.is_whitespace()).collect();
        line.starts_with(CLIENT_TABLE)
    }

    /// Format of a trace that begins with this line.
    ///
    /// # Errors
    /// One line: no known format, with the fields that were found.
    pub fn detect(line: &str) -> Result<Self, String> {
        let line = line.trim_start_matches('\u{feff}').trim();
        if Self::is_client_table(line) {
            return Err("clients in a pipe, whose format has to be given".to_owned());
        }
        if line.starts_with('[') {
            return Err("a trace has one record per line, and this begins with a list; write lines of JSON, e.g. by \
                        jq -c '.[]'"
                .to_owned());
        }
        if line == "{" {
            return Err(
                "a trace has one record per line, and this begins with an object over several; write lines of JSON, \
                        e.g. by jq -c ."
                    .to_owned(),
            );
        }
        let is_json = is_object(line.as_bytes());
        let found = if is_json { member_names(line) } else { column_names(line) };
        let has = |field: &str| found.iter().any(|name| name == field);
        let has_any = |fields: &[&str]| fields.iter().any(|field| has(field));
        let format = if is_json {
            let is_timed = has_any(&["timestamp", "created_time", "delay", "delay_ms"]);
            if has("chat_id") && has("timestamp") {
                Some(Self::Bailian)
            } else if has("schema") && has("block_size") {
                Some(Self::Agentic)
            } else if has("schema") && has_any(&["event_type", "event"]) {
                Some(Self::Dynamo)
            } else if has_any(&["resourceSpans", "resource_spans"]) {
                Some(Self::Otel)
            } else if has("conversations") && has_any(&super::share_gpt::TIMES) {
                Some(Self::ShareGpt)
            } else if is_timed && has_any(&["input_length", "input_tokens", "text_input"]) {
                Some(Self::Mooncake)
            } else {
                None
            }
        } else {
            [Self::BurstGpt, Self::Azure].into_iter().find(|format| {
                let names = format.fields().iter();
                names.into_iter().all(|name| found.iter().any(|found| found.eq_ignore_ascii_case(name)))
            })
        };
        format.ok_or_else(|| format!("unknown format of a trace; {}", missing(&found, &Self::ALL)))
    }
}

/// Fields that were found, and those that formats have.
pub(super) fn missing(found: &[String], formats: &[TraceFormat]) -> String {
    const MAX_NAMED: usize = 12;
    let named = found.iter().take(MAX_NAMED).map(|name| shortened(name)).collect::<Vec<_>>().join(", ");
    let dots = if found.len() > MAX_NAMED { ", ..." } else { "" };
    let found = if found.is_empty() { "no fields were found".to_owned() } else { format!("found {named}{dots}") };
    let expected = formats.iter().map(|format| format!("{} ({})", format.name(), format.fields().join(", ")));
    format!("{found}; expected {}", expected.collect::<Vec<_>>().join(", "))
}

/// Printable name of a field, cut off where it is long.
fn shortened(name: &str) -> String {
    const MAX_CHARS: usize = 40;
    let printable = |one: char| if weir_base::terminal_text::is_steering(one) { ' ' } else { one };
    name.chars().take(MAX_CHARS).map(printable).collect()
}

/// Names of the members of an object; none of what is not JSON.
pub(super) fn member_names(line: &str) -> Vec<String> {
    if serde_json::from_str::<&serde_json::value::RawValue>(line).is_err() {
        return Vec::new();
    }
    let name = |(name, _): &(&[u8], &[u8])| String::from_utf8_lossy(name).into_owned();
    members(line.as_bytes()).iter().map(name).collect()
}

/// Names of the columns of a heading.
pub(super) fn column_names(line: &str) -> Vec<String> {
    super::table_fields::fields(line).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

impl FromStr for TraceFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown format '{name}'; choose {names}")
        })
    }
}
