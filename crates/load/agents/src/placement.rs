//! Interface of a backend for agents: it places, watches and stops them, and reads their logs. A backend ships what
//! agents need, and is not in the path of requests.

use std::fmt::Debug;

use weir_base::Nanos;

/// Placed agents, numbered from 0. Dropping it ends all of them.
pub(super) trait Placement: Debug + Send {
    /// Node of each agent.
    fn nodes(&self) -> &[String];

    /// Sends a line to an agent, without waiting.
    fn send(&mut self, agent: usize, line: &str);

    /// Next event; None if there is none within the timeout.
    fn next_event(&mut self, timeout: Nanos) -> Option<PlacementEvent>;

    /// Ends all agents: gracefully within the timeout, then by force.
    fn stop(&mut self, timeout: Nanos);

    /// Last lines of an agent's stderr, oldest first.
    fn logs(&self, agent: usize) -> Vec<String>;
}

/// Event of a placed agent.
#[derive(Debug)]
pub(super) enum PlacementEvent {
    /// Line from an agent, with its time of arrival by this machine's clock.
    Line(usize, Nanos, String),
    /// Agent has failed, for this reason.
    Failed(usize, String),
}

/// Number of agents on the node of agent `index`.
pub(super) fn agents_on_node(nodes: &[String], index: usize) -> u64 {
    nodes.get(index).map_or(1, |own| nodes.iter().filter(|node| *node == own).count() as u64)
}
