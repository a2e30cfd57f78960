//! Distributed load generation: agents are processes on this machine, or on the nodes of a Ray cluster.
//!
//! Each agent's part of the plan is a function of the plan, the agent's number and the number of agents
//! ([`weir_pace::shard`]), so no work is handed out during a run. Agents start at an agreed time, report their
//! counts once a second, and end on command, when they are done, or without a heartbeat.
//!
//! - [`coordinator`]: coordinator of placed agents and their runs
//! - [`process`]: process of an agent; [`protocol`]: protocol between both
//! - `aggregation`: aggregation of the agents' results; `step_join`: steps of scripts, by their names
//! - [`AgentPrograms`]: programs that drive users of an agent
//! - `placement`: interface of backends (place, watch, stop, logs); `local` and `ray`: the two backends;
//!   `child_channel`: lines to and from a child process
//!
//! Reasons: `docs/design/agents.md`.

mod agent_programs;
mod aggregation;
mod child_channel;
pub mod coordinator;
mod event_channel;
mod local;
mod placement;
pub mod process;
pub mod protocol;
mod ray;
mod step_join;

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

pub use self::agent_programs::{AgentPart, AgentPrograms, NoPrograms};
pub use self::aggregation::AgentAggregator;
pub use self::coordinator::Coordinator;

/// Hidden command that runs an agent.
pub const AGENT_COMMAND: &str = "agent-process";

/// Backend that runs agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Processes on this machine.
    Local,
    /// Nodes of the Ray cluster at this address; `auto`: the cluster that this machine belongs to.
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
            _ => Err(format!("unknown backend '{text}'; choose local, auto or ray://HOST:PORT")),
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
    /// Backend.
    pub backend: Backend,
    /// Number of agents; by default one, or one per node of a cluster.
    pub agents: Option<u64>,
    /// Maximum number of agents per node of a cluster; >= 1.
    pub per_node: u64,
    /// Command that starts this program again: program and leading arguments.
    pub launcher: Vec<OsString>,
}

/// Maximum number of agents; more is a typing error.
const MAX_AGENTS: u64 = 10_000;

impl AgentSpec {
    /// Checks the numbers, and that each agent gets at least one of the load's connections.
    ///
    /// # Errors
    /// The first error, in one line.
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
                "--agents: {agents} agents cannot share {connections} connections (or users, or requests); give fewer \
                 agents"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_local_auto_or_the_address_of_a_cluster() {
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
    fn more_agents_than_connections_are_rejected() {
        let spec = |agents, per_node| AgentSpec { backend: Backend::Local, agents, per_node, launcher: Vec::new() };
        assert_eq!(spec(Some(4), 1).check(Some(4)), Ok(()));
        assert_eq!(spec(None, 1).check(Some(1)), Ok(()));
        for (spec, word) in [
            (spec(Some(5), 1), "--agents: 5"),
            (spec(Some(0), 1), "--agents: 0"),
            (spec(Some(4), 0), "--per-node: 0"),
            (spec(Some(99_999), 1), "--agents: 99999"),
        ] {
            let why = spec.check(Some(4)).expect_err(word);
            assert!(why.contains(word) && why.contains("give"), "{why}");
        }
    }
}
