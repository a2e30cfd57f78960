//! Table of agents in the text report: a slow agent must not hide in the sum.

use std::collections::BTreeSet;

use super::ansi::AnsiPaint;
use super::number_format::{count, ms, rate, truncate};
use weir_measure::Run;
use weir_measure::agent_counts::{Agent, clock_error_ms, skew_ms};

/// Maximum width of a node's name, in columns.
const NODE_WIDTH: usize = 16;
/// Maximum number of agents shown; of more, those with the longest response times.
const MAX_AGENTS_SHOWN: usize = 20;

/// Lines of the table; none for a run without agents.
pub(super) fn lines(run: &Run, paint: AnsiPaint) -> Vec<String> {
    if run.agents.is_empty() {
        return Vec::new();
    }
    let nodes = run.agents.iter().map(|agent| agent.node.as_str()).collect::<BTreeSet<_>>().len();
    let plural = |n: usize, noun: &str| format!("{} {noun}{}", count(n as u64), if n == 1 { "" } else { "s" });
    let facts = [
        format!("{} on {}", plural(run.agents.len(), "agent"), plural(nodes, "node")),
        format!("began within {}", ms(skew_ms(&run.agents))),
        format!("clocks known to {}", ms(clock_error_ms(&run.agents))),
    ];
    let mut shown: Vec<(usize, &Agent)> = run.agents.iter().enumerate().collect();
    shown.sort_by(|(_, a), (_, b)| {
        let key = |agent: &Agent| (agent.failure.is_some(), agent.response_ms.p99);
        key(b).partial_cmp(&key(a)).unwrap_or(std::cmp::Ordering::Equal)
    });
    shown.truncate(MAX_AGENTS_SHOWN);
    shown.sort_by_key(|(index, _)| *index);
    let heading = format!(
        "{:>5}  {:<NODE_WIDTH$}{:>9}{:>8}{:>8}{:>8}{:>10}{:>8}",
        "agent", "node", "rate", "p50", "p99", "max", "late p99", "busiest"
    );
    let mut lines = vec![paint.line("agents", &facts), paint.dim(&heading)];
    lines.extend(shown.iter().map(|(index, agent)| row(*index, agent, paint)));
    let hidden = run.agents.len() - shown.len();
    if hidden > 0 {
        lines.push(paint.dim(&format!("       and {}, all faster; --out has them", plural(hidden, "agent"))));
    }
    lines
}

fn row(index: usize, agent: &Agent, paint: AnsiPaint) -> String {
    let node = truncate(&agent.node, NODE_WIDTH - 1);
    let figures = if agent.threads == 0 {
        "  nothing to do".to_owned()
    } else {
        let Agent { response_ms, lateness_ms, .. } = agent;
        let [p50, p99, max, late] = [response_ms.p50, response_ms.p99, response_ms.max, lateness_ms.p99].map(ms);
        let busy = format!("{:.0}%", agent.cpu_utilization * 100.0);
        format!("{:>7}/s{p50:>8}{p99:>8}{max:>8}{late:>10}{busy:>8}", rate(agent.rate_per_s))
    };
    let lost = if agent.failure.is_some() { "  LOST" } else { "" };
    let row = format!("{:>5}  {node:<NODE_WIDTH$}{figures}{lost}", index + 1);
    if agent.failure.is_some() { paint.red(&row) } else { row }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures;

    fn bare(run: &Run) -> Vec<String> {
        lines(run, AnsiPaint { enabled: false })
    }

    #[test]
    fn each_agent_has_a_line_and_a_lost_one_is_marked() {
        assert!(bare(&fixtures::closed()).is_empty());
        fixtures::same(
            &(bare(&fixtures::agents()).join("\n") + "\n"),
            include_str!("golden/agents.text.txt"),
            "agents.text.txt",
        );
    }

    #[test]
    fn of_many_agents_the_slowest_are_shown() {
        let mut run = fixtures::agents();
        let one = run.agents[0].clone();
        run.agents = vec![one.clone(); 100];
        run.agents[70].response_ms.p99 = one.response_ms.p99.map(|ms| 2.0 * ms);
        let lines = bare(&run);
        assert_eq!(lines.len(), 2 + MAX_AGENTS_SHOWN + 1);
        assert!(lines.iter().any(|line| line.trim_start().starts_with("71 ")), "{lines:?}");
        assert!(lines[MAX_AGENTS_SHOWN + 2].contains("80 agents"), "{lines:?}");
    }
}
