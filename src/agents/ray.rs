//! Agents on the nodes of a Ray cluster, through a Python process that Ray knows as its driver (`python/weir/_on_ray.py`).
//!
//! It says a line of JSON after `- ` for itself ([`DriverEvent`]), and hands on what an agent says after the agent's number. It is
//! told what to place on its first line, and then what to tell agents, after their numbers.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};

use serde::{Deserialize, Serialize};

use super::AgentSpec;
use super::placement::{Placement, PlacementEvent};
use super::voice::{ChildChannel, ChildLine};
use crate::decide::Nanos;
use crate::load::LoadError;

/// Agents on a cluster.
#[derive(Debug)]
pub(super) struct RayPlacement {
    driver: ChildChannel,
    nodes: Vec<String>,
    lines: Receiver<ChildLine>,
    /// What happened and was not asked for yet.
    events: VecDeque<PlacementEvent>,
    logs: Vec<Vec<String>>,
}

/// What to place.
#[derive(Debug, Serialize)]
struct PlacementRequest<'a> {
    address: &'a str,
    agents: Option<u64>,
    per_node: u64,
    weir: &'a str,
    command: &'a str,
    files: Vec<(&'a Path, &'a str)>,
}

/// What Ray's driver says for itself.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DriverEvent {
    /// Agents are placed: their nodes.
    Placed(Vec<String>),
    /// They cannot be placed, and why.
    Rejected(String),
    /// An agent is gone, and why.
    #[serde(rename = "lost")]
    AgentFailed(usize, String),
    /// An agent complained.
    Log(usize, String),
}

/// How often it is looked whether somebody has had enough.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);
/// Complaints of an agent that are kept.
const MAX_LOG_LINES: usize = 20;
/// How long Ray has to end what it placed, beyond the agents' own time.
const TEARDOWN_TIMEOUT: Nanos = Nanos::from_secs(5);

/// Places agents; `go_on` can end it.
pub(super) fn place(
    asked: &AgentSpec,
    address: &str,
    files: &[(PathBuf, String)],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<RayPlacement, LoadError> {
    let refused = |why: String| LoadError::Agents(why);
    // Started through Python, that is the one that has Ray; else the one that people call so.
    let python = match asked.launcher.as_slice() {
        [python, _, ..] => python.clone(),
        _ => "python3".into(),
    };
    let mut command = Command::new(&python);
    command.args(["-m", "weir._on_ray"]);
    let (says, heard) = mpsc::channel();
    let driver = ChildChannel::start(command, move |heard| {
        // Whoever listens may have had enough.
        let _ = says.send(heard);
    });
    let driver = driver.map_err(|error| refused(format!("cannot run {}: {error}", python.display())))?;
    let mut ray = RayPlacement { driver, nodes: Vec::new(), lines: heard, events: VecDeque::new(), logs: Vec::new() };
    let wish = PlacementRequest {
        address,
        agents: asked.agents,
        per_node: asked.per_node,
        weir: env!("CARGO_PKG_VERSION"),
        command: super::AGENT_COMMAND,
        files: files.iter().map(|(path, name)| (path.as_path(), name.as_str())).collect(),
    };
    let wish = serde_json::to_string(&wish).map_err(|error| refused(format!("files cannot be shipped: {error}")))?;
    ray.driver.send(wish);
    loop {
        if !go_on() {
            return Err(LoadError::Interrupted);
        }
        match ray.lines.recv_timeout(POLL_INTERVAL.as_duration()) {
            Ok((_, Some(line))) => match parse_driver_event(&line) {
                Some(DriverEvent::Placed(nodes)) => {
                    ray.logs = vec![Vec::new(); nodes.len()];
                    ray.nodes = nodes;
                    return Ok(ray);
                }
                Some(DriverEvent::Rejected(why)) => return Err(refused(why)),
                _ => {}
            },
            Ok((_, None)) => {
                let ending = ray.driver.exit_description();
                let said = ray.driver.last_stderr_lines().pop().unwrap_or_default();
                let said = if said.contains("No module named 'weir") {
                    format!("{} has no weir; install it there: pip install 'weir-http[ray]'", python.display())
                } else {
                    format!("Ray's driver has ended ({ending}): {said}")
                };
                return Err(refused(said));
            }
            Err(_) => {}
        }
    }
}

fn parse_driver_event(line: &str) -> Option<DriverEvent> {
    serde_json::from_str(line.strip_prefix("- ")?).ok()
}

impl RayPlacement {
    fn on_line(&mut self, at: Nanos, line: Option<String>) {
        let Some(line) = line else {
            let why = format!("the way to Ray is gone: {}", self.driver.exit_description());
            self.events.extend((0..self.nodes.len()).map(|agent| PlacementEvent::Failed(agent, why.clone())));
            return;
        };
        match parse_driver_event(&line) {
            Some(DriverEvent::AgentFailed(agent, why)) => self.events.push_back(PlacementEvent::Failed(agent, why)),
            Some(DriverEvent::Log(agent, line)) => {
                if let Some(log) = self.logs.get_mut(agent) {
                    log.push(line);
                    let surplus = log.len().saturating_sub(MAX_LOG_LINES);
                    log.drain(..surplus);
                }
            }
            Some(DriverEvent::Placed(_) | DriverEvent::Rejected(_)) => {}
            None => {
                let said = line.split_once(' ').and_then(|(agent, rest)| Some((agent.parse().ok()?, rest)));
                if let Some((agent, rest)) = said {
                    self.events.push_back(PlacementEvent::Line(agent, at, rest.to_owned()));
                }
            }
        }
    }
}

impl Drop for RayPlacement {
    fn drop(&mut self) {
        // Not at once: what is on the cluster is to be removed.
        self.driver.stop(TEARDOWN_TIMEOUT);
    }
}

impl Placement for RayPlacement {
    fn nodes(&self) -> &[String] {
        &self.nodes
    }

    fn send(&mut self, agent: usize, line: &str) {
        self.driver.send(format!("{agent} {line}"));
    }

    fn next_event(&mut self, patience: Nanos) -> Option<PlacementEvent> {
        if self.events.is_empty() {
            let (at, line) = self.lines.recv_timeout(patience.as_duration()).ok()?;
            self.on_line(at, line);
        }
        self.events.pop_front()
    }

    fn stop(&mut self, patience: Nanos) {
        self.driver.stop(patience + TEARDOWN_TIMEOUT);
    }

    fn logs(&self, agent: usize) -> Vec<String> {
        self.logs.get(agent).cloned().unwrap_or_default()
    }
}
