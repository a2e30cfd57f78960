//! Lines of Mooncake, with the sessions of Dynamo and AIPerf, and those of Bailian.

use serde::Deserialize;
use weir_base::Nanos;

use super::json_number::{NameHash, TimeNumber};
use super::trace_line_error::{TraceLineError, needed, parsed};
use super::trace_record::{TraceDependency, TracePrompt, TraceRecord, TraceStart, TraceTokens, TurnTrigger};
use crate::json_text::push_escaped;

/// Tokens of a block of Mooncake's traces.
pub(super) const BLOCK_TOKENS: u64 = 512;
/// Tokens of a block of Bailian's traces.
pub(super) const BAILIAN_TOKENS: u64 = 16;
/// Nanoseconds of a millisecond and of a second.
pub(super) const MS_NS: i64 = 1_000_000;
const S_NS: i64 = 1_000_000_000;

/// Members of a line.
#[derive(Debug, Deserialize)]
struct MooncakeLine {
    #[serde(alias = "created_time")]
    timestamp: Option<TimeNumber>,
    #[serde(alias = "delay_ms")]
    delay: Option<TimeNumber>,
    #[serde(alias = "input_tokens")]
    input_length: Option<u64>,
    #[serde(alias = "output_tokens")]
    output_length: Option<u64>,
    hash_ids: Option<Vec<NameHash>>,
    session_id: Option<NameHash>,
    request_id: Option<NameHash>,
    /// Requests whose responses it waits for, in the first version of Dynamo's traces of agents.
    wait_for: Option<Vec<NameHash>>,
    /// Time that a tool takes, besides the delay.
    tool_wait_ms: Option<TimeNumber>,
    text_input: Option<String>,
}

/// Request of a line: times in milliseconds.
pub(super) fn record(line: &str, block_tokens: u64) -> Result<TraceRecord, TraceLineError> {
    let line: MooncakeLine = parsed(line)?;
    let after = dependencies(line.wait_for.as_deref().unwrap_or_default(), [line.delay, line.tool_wait_ms])?;
    let start = match (line.timestamp, line.delay) {
        // It has the time of what it waits for.
        (None, _) if !after.is_empty() => TraceStart::Delay(Nanos::ZERO),
        (timestamp, delay) => start(timestamp, delay)?,
    };
    if matches!(start, TraceStart::Delay(_)) && after.is_empty() && line.session_id.is_none() {
        return Err(TraceLineError::Broken("a delay without a session_id".to_owned()));
    }
    let output = needed(line.output_length, "output_length")?;
    let (input, prompt) = match line.text_input {
        Some(text) => {
            let mut content = Vec::with_capacity(text.len());
            push_escaped(&text, &mut content);
            // The server counts its tokens.
            (line.input_length.unwrap_or(1), TracePrompt::Text(content.into()))
        }
        None => (needed(line.input_length, "input_length")?, blocks(line.hash_ids, block_tokens)),
    };
    let record = TraceRecord::new(start, line.session_id.map(|name| name.0), TraceTokens { input, output }, prompt)?;
    Ok(TraceRecord { id: line.request_id.map(|name| name.0), after, ..record })
}

/// Requests that are waited for, each with the sum of the delays.
fn dependencies(
    requests: &[NameHash],
    delays: [Option<TimeNumber>; 2],
) -> Result<Box<[TraceDependency]>, TraceLineError> {
    if requests.is_empty() {
        return Ok(Box::default());
    }
    let mut delay = Nanos::ZERO;
    for part in delays.into_iter().flatten() {
        let nanos = part.nanos(MS_NS).and_then(|ns| u64::try_from(ns).ok());
        delay += Nanos(nanos.ok_or_else(|| TraceLineError::Broken("a time that is out of range".to_owned()))?);
    }
    let wait = |name: &NameHash| TraceDependency { request: name.0, trigger: TurnTrigger::End, delay };
    Ok(requests.iter().map(wait).collect())
}

fn start(timestamp: Option<TimeNumber>, delay: Option<TimeNumber>) -> Result<TraceStart, TraceLineError> {
    let range = || TraceLineError::Broken("a time that is out of range".to_owned());
    match (timestamp, delay) {
        (Some(at), _) => at.nanos(MS_NS).map(TraceStart::At).ok_or_else(range),
        (None, Some(delay)) => {
            let nanos = delay.nanos(MS_NS).and_then(|ns| u64::try_from(ns).ok()).ok_or_else(range)?;
            Ok(TraceStart::Delay(Nanos(nanos)))
        }
        (None, None) => Err(TraceLineError::Broken("no timestamp".to_owned())),
    }
}

/// Blocks of a prompt.
pub(super) fn blocks(ids: Option<Vec<NameHash>>, tokens: u64) -> TracePrompt {
    let ids = ids.unwrap_or_default().into_iter().map(|id| id.0).collect();
    TracePrompt::Blocks { ids, tokens: tokens.max(1) }
}

/// Members of a line of Bailian.
#[derive(Debug, Deserialize)]
struct BailianLine {
    timestamp: TimeNumber,
    input_length: u64,
    output_length: u64,
    hash_ids: Option<Vec<NameHash>>,
}

/// Request of a line of Bailian: times in seconds. Each line has its whole prompt.
pub(super) fn bailian_record(line: &str, block_tokens: u64) -> Result<TraceRecord, TraceLineError> {
    let line: BailianLine = parsed(line)?;
    let at = line.timestamp.nanos(S_NS);
    let at = at.ok_or_else(|| TraceLineError::Broken("a time that is out of range".to_owned()))?;
    let tokens = TraceTokens { input: line.input_length, output: line.output_length };
    TraceRecord::new(TraceStart::At(at), None, tokens, blocks(line.hash_ids, block_tokens))
}
