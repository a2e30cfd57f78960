//! Method and manifest of a run.

use crate::http2::{errors, notices, protocol};
use crate::number_format;
use crate::page::manifest::manifest_section;
use crate::page::{Block, Section, ValueUnit};
use crate::text::facts;
use crate::{replay, trace};
use weir_measure::run_changes::{ChangeKind, RunChange};
use weir_measure::{LoadModel, Run};

pub(super) fn method(run: &Run) -> Section {
    let model = match run.model {
        LoadModel::Open => {
            "Open loop: requests start at times that a schedule sets, whether or not earlier ones have ended, like \
             visitors of a public service. When the service stalls, requests that arrive meanwhile wait, and the wait \
             counts."
        }
        LoadModel::Closed => {
            "Closed loop: each connection sends its next request after the response to the last one, like \
             users that never pause. When the service stalls, no requests arrive meanwhile; an open loop (--rate) shows the \
             effect of a stall on visitors."
        }
    };
    let traffic = run.traffic_per_s().map(|rate| ValueUnit::Bytes.format(rate) + "/s");
    let mut facts = vec![
        ("load", facts(run)[0].clone()),
        ("measured", facts(run)[1].clone()),
        ("connections", format!("{} opened", number_format::count(run.connections.opened))),
        ("traffic", format!("{} in, {} out", traffic[0], traffic[1])),
        ("in the system", format!("{} requests on average", number_format::rate(run.in_flight_mean))),
    ];
    facts.extend(replay::facts(run));
    facts.extend(trace::facts(run));
    if run.http2.is_some() {
        facts.push(("protocol", protocol(run)));
        let notices = notices(run);
        if !notices.is_empty() {
            facts.push(("HTTP/2", notices.join(", ")));
        }
        let errors = errors(run);
        if !errors.is_empty() {
            facts.push(("error codes of streams", errors.join(", ")));
        }
    }
    let queue = [
        (run.requests.waited, "waited for a free connection"),
        (run.connections.max_backlog, "max backlog"),
        (run.requests.dropped, "dropped, never sent"),
    ];
    let queue: Vec<String> = queue
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, words)| format!("{} {words}", number_format::count(n)))
        .collect();
    if !queue.is_empty() {
        facts.push(("queue", queue.join(", ")));
    }
    let [p50, p99] = [run.lateness_ms.p50, run.lateness_ms.p99].map(|ms| ValueUnit::Milliseconds.format(ms));
    facts.push(("sent late by", format!("{p50} (p50), {p99} (p99)")));
    let cpu = run.cpu_us_per_request.map(|us| format!("{} per request, ", ValueUnit::Milliseconds.format(us / 1e3)));
    let busiest = format!("busiest thread {:.0}% of a core", run.cpu_utilization * 100.0);
    facts.push(("weir's own CPU", cpu.unwrap_or_default() + &busiest));
    let made = run.changes.iter().flat_map(|changes| &changes.made).map(change).collect::<Vec<_>>();
    if let Some(changes) = &run.changes {
        facts.push(("changed while it ran", shortened(made)));
        if !changes.stages.is_empty() {
            facts.push(("again with", format!("--stages {}", changes.stages)));
        }
    }
    let facts = facts.into_iter().map(|(name, words)| (name.to_owned(), words)).collect();
    Section::new("Method", vec![Block::Text(model.into()), Block::Facts(facts)])
}

/// Change of the load, with its time.
fn change(made: &RunChange) -> String {
    let at = ValueUnit::Seconds.format(made.t_s);
    match made.kind {
        ChangeKind::Rate => format!("{}/s at {at}", number_format::rate(made.level)),
        ChangeKind::Users => format!("{} users at {at}", made.level),
        kind => format!("{} at {at}", kind.name()),
    }
}

/// The first and the last of many changes.
fn shortened(mut made: Vec<String>) -> String {
    const MAX_CHANGES: usize = 12;
    if made.len() > MAX_CHANGES {
        let left_out = made.len() - MAX_CHANGES;
        made.splice(MAX_CHANGES / 2..made.len() - MAX_CHANGES / 2, [format!("{left_out} more")]);
    }
    made.join(", ")
}

pub(super) fn manifest(run: &Run) -> Section {
    let of_service = [("service", &run.target.server), ("TLS", &run.target.tls)];
    let of_service = of_service.map(|(name, words)| (name, words.clone().unwrap_or_default()));
    manifest_section(&run.weir, &run.manifest, &of_service)
}
