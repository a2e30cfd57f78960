//! Names of upstreams, resolved anew from time to time. One event loop does it for all.
//!
//! By the system's resolver, which follows all of `/etc` and does not report how long a response is valid; or by DNS of the
//! gateway's own (`dns`). Until the first success an upstream has its names as hosts, so a gateway starts while its
//! resolver is down. A resolver that fails, or knows no address, changes nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use rustls::ClientConfig;
use tokio::task::JoinSet;

use super::config::{HostConfig, ResolveInterval, UpstreamConfig};
use super::config_cell::ConfigCell;
use super::dns::{LookupName, LookupSchedule, NameLookup, ResolvedAddresses};
use super::runtime::{UpstreamRuntime, host_origin};
use weir_base::Nanos;
use weir_call::{CallEngine, Upstream, UpstreamHost};
use weir_machine::executor::spawn_task;
use weir_machine::logger::Logger;
use weir_machine::timer::Timer;
use weir_net::client::PendingAddresses;
use weir_resilience::upstream::hosts::MAX_HOSTS;

/// Largest weight of a host in load balancing, which multiplies it by a hundred.
const MAX_WEIGHT: u64 = 1_000_000;
/// Timeout of a name at the system's resolver.
const RESOLVE_TIMEOUT: Nanos = Nanos::from_secs(10);

/// Starts to resolve the names of the current configuration and of all that replace it.
pub(super) fn start(current: Arc<ConfigCell>, engine: CallEngine, logger: Logger) {
    spawn_task(async move {
        let running = Rc::new(RefCell::new(HashSet::new()));
        loop {
            for (_, upstream) in &current.get().upstreams {
                if upstream.config.resolve.is_none() || !upstream.config.hosts.iter().any(HostConfig::has_name) {
                    continue;
                }
                // An upstream that a reload has not changed is the same object.
                let identity = Arc::as_ptr(&upstream.upstream) as usize;
                if running.borrow_mut().insert(identity) {
                    let (running, engine, logger) = (Rc::clone(&running), engine.clone(), logger.clone());
                    let names = ResolvedNames::new(upstream);
                    spawn_task(async move {
                        keep_resolved(names, &engine, &logger).await;
                        running.borrow_mut().remove(&identity);
                    });
                }
            }
            current.replaced().await;
        }
    });
}

