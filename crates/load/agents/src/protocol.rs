//! Protocol between coordinator and agent: commands and events, one line of JSON each.

use std::io::{self, BufRead, Read};

use serde::{Deserialize, Serialize};

use weir_base::Nanos;
use weir_base::terminal_text::is_steering;
use weir_load::{AgentPosition, LoadUpdate, Options};
use weir_measure::Counts;
use weir_measure::end_reason::EndReason;
use weir_measure::recorder::Interval;

/// Message from the coordinator to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentCommand {
    /// Prepare for a part of a load.
    Load(Box<LoadAssignment>),
    /// Report the clock's time, with this number; also the heartbeat of the coordinator.
    Probe(u64),
    /// Start the load at this time of the agent's clock.
    Start(Nanos),
    /// Change the load; times are of the run's clock, which all agents share.
    Change(LoadUpdate),
    /// End the load now.
    Stop,
}

/// Load, and the agent's part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadAssignment {
    /// Options of the whole load.
    pub options: Options,
    /// Position among all agents, which determines the part.
    pub position: AgentPosition,
    /// Reporting interval.
    pub interval: Nanos,
    /// Number of connections that all agents together open before the start.
    pub preconnect: u64,
    /// Whether the load may be changed while it runs.
    pub may_change: bool,
}

/// Message from an agent to the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEvent {
    /// Started, with this version of weir.
    Hello(String),
    /// Response to a probe.
    Clock {
        /// Number of the probe.
        probe: u64,
        /// Time of the agent's clock.
        at: Nanos,
    },
    /// Ready to start, with this number of threads.
    Ready(u64),
    /// The load cannot be generated, for this reason.
    Rejected(String),
    /// Steps of a script that are new, in the order of their indices; results of them follow.
    Steps(Vec<ScriptStep>),
    /// The script has ended the agent's load.
    Ended(EndReason),
    /// Final report of the agent's script, for the coordinator's script; sent at the end of the load.
    ScriptReport(String),
    /// Results of an interval, with its number.
    Interval(u64, Interval),
    /// Results of an interval from some of the threads, after the others have finished.
    PartialInterval(u64, Interval),
    /// Done; counts that were not reported yet.
    Done(Box<Counts>),
}

/// Step that a script has named, with its scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptStep {
    /// Name of its scenario.
    pub scenario: String,
    /// Name.
    pub name: String,
}

/// Maximum length of a line: all bodies of a load, or a second of an agent, with a large margin.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// Next line, without its terminator; None at the end of the stream.
///
/// # Errors
/// An error of the stream, or a line without a terminator.
pub fn next_line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let length = from.take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    if length == 0 {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::InvalidData.into());
    }
    String::from_utf8(line).map(Some).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Parses an event of an agent.
///
/// # Errors
/// The reason why it is invalid, in one line.
pub fn parse_event(line: &str) -> Result<AgentEvent, String> {
    serde_json::from_str(line).map_err(|e| format!("invalid message from agent: {e}").replace(is_steering, " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_load::RequestBodySource;

    #[test]
    fn an_assignment_survives_a_round_trip() {
        let options = Options {
            url: "http://h/".into(),
            rate: Some(0.1),
            bodies: vec![RequestBodySource::Bytes(vec![0, 255, 10]), RequestBodySource::File("a b".into())],
            seed: Some(u64::MAX),
            ..Options::default()
        };
        let position = AgentPosition { index: 1, count: 3, on_host: 2 };
        let command = AgentCommand::Load(Box::new(LoadAssignment {
            options,
            position,
            interval: Nanos::SECOND,
            preconnect: 7,
            may_change: true,
        }));
        let line = serde_json::to_string(&command).expect("it serialises");
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<AgentCommand>(&line).expect("own line"), command);
    }

    #[test]
    fn a_truncated_line_is_an_error() {
        let mut from: &[u8] = b"one\n\ntw";
        assert_eq!(next_line(&mut from).expect("a line").as_deref(), Some("one"));
        assert_eq!(next_line(&mut from).expect("a line").as_deref(), Some(""));
        assert!(next_line(&mut from).is_err());
        assert!(next_line(&mut &b"\xff\n"[..]).is_err());
        assert_eq!(next_line(&mut &b""[..]).expect("the end"), None);
    }
}
