//! Lines of agents, in any order: nothing panics, an invalid line has an error of one line, and merged results are
//! consistent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir::agents::AgentAggregator;
use weir::agents::protocol::{AgentCommand, AgentEvent, next_line, parse_event};
use weir::decide::Nanos;
use weir::measure::wire_form::{WireCounts, WireInterval};

fuzz_target!(|bytes: &[u8]| {
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
    let merged = aggregator.close(Some(Nanos(number)), false);
    let _ = merged.series.points(1.0);
    let totals = &merged.result.counts.totals;
    assert!(totals.responses() <= totals.requests && totals.ok <= totals.responses());
});

/// Decoded counts can be encoded and decoded again.
fn round_trip(event: &AgentEvent) {
    match event {
        AgentEvent::Interval(_, wire) | AgentEvent::PartialInterval(_, wire) => {
            if let Ok(interval) = wire.decode() {
                assert!(WireInterval::encode(&interval).decode().is_ok());
            }
        }
        AgentEvent::Done(wire) => {
            if let Ok(counts) = wire.decode() {
                assert!(WireCounts::encode(&counts).decode().is_ok());
            }
        }
        _ => {}
    }
}
