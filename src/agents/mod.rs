//! Several agents drive one load: processes on this machine, or on the nodes of a Ray cluster.
//!
//! Each agent has its part of the plan, which is a function of the plan, the agent's number and their number
//! ([`crate::decide::deal`]), so nobody hands out work while a run goes. They begin together at an agreed moment, tell once a
//! second what they have counted, and end when told so, when they are done, or when nobody is there any more.
//!
//! - [`crew`]: agents that were placed; drives runs with them
//! - [`life`]: an agent's own side; [`speech`]: what both say to each other
//! - `ledger`: what the agents told, added up
//! - `placement`: where agents run, behind four verbs: place, watch, stop, logs; `local` and `ray` are the two kinds;
//!   `voice`: lines to and from a process
//!
//! `docs/design/agents.md` has the reasons.

pub mod crew;
mod ledger;
pub mod life;
mod local;
mod placement;
mod ray;
pub mod speech;
mod voice;

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

pub use self::crew::Coordinator;
pub use self::ledger::AgentAggregator;

/// The hidden command that is an agent's life.
pub const AGENT_COMMAND: &str = "agent-process";

/// Where agents run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// On this machine.
    Local,
    /// On the nodes of a Ray cluster: its address, or `auto` for the one that this machine belongs to.
    Ray(String),
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let has_port = |address: &str| {
            address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        match text {
            "local" => Ok(Self::Local),
            "auto" => Ok(Self::Ray(text.to_owned())),
            _ if text.strip_prefix("ray://").is_some_and(has_port) => Ok(Self::Ray(text.to_owned())),
            _ => Err(format!("'{text}' is no place for agents; give local, auto, or ray://HOST:PORT")),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Ray(address) => f.write_str(address),
        }
    }
}

/// Agents to place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSpec {
    /// Where.
    pub backend: Backend,
    /// How many; one, or one for each node of a cluster, if nothing says so.
    pub agents: Option<u64>,
    /// How many on a node of a cluster; >= 1.
    pub per_node: u64,
    /// How this program is started anew: itself, and what stands before a command of ours.
    pub launcher: Vec<OsString>,
}

/// More agents than anybody has nodes; a typing error rather than a plan.
const MAX_AGENTS: u64 = 10_000;

impl AgentSpec {
    /// Checks it against the load that the agents are to share.
    ///
    /// # Errors
    /// The first thing that is wrong, in one line.
    pub fn check(&self, connections: Option<u64>) -> Result<(), String> {
        let out_of_range = |value: &u64| !(1..=MAX_AGENTS).contains(value);
        if let Some(agents) = self.agents.filter(out_of_range) {
            return Err(format!("--agents: {agents} is out of range; give 1 to {MAX_AGENTS}"));
        }
        if out_of_range(&self.per_node) {
            return Err(format!("--per-node: {} is out of range; give 1 to {MAX_AGENTS}", self.per_node));
        }
        match (self.agents, connections) {
            (Some(agents), Some(connections)) if agents > connections => Err(format!(
                "--agents: {agents} agents cannot share {connections} connections (or users, or requests); give fewer agents"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_local_auto_or_the_address_of_a_cluster() {
        for text in ["local", "auto", "ray://10.0.0.1:10001", "ray://head.svc:10001", "ray://[::1]:10001"] {
            assert_eq!(text.parse::<Backend>().map(|on| on.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "Local", "ray", "ray://", "ray://head", "ray://:1", "ray://head:x", "http://head:1", "10.0.0.1:6379"]
        {
            let why = text.parse::<Backend>().expect_err(text);
            assert!(why.contains(&format!("'{text}'")) && why.contains("ray://HOST:PORT"), "{why}");
        }
    }

    #[test]
    fn more_agents_than_there_is_to_share_are_refused() {
        let asked = |agents, per_node| AgentSpec { backend: Backend::Local, agents, per_node, launcher: Vec::new() };
        assert_eq!(asked(Some(4), 1).check(Some(4)), Ok(()));
        assert_eq!(asked(None, 1).check(Some(1)), Ok(()));
        for (asked, word) in [
            (asked(Some(5), 1), "--agents: 5"),
            (asked(Some(0), 1), "--agents: 0"),
            (asked(Some(4), 0), "--per-node: 0"),
            (asked(Some(99_999), 1), "--agents: 99999"),
        ] {
            let why = asked.check(Some(4)).expect_err(word);
            assert!(why.contains(word) && why.contains("give"), "{why}");
        }
    }
}
