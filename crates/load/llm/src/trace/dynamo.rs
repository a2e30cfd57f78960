//! Records of requests that Dynamo's frontend writes, `dynamo.request.trace.v1`.

use serde::Deserialize;
use weir_base::Nanos;

use super::json_number::{NameHash, TimeNumber};
use super::mooncake::blocks;
use super::trace_line_error::{TraceLineError, needed, parsed};
use super::trace_record::{TracePrompt, TraceRecord, TraceStart, TraceTokens};

/// Beginning of the names of schemas that are read.
const SCHEMA: &str = "dynamo.request.trace.";
/// Nanoseconds of a millisecond.
const MS_NS: i64 = 1_000_000;

/// Members of a line.
#[derive(Debug, Deserialize)]
struct DynamoLine {
    schema: String,
    #[serde(default)]
    event_type: String,
    event_time_unix_ms: Option<TimeNumber>,
    agent_context: Option<SessionMembers>,
    request: Option<RequestMembers>,
}

#[derive(Debug, Deserialize)]
struct SessionMembers {
    session_id: Option<NameHash>,
}

#[derive(Debug, Deserialize)]
struct RequestMembers {
    request_received_ms: Option<TimeNumber>,
    total_time_ms: Option<f64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    replay: Option<ReplayMembers>,
}

#[derive(Debug, Deserialize)]
struct ReplayMembers {
    trace_block_size: u64,
    input_length: u64,
    input_sequence_hashes: Option<Vec<NameHash>>,
}

/// Request of a line that is the end of one; payloads and calls of tools are none. `block_tokens` replaces the size of
/// a block that the record has.
pub(super) fn record(line: &str, block_tokens: Option<u64>) -> Result<TraceRecord, TraceLineError> {
    let line: DynamoLine = parsed(line)?;
    if !line.schema.starts_with(SCHEMA) {
        return Err(TraceLineError::Broken(format!("a schema that is not {SCHEMA}v1")));
    }
    if line.event_type != "request_end" {
        return Err(TraceLineError::NoRequest);
    }
    let request = needed(line.request, "request")?;
    let received = request.request_received_ms.and_then(|at| at.nanos(MS_NS));
    let ended = line.event_time_unix_ms.and_then(|at| at.nanos(MS_NS));
    let took = request.total_time_ms.filter(|ms| ms.is_finite()).map_or(0, |ms| (ms * MS_NS as f64) as i64);
    let at = needed(received.or_else(|| ended?.checked_sub(took)), "request_received_ms")?;
    let output = needed(request.output_tokens, "output_tokens")?;
    let (input, prompt) = match request.replay {
        Some(replay) => {
            let tokens = block_tokens.unwrap_or(replay.trace_block_size);
            (replay.input_length, blocks(replay.input_sequence_hashes, tokens))
        }
        None => (needed(request.input_tokens, "input_tokens")?, TracePrompt::own()),
    };
    let session = line.agent_context.and_then(|context| context.session_id).map(|name| name.0);
    let record = TraceRecord::new(TraceStart::At(at), session, TraceTokens { input, output }, prompt)?;
    Ok(TraceRecord { took: Nanos(u64::try_from(took).unwrap_or(0)), ..record })
}
