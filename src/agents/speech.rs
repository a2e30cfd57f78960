//! What an agent is told, and what it tells: a line of JSON each.

use std::io::{self, BufRead, Read};

use serde::{Deserialize, Serialize};

use crate::decide::Nanos;
use crate::load::{AgentPosition, Options};
use crate::measure::parcel::{WireCounts, WireInterval};

/// What an agent is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentCommand {
    /// To get ready for its part of a load.
    Load(Box<LoadAssignment>),
    /// To say what its clock shows; the number comes back. Also a sign that somebody is there.
    Probe(u64),
    /// To begin when its own clock shows this.
    Start(Nanos),
    /// To end the load now.
    Stop,
}

/// A load, and which part of it is whose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadAssignment {
    /// The whole load.
    pub options: Options,
    /// Which part of it.
    #[serde(rename = "place")]
    pub position: AgentPosition,
    /// How often to tell what was counted.
    #[serde(rename = "stretch")]
    pub interval: Nanos,
    /// How many connections all agents together make before the start.
    pub preconnect: u64,
}

/// What an agent tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEvent {
    /// It is there: the version of weir that it is.
    Hello(String),
    /// What its clock showed when it was asked for it.
    Clock {
        /// The number of the question.
        probe: u64,
        /// What the clock showed.
        at: Nanos,
    },
    /// It is ready to begin, with so many threads.
    Ready(u64),
    /// It cannot drive this load, and why.
    #[serde(rename = "refused")]
    Rejected(String),
    /// What happened in a stretch, and all that was counted in it.
    #[serde(rename = "stretch")]
    Interval(u64, WireInterval),
    /// What some of its threads saw of a stretch when others had nothing to do any more.
    #[serde(rename = "rest")]
    PartialInterval(u64, WireInterval),
    /// It is done; what was counted and not told yet.
    Done(Box<WireCounts>),
}

/// The longest line: all bodies of a load, or a second of an agent, with plenty of room.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// The next line, without its end; None at the end of the stream.
///
/// # Errors
/// The stream's, or a line that does not end.
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

/// Reads what an agent tells.
///
/// # Errors
/// It is nothing that an agent tells; why, in one line.
pub fn parse_event(line: &str) -> Result<AgentEvent, String> {
    serde_json::from_str(line).map_err(|e| format!("it said what is no news: {e}").replace(char::is_control, " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::RequestBodySource;

    #[test]
    fn a_job_comes_back_as_it_was() {
        let options = Options {
            url: "http://h/".into(),
            rate: Some(0.1),
            bodies: vec![RequestBodySource::Bytes(vec![0, 255, 10]), RequestBodySource::File("a b".into())],
            seed: Some(u64::MAX),
            ..Options::default()
        };
        let place = AgentPosition { index: 1, count: 3, on_host: 2 };
        let order = AgentCommand::Load(Box::new(LoadAssignment {
            options,
            position: place,
            interval: Nanos::SECOND,
            preconnect: 7,
        }));
        let line = serde_json::to_string(&order).expect("it serialises");
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<AgentCommand>(&line).expect("own line"), order);
    }

    #[test]
    fn a_line_that_was_cut_off_is_no_line() {
        let mut from: &[u8] = b"one\n\ntw";
        assert_eq!(next_line(&mut from).expect("a line").as_deref(), Some("one"));
        assert_eq!(next_line(&mut from).expect("a line").as_deref(), Some(""));
        assert!(next_line(&mut from).is_err());
        assert!(next_line(&mut &b"\xff\n"[..]).is_err());
        assert_eq!(next_line(&mut &b""[..]).expect("the end"), None);
    }
}
