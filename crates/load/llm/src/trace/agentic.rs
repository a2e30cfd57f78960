//! Agentic Mooncake of Dynamo, version 2: a header, and requests with what each waits for.

use serde::Deserialize;
use weir_base::Nanos;

use super::json_number::{NameHash, TimeNumber};
use super::mooncake::{MS_NS, blocks};
use super::trace_line_error::{TraceLineError, parsed};
use super::trace_record::{TraceDependency, TraceRecord, TraceStart, TraceTokens, TurnTrigger};

/// Name of the schema.
pub(super) const SCHEMA: &str = "dynamo.agentic_mooncake";
/// Version that is read.
const VERSION: u64 = 2;

#[derive(Debug, Deserialize)]
struct AgenticHeader {
    schema: String,
    version: u64,
    block_size: u64,
}

#[derive(Debug, Deserialize)]
struct AgenticLine {
    request_id: NameHash,
    play_id: NameHash,
    #[serde(alias = "input_tokens")]
    input_length: Option<u64>,
    #[serde(alias = "output_tokens")]
    output_length: Option<u64>,
    hash_ids: Option<Vec<NameHash>>,
    not_before_ms: TimeNumber,
    #[serde(default)]
    dependencies: Vec<DependencyMembers>,
}

#[derive(Debug, Deserialize)]
struct DependencyMembers {
    request_id: NameHash,
    trigger: String,
    delay_ms: TimeNumber,
}

/// Tokens of a block that a header names.
///
/// # Errors
/// In prose: no header of this schema, or another version.
pub(super) fn block_tokens(header: &str) -> Result<u64, String> {
    let header: AgenticHeader =
        serde_json::from_str(header).map_err(|_| format!("no header of {SCHEMA} with its version and block_size"))?;
    if header.schema != SCHEMA || header.version != VERSION {
        return Err(format!("{} version {}, and not {SCHEMA} version {VERSION}", header.schema, header.version));
    }
    Ok(header.block_size.max(1))
}

/// Request of a line: times in milliseconds.
pub(super) fn record(line: &str, block_tokens: u64) -> Result<TraceRecord, TraceLineError> {
    let line: AgenticLine = parsed(line)?;
    let range = || TraceLineError::Broken("a time that is out of range".to_owned());
    let at = line.not_before_ms.nanos(MS_NS).ok_or_else(range)?;
    let after = line.dependencies.into_iter().map(|of| {
        let trigger = match of.trigger.as_str() {
            "dispatch" => TurnTrigger::Start,
            "completion" => TurnTrigger::End,
            other => return Err(TraceLineError::Broken(format!("unknown trigger '{}'", other.escape_debug()))),
        };
        let delay = of.delay_ms.nanos(MS_NS).and_then(|ns| u64::try_from(ns).ok()).ok_or_else(range)?;
        Ok(TraceDependency { request: of.request_id.0, trigger, delay: Nanos(delay) })
    });
    let after = after.collect::<Result<Box<[TraceDependency]>, TraceLineError>>()?;
    // A request without tokens is still one that others wait for: it has one of each.
    let at_least_one = |tokens: Option<u64>| tokens.unwrap_or(0).max(1);
    let tokens = TraceTokens { input: at_least_one(line.input_length), output: at_least_one(line.output_length) };
    let record =
        TraceRecord::new(TraceStart::At(at), Some(line.play_id.0), tokens, blocks(line.hash_ids, block_tokens))?;
    Ok(TraceRecord { id: Some(line.request_id.0), after, ..record })
}
