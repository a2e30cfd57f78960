//! Spans of OpenTelemetry with the attributes of generative AI: lines of OTLP in JSON, as a collector's file exporter
//! writes them.

use std::borrow::Cow;

use serde::Deserialize;
use weir_base::Nanos;

use super::json_number::{NameHash, TimeNumber};
use super::trace_line_error::{TraceLineError, parsed};
use super::trace_record::{TracePrompt, TraceRecord, TraceStart, TraceTokens};

/// Names of the numbers of tokens, the current ones first.
const INPUT_TOKENS: [&str; 2] = ["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"];
const OUTPUT_TOKENS: [&str; 2] = ["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"];
/// Operations that are calls of a model. Spans of agents and workflows have the sums of the calls within them.
const CALLS: [&str; 4] = ["chat", "generate_content", "text_completion", "completion"];

#[derive(Debug, Deserialize)]
struct OtlpLine<'l> {
    #[serde(borrow, rename = "resourceSpans", alias = "resource_spans", default)]
    resources: Vec<ResourceMembers<'l>>,
}

#[derive(Debug, Deserialize)]
struct ResourceMembers<'l> {
    #[serde(borrow, rename = "scopeSpans", alias = "scope_spans", default)]
    scopes: Vec<ScopeMembers<'l>>,
}

#[derive(Debug, Deserialize)]
struct ScopeMembers<'l> {
    #[serde(borrow, default)]
    spans: Vec<ModelSpan<'l>>,
}

#[derive(Debug, Deserialize)]
struct ModelSpan<'l> {
    #[serde(borrow, rename = "traceId", alias = "trace_id")]
    trace: Option<Cow<'l, str>>,
    #[serde(rename = "startTimeUnixNano", alias = "start_time_unix_nano")]
    start: Option<TimeNumber>,
    #[serde(rename = "endTimeUnixNano", alias = "end_time_unix_nano")]
    end: Option<TimeNumber>,
    #[serde(borrow, default)]
    attributes: Vec<TraceAttribute<'l>>,
}

#[derive(Debug, Deserialize)]
struct TraceAttribute<'l> {
    #[serde(borrow)]
    key: Cow<'l, str>,
    #[serde(borrow)]
    value: Option<TraceValue<'l>>,
}

#[derive(Debug, Deserialize)]
struct TraceValue<'l> {
    #[serde(rename = "intValue", alias = "int_value")]
    int: Option<TimeNumber>,
    #[serde(rename = "doubleValue", alias = "double_value")]
    double: Option<f64>,
    #[serde(borrow, rename = "stringValue", alias = "string_value")]
    string: Option<Cow<'l, str>>,
}

impl ModelSpan<'_> {
    fn value(&self, names: &[&str]) -> Option<&TraceValue<'_>> {
        names.iter().find_map(|name| {
            let attribute = self.attributes.iter().find(|attribute| attribute.key == *name)?;
            attribute.value.as_ref()
        })
    }

    fn tokens(&self, names: &[&str]) -> Option<u64> {
        let value = self.value(names)?;
        let whole = value.int.and_then(|number| number.nanos(1)).and_then(|number| u64::try_from(number).ok());
        // A conversion of a float saturates, and NaN is 0.
        whole.or_else(|| value.double.map(|number| number as u64))
    }

    /// Whether the span is a call of a model.
    fn is_call(&self) -> bool {
        let operation = self.value(&["gen_ai.operation.name"]).and_then(|value| value.string.as_deref());
        operation.is_none_or(|name| CALLS.contains(&name))
    }

    fn record(&self) -> Result<TraceRecord, TraceLineError> {
        let (Some(input), true) = (self.tokens(&INPUT_TOKENS), self.is_call()) else {
            return Err(TraceLineError::NoRequest);
        };
        let output = self.tokens(&OUTPUT_TOKENS).unwrap_or(0);
        let at = self.start.and_then(|at| at.nanos(1));
        let at = at.ok_or_else(|| TraceLineError::Broken("a span without startTimeUnixNano".to_owned()))?;
        let conversation = self.value(&["gen_ai.conversation.id"]).and_then(|value| value.string.as_deref());
        let session = conversation.or(self.trace.as_deref()).map(|name| NameHash::of(name).0);
        let end = self.end.and_then(|end| end.nanos(1)).unwrap_or(at);
        let record = TraceRecord::new(TraceStart::At(at), session, TraceTokens { input, output }, TracePrompt::own())?;
        Ok(TraceRecord { took: Nanos(u64::try_from(end.saturating_sub(at)).unwrap_or(0)), ..record })
    }
}

/// Appends the requests of the spans of a line.
pub(super) fn push_records(line: &str, records: &mut Vec<TraceRecord>) -> Result<(), TraceLineError> {
    let line: OtlpLine<'_> = parsed(line)?;
    let (before, mut error) = (records.len(), None);
    for span in line.resources.iter().flat_map(|resource| &resource.scopes).flat_map(|scope| &scope.spans) {
        match span.record() {
            Ok(record) => records.push(record),
            Err(TraceLineError::NoRequest) => {}
            Err(why) => error = Some(why),
        }
    }
    match error {
        Some(why) => Err(why),
        None if records.len() == before => Err(TraceLineError::NoRequest),
        None => Ok(()),
    }
}