/// Resolves the names of an upstream, each at its own times, until nothing has the upstream any more.
async fn keep_resolved(names: ResolvedNames, engine: &CallEngine, logger: &Logger) {
    let lookups = names.lookups(engine.timer());
    let names = Rc::new(RefCell::new(names));
    let mut tasks = JoinSet::new();
    for (index, mut lookup) in lookups {
        let (names, engine, logger) = (Rc::clone(&names), engine.clone(), logger.clone());
        tasks.spawn_local(async move {
            while names.borrow().upstream.strong_count() > 0 {
                let found = lookup.resolve(engine.timer()).await;
                let wait = lookup.wait_after(&found);
                names.borrow_mut().set(index, found, engine.timer().now(), &logger);
                engine.timer().sleep(wait).await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

/// Look-ups of one host's name.
struct HostLookup {
    source: LookupSource,
    schedule: LookupSchedule,
}

enum LookupSource {
    /// The system's resolver, in each interval.
    System(String, u16, Nanos),
    Dns(NameLookup),
}

impl HostLookup {
    async fn resolve(&mut self, timer: &Timer) -> Result<ResolvedAddresses, String> {
        match &mut self.source {
            LookupSource::System(host, port, _) => {
                let found = tokio::select! {
                    found = tokio::net::lookup_host((host.as_str(), *port)) => found.map_err(|error| error.to_string())?,
                    () = timer.sleep(RESOLVE_TIMEOUT) => return Err(format!("no response within {RESOLVE_TIMEOUT}")),
                };
                let hosts: BTreeMap<SocketAddr, u32> = found.map(|address| (address, 1)).collect();
                if hosts.is_empty() {
                    return Err("it has no address".to_owned());
                }
                Ok(ResolvedAddresses { hosts, ttl_s: 0, partial_failure: None })
            }
            LookupSource::Dns(lookup) => lookup.resolve().await,
        }
    }

    /// Wait until the next look-up.
    fn wait_after(&mut self, found: &Result<ResolvedAddresses, String>) -> Nanos {
        match (&self.source, found) {
            (LookupSource::System(.., interval), _) => *interval,
            (_, Ok(found)) => self.schedule.after_success(found.ttl_s, found.partial_failure.is_none()),
            (_, Err(_)) => self.schedule.after_failure(),
        }
    }
}

/// Hosts of an upstream with the addresses that their names had last.
struct ResolvedNames {
    /// The look-ups end with it.
    upstream: Weak<Upstream>,
    config: UpstreamConfig,
    tls: Option<Arc<ClientConfig>>,
    hosts: Vec<ResolvedHost>,
    /// Whether there were more addresses than an upstream can have hosts.
    has_too_many: bool,
}

struct ResolvedHost {
    config: HostConfig,
    /// Addresses that connections wait for until the first success.
    pending: Option<Arc<PendingAddresses>>,
    /// None before the first success.
    addresses: Option<BTreeMap<SocketAddr, u32>>,
    /// Whether the last attempt failed, in whole or in part.
    has_failed: bool,
}

impl ResolvedNames {
    fn new(upstream: &UpstreamRuntime) -> Self {
        let hosts = upstream.config.hosts.iter().zip(&upstream.pending).map(|(config, pending)| ResolvedHost {
            config: config.clone(),
            pending: pending.clone(),
            addresses: None,
            has_failed: false,
        });
        Self {
            upstream: Arc::downgrade(&upstream.upstream),
            hosts: hosts.collect(),
            config: upstream.config.clone(),
            tls: upstream.tls.clone(),
            has_too_many: false,
        }
    }

    /// Look-ups of all names, each with the index of its host.
    fn lookups(&self, timer: &Timer) -> Vec<(usize, HostLookup)> {
        let config = &self.config;
        let interval = match config.resolve {
            Some(ResolveInterval::Fixed(interval)) => Some(interval),
            Some(ResolveInterval::Ttl) | None => None,
        };
        let lookup = |(index, host): (usize, &ResolvedHost)| {
            if !host.config.has_name() {
                return None;
            }
            // Valid, since the upstream has been made of it.
            let target = host.config.target().ok()?;
            let name = match host.config.service_name() {
                Some(service) => LookupName::Service(service.to_owned()),
                None => LookupName::Host(target.host.clone(), target.port),
            };
            let source = match interval {
                Some(interval) if !config.asks_dns(&host.config) => {
                    LookupSource::System(target.host, target.port, interval)
                }
                _ => LookupSource::Dns(NameLookup::new(name, config.resolver.clone(), timer)),
            };
            Some((index, HostLookup { source, schedule: LookupSchedule::new(interval) }))
        };
        self.hosts.iter().enumerate().filter_map(lookup).collect()
    }

    /// Takes over the outcome of a look-up.
    fn set(&mut self, index: usize, found: Result<ResolvedAddresses, String>, now: Nanos, logger: &Logger) {
        let host = &mut self.hosts[index];
        let failure = match found {
            Ok(found) => {
                if let Some(pending) = &host.pending {
                    pending.found(found.hosts.keys().copied().collect());
                }
                host.addresses = Some(found.hosts);
                found.partial_failure.map(|why| (" in part, and keeps what it has of the rest", why))
            }
            Err(why) => {
                if let Some(pending) = host.pending.as_ref().filter(|_| host.addresses.is_none()) {
                    pending.failed(&why);
                }
                Some((", and keeps its hosts", why))
            }
        };
        // Once per outage.
        if !std::mem::replace(&mut host.has_failed, failure.is_some())
            && let Some((what, why)) = failure
        {
            let name = host.config.lookup_name();
            logger.log(&format!("upstream {}: {name} cannot be resolved{what}: {why}", self.config.name));
        }
        let Some(upstream) = self.upstream.upgrade() else { return };
        let hosts = self.upstream_hosts();
        let has_too_many = hosts.len() > MAX_HOSTS;
        if !std::mem::replace(&mut self.has_too_many, has_too_many) && has_too_many {
            let (name, count) = (&self.config.name, hosts.len());
            logger.log(&format!("upstream {name}: its names have {count} addresses, of which {MAX_HOSTS} are used"));
        }
        upstream.set_hosts(now, hosts);
    }

    /// All hosts: of a name one per address.
    fn upstream_hosts(&self) -> Vec<UpstreamHost> {
        let product = |host: &ResolvedHost, weight: u32| u64::from(weight) * u64::from(host.config.weight);
        let weights = |host: &ResolvedHost| host.addresses.iter().flatten().map(|(_, it)| *it).max().unwrap_or(1);
        let most = self.hosts.iter().map(|host| product(host, weights(host))).max().unwrap_or(1);
        let mut all = Vec::new();
        for host in &self.hosts {
            let mut push = |address, weight| {
                let weight = scaled_weight(product(host, weight), most);
                let (pending, tls) = (host.pending.as_ref(), self.tls.clone());
                // It was possible when the upstream was made.
                if let Ok(origin) = host_origin(&self.config, &host.config, address, pending, tls) {
                    all.push(UpstreamHost { origin: Arc::new(origin), weight });
                }
            };
            match &host.addresses {
                Some(addresses) => {
                    for (address, weight) in addresses {
                        push(Some(*address), *weight);
                    }
                }
                None => push(None, 1),
            }
        }
        all
    }
}

/// A weight of a record times that of its URL, at most [`MAX_WEIGHT`]; `most` is the largest of an upstream.
fn scaled_weight(product: u64, most: u64) -> u32 {
    let scaled = if most > MAX_WEIGHT {
        u128::from(product) * u128::from(MAX_WEIGHT) / u128::from(most)
    } else {
        product.into()
    };
    u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn scaled_weights_keep_their_proportions(weights in proptest::collection::vec(1u64..65_535_000, 1..9)) {
            let most = weights.iter().copied().max().unwrap();
            for weight in weights {
                let scaled = scaled_weight(weight, most);
                prop_assert!((1..=MAX_WEIGHT).contains(&u64::from(scaled)));
                let exact = weight as f64 * (MAX_WEIGHT as f64 / most as f64).min(1.0);
                prop_assert!((f64::from(scaled) - exact).abs() < 1.0, "{scaled} {exact}");
            }
        }
    }
}
