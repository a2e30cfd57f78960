//! Log of changes of hosts, circuits and throttling: one line per change, with its cause. One event loop writes it.

use std::sync::Arc;

use super::config_cell::ConfigCell;
use super::runtime::{GateRuntime, UpstreamRuntime};
use weir_base::Nanos;
use weir_call::Upstream;
use weir_machine::executor::spawn_task;
use weir_machine::logger::Logger;
use weir_machine::timer::Timer;
use weir_resilience::upstream::condition_log::{ConditionLog, hosts_line};

/// Starts the log of the current configuration and of all that replace it.
pub(super) fn start(current: Arc<ConfigCell>, timer: Timer, logger: Logger) {
    spawn_task(async move {
        let mut log = ConditionLog::default();
        let mut known = KnownHosts::of(&current.get(), timer.now());
        let mut watched: Vec<(String, Arc<Upstream>)> = Vec::new();
        loop {
            // Changes of an upstream that a reload has replaced come before the replacement.
            log_changes(&watched, &mut log, &logger);
            let runtime = current.get();
            for (name, line) in known.replaced_by(&runtime, timer.now()) {
                logger.log(&format!("upstream {name}: {line}"));
            }
            watched = runtime.upstreams.iter().map(|(name, it)| (name.clone(), Arc::clone(&it.upstream))).collect();
            drop(runtime);
            // Nothing else notices that calls are no longer throttled.
            watched.iter().for_each(|(_, upstream)| upstream.end_throttling(timer.now()));
            log_changes(&watched, &mut log, &logger);
            log.due(timer.now()).iter().for_each(|line| logger.log(line));
            let throttled = watched.iter().filter_map(|(_, upstream)| upstream.throttling_until());
            let due = throttled.chain([log.next_due()]).min().unwrap_or(Nanos::NEVER);
            tokio::select! {
                () = current.conditions_changed() => {}
                () = timer.sleep_until(due), if due < Nanos::NEVER => {}
            }
        }
    });
}

fn log_changes(upstreams: &[(String, Arc<Upstream>)], log: &mut ConditionLog, logger: &Logger) {
    for (name, upstream) in upstreams {
        for change in upstream.take_changes() {
            let subject = match &change.host {
                Some(host) => format!("upstream {name}: {host} "),
                None => format!("upstream {name}: "),
            };
            if let Some(line) = log.changed(change.at, change.kind, &subject, &change.line) {
                logger.log(&line);
            }
        }
    }
}

/// Upstreams of the latest configuration: name, identity, and names of the hosts.
struct KnownHosts(Vec<(String, usize, Vec<String>)>);

impl KnownHosts {
    fn of(runtime: &GateRuntime, now: Nanos) -> Self {
        let of_upstream = |(name, upstream): &(String, UpstreamRuntime)| {
            let hosts = upstream.upstream.hosts(now).iter().map(|host| host.origin.name().to_owned()).collect();
            (name.clone(), identity(upstream), hosts)
        };
        Self(runtime.upstreams.iter().map(of_upstream).collect())
    }

    /// Lines, with the names of their upstreams, of the hosts that a reload has added and removed. Those that DNS adds
    /// and removes are changes of the upstream itself.
    fn replaced_by(&mut self, runtime: &GateRuntime, now: Nanos) -> Vec<(String, String)> {
        let is_same =
            self.0.len() == runtime.upstreams.len()
                && self.0.iter().zip(&runtime.upstreams).all(|(known, (name, upstream))| {
                    (known.0.as_str(), known.1) == (name.as_str(), identity(upstream))
                });
        if is_same {
            return Vec::new();
        }
        let before = std::mem::replace(self, Self::of(runtime, now)).0;
        let mut lines = Vec::new();
        for (name, id, hosts) in &self.0 {
            let found = before.iter().find(|(known, ..)| known == name);
            let resolves = runtime.upstreams.iter().any(|(known, it)| known == name && it.config.resolve.is_some());
            if found.is_some_and(|(_, known, _)| known == id || resolves) {
                continue;
            }
            let known = found.map_or(&[][..], |(.., hosts)| hosts);
            let without = |all: &[String], others: &[String]| -> Vec<String> {
                all.iter().filter(|host| !others.contains(host)).cloned().collect()
            };
            let line = hosts_line(&without(hosts, known), &without(known, hosts), hosts.len(), "by the reload");
            lines.extend(line.map(|line| (name.clone(), line)));
        }
        for (name, _, hosts) in before.iter().filter(|(name, ..)| !self.0.iter().any(|(kept, ..)| kept == name)) {
            lines.extend(hosts_line(&[], hosts, 0, "by the reload").map(|line| (name.clone(), line)));
        }
        lines
    }
}

/// Identity of an upstream: one that a reload has not changed is the same object.
fn identity(upstream: &UpstreamRuntime) -> usize {
    Arc::as_ptr(&upstream.upstream) as usize
}
