//! Where agents run: they are placed, watched, stopped, and their logs read. Whoever places them ships what they need, and is
//! in the path of no request.

use std::fmt::Debug;

use crate::decide::Nanos;

/// Agents that were placed.
///
/// Dropped, it ends them all.
pub(super) trait Placement: Debug + Send {
    /// The node of each agent; there are as many agents.
    fn nodes(&self) -> &[String];

    /// Tells an agent a line; never waits for it.
    fn send(&mut self, agent: usize, line: &str);

    /// What happens next, if something does within this time.
    fn next_event(&mut self, patience: Nanos) -> Option<PlacementEvent>;

    /// Ends all agents: asks, and after this time does not ask any more.
    fn stop(&mut self, patience: Nanos);

    /// What an agent complained about last, the oldest first.
    fn logs(&self, agent: usize) -> Vec<String>;
}

/// What happens where agents run.
#[derive(Debug)]
pub(super) enum PlacementEvent {
    /// An agent said a line, which was here at this time of our clock.
    Line(usize, Nanos, String),
    /// An agent is gone, and why.
    Failed(usize, String),
}

/// How many agents are on the node of agent `index`.
pub(super) fn agents_on_node(nodes: &[String], index: usize) -> u64 {
    nodes.get(index).map_or(1, |own| nodes.iter().filter(|node| *node == own).count() as u64)
}
