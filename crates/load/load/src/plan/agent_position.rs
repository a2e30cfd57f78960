//! Position of an agent among all agents of a load.

use serde::{Deserialize, Serialize};

/// Position of an agent among all agents of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPosition {
    /// Number of the agent, from 0.
    pub index: u64,
    /// Number of agents; >= 1.
    #[serde(rename = "of")]
    pub count: u64,
    /// Number of agents on the same machine, itself included; >= 1.
    #[serde(rename = "here")]
    pub on_host: u64,
}

impl AgentPosition {
    /// Position without other agents.
    pub const SINGLE: Self = Self { index: 0, count: 1, on_host: 1 };
}
