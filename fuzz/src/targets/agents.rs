//! Lines of agents, in any order: nothing panics, an invalid line has an error of one line, and merged results are
//! consistent.

use weir_agents::AgentAggregator;
use weir_agents::protocol::{AgentCommand, AgentEvent, next_line, parse_event};
use weir_base::Nanos;
use weir_measure::Counts;

crate::target!(|bytes: &[u8]| {
    let nodes = ["a", "b", "c"].map(str::to_owned);
    let mut aggregator = AgentAggregator::new(&nodes, Nanos::SECOND, Nanos::ZERO);
    let mut from = bytes;
    let mut number = 0;
    while let Ok(Some(line)) = next_line(&mut from) {
        // The first byte chooses the agent.
        let agent = usize::from(line.bytes().next().unwrap_or(0)) % 4;
        let rest = line.get(1..).unwrap_or_default();
        if let Ok(command) = serde_json::from_str::<AgentCommand>(rest) {
            let written = serde_json::to_string(&command).expect("a command is JSON");
            assert_eq!(serde_json::from_str::<AgentCommand>(&written).expect("its own output"), command);
        }
        let event = match parse_event(rest) {
            Ok(event) => event,
            Err(reason) => {
                assert!(!reason.is_empty() && !reason.contains(char::is_control), "{reason:?}");
                continue;
            }
        };
        round_trip(&event);
        number += 1;
        aggregator.probe(agent, number, Nanos(number));
        if let Err(reason) = aggregator.on_event(agent, event, Nanos(number + 5)) {
            aggregator.fail(agent, reason);
        }
        let _ = (
            aggregator.clock_offset(agent).to_remote(Nanos(number)),
            aggregator.silent_since(Nanos(number)),
            aggregator.running(),
        );
    }
    let (agents, series) = aggregator.close();
    let _ = series.points(1.0);
    let counts: Counts = agents.iter().map(|agent| &agent.counts).sum();
    assert!(counts.responses() <= counts.requests && counts.ok <= counts.responses());
});

/// Valid counts can be encoded and decoded again.
fn round_trip(event: &AgentEvent) {
    let is_valid = match event {
        AgentEvent::Interval(_, interval) | AgentEvent::PartialInterval(_, interval) => interval.check().is_ok(),
        AgentEvent::Done(counts) => counts.check().is_ok(),
        _ => true,
    };
    if is_valid {
        let written = serde_json::to_string(event).expect("an event is JSON");
        assert_eq!(parse_event(&written).as_ref(), Ok(event), "its own output");
    }
}
