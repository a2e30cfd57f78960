//! Who drives a load: this process, or agents; the flags of every command that drives one.

use std::ffi::OsString;

use clap::Args;

use super::launcher::self_command;
use crate::agents::{AgentSpec, Backend};

const AGENTS: &str = "Agents";

/// Where agents run, and how many.
#[derive(Clone, Debug, Args)]
pub(super) struct AgentArgs {
    /// Have agents drive the load: local (processes here), auto (the Ray cluster that this machine belongs to) or
    /// ray://HOST:PORT
    #[arg(long = "on", value_name = "PLACE", value_parser = str::parse::<Backend>, help_heading = AGENTS)]
    backend: Option<Backend>,
    /// How many agents [default: one per node of the cluster; local: 1]
    #[arg(long, value_name = "N", requires = "backend", help_heading = AGENTS)]
    agents: Option<u64>,
    /// How many of them a node may have
    #[arg(long, value_name = "N", requires = "backend", default_value_t = 1, help_heading = AGENTS)]
    per_node: u64,
}

impl AgentArgs {
    /// Whether agents are asked for.
    pub(super) fn has_agents(&self) -> bool {
        self.backend.is_some()
    }

    /// The agents that were asked for; `connections` are what they are to share, if that is known.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub(super) fn agent_spec(&self, args: &[OsString], connections: Option<u64>) -> Result<Option<AgentSpec>, String> {
        let Some(on) = self.backend.clone() else { return Ok(None) };
        let asked =
            AgentSpec { backend: on, agents: self.agents, per_node: self.per_node, launcher: self_command(args) };
        asked.check(connections)?;
        Ok(Some(asked))
    }
}
