//! Agents on the nodes of a Ray cluster, through a Python process that is Ray's driver (`python/weir/_on_ray.py`).
//!
//! Its stdout has `- JSON` for events of its own ([`DriverEvent`]), and `NUMBER LINE` for lines of agents. The first
//! line on its stdin is what to place; the others are `NUMBER LINE`, for agents.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};

use serde::{Deserialize, Serialize};

use super::AgentSpec;
use super::child_channel::{ChildChannel, ChildLine};
use super::placement::{Placement, PlacementEvent};
use weir_base::Nanos;
use weir_load::LoadError;

/// Agents on a Ray cluster.
#[derive(Debug)]
pub(super) struct RayPlacement {
    driver: ChildChannel,
    nodes: Vec<String>,
    lines: Receiver<ChildLine>,
    /// Events that were not returned yet.
    events: VecDeque<PlacementEvent>,
    logs: Vec<Vec<String>>,
}

/// Request to the driver: what to place.
#[derive(Debug, Serialize)]
struct PlacementRequest<'a> {
    address: &'a str,
    agents: Option<u64>,
    per_node: u64,
    weir: &'a str,
    command: &'a str,
    files: Vec<(&'a Path, &'a str)>,
}

/// Event of Ray's driver.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DriverEvent {
    /// Agents are placed on these nodes.
    Placed(Vec<String>),
    /// Agents cannot be placed, for this reason.
    Rejected(String),
    /// Agent has failed, for this reason.
    #[serde(rename = "lost")]
    AgentFailed(usize, String),
    /// Line on an agent's stderr.
    Log(usize, String),
}

/// Interval of checks for an interruption.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);
/// Number of an agent's log lines that are kept.
const MAX_LOG_LINES: usize = 20;
/// Time for Ray to end what it placed, beyond the agents' own timeout.
const TEARDOWN_TIMEOUT: Nanos = Nanos::from_secs(5);

/// Python of the environment that a program is installed in, else the one on PATH.
fn python_beside(program: &OsStr) -> OsString {
    let python = Path::new(program).with_file_name("python3");
    if python.exists() { python.into_os_string() } else { "python3".into() }
}

/// Places agents; ends early once `go_on` returns false.
pub(super) fn place(
    asked: &AgentSpec,
    address: &str,
    files: &[(PathBuf, String)],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<RayPlacement, LoadError> {
    let rejected = |why: String| LoadError::Agents(why);
    // If weir was started through Python, that one has Ray.
    let python = match asked.launcher.as_slice() {
        [python, _, ..] => python.clone(),
        // A program that pip has installed is in the folder of its Python.
        [program] => python_beside(program),
        [] => "python3".into(),
    };
    let mut command = Command::new(&python);
    command.args(["-m", "weir._on_ray"]);
    let (sender, lines) = mpsc::channel();
    let on_line = move |line| {
        // The receiver may be dropped already.
        let _ = sender.send(line);
    };
    let driver = ChildChannel::start(command, on_line, |_| {});
    let driver = driver.map_err(|error| rejected(format!("cannot run {}: {error}", python.display())))?;
    let mut ray = RayPlacement { driver, nodes: Vec::new(), lines, events: VecDeque::new(), logs: Vec::new() };
    let request = PlacementRequest {
        address,
        agents: asked.agents,
        per_node: asked.per_node,
        weir: env!("CARGO_PKG_VERSION"),
        command: super::AGENT_COMMAND,
        files: files.iter().map(|(path, name)| (path.as_path(), name.as_str())).collect(),
    };
    let request =
        serde_json::to_string(&request).map_err(|error| rejected(format!("files cannot be shipped: {error}")))?;
    ray.driver.send(request);
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
                Some(DriverEvent::Rejected(why)) => return Err(rejected(why)),
                _ => {}
            },
            Ok((_, None)) => {
                let ending = ray.driver.exit_description();
                let last_line = ray.driver.last_stderr_lines().pop().unwrap_or_default();
                let why = if last_line.contains("No module named 'weir") {
                    format!("{} has no weir; install it there: pip install 'weir-http[ray]'", python.display())
                } else {
                    format!("Ray's driver has ended ({ending}): {last_line}")
                };
                return Err(rejected(why));
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
            let why = format!("the connection to Ray is lost: {}", self.driver.exit_description());
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
                let parsed = line.split_once(' ').and_then(|(agent, line)| Some((agent.parse().ok()?, line)));
                if let Some((agent, line)) = parsed {
                    self.events.push_back(PlacementEvent::Line(agent, at, line.to_owned()));
                }
            }
        }
    }
}

impl Drop for RayPlacement {
    fn drop(&mut self) {
        // Gracefully: what is on the cluster has to be removed.
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

    fn next_event(&mut self, timeout: Nanos) -> Option<PlacementEvent> {
        if self.events.is_empty() {
            let (at, line) = self.lines.recv_timeout(timeout.as_duration()).ok()?;
            self.on_line(at, line);
        }
        self.events.pop_front()
    }

    fn stop(&mut self, timeout: Nanos) {
        self.driver.stop(timeout + TEARDOWN_TIMEOUT);
    }

    fn logs(&self, agent: usize) -> Vec<String> {
        self.logs.get(agent).cloned().unwrap_or_default()
    }
}
