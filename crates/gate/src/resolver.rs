//! Names of upstreams, resolved anew from time to time. One event loop does it for all.
//!
//! Until the first success an upstream has its names as hosts, which are resolved for each connection; so a gateway starts
//! while its resolver is down. A resolver that fails, or knows no address, changes nothing.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use super::config::HostConfig;
use super::config_cell::ConfigCell;
use super::runtime::{UpstreamRuntime, connect_options};
use weir_call::{CallEngine, UpstreamHost};
use weir_decide::Nanos;
use weir_http::client::{ConnectOptions, Origin};
use weir_http::target::Target;
use weir_server::Logger;

/// Interval of looking for upstreams of a reload.
const RELOAD_POLL_INTERVAL: Nanos = Nanos::SECOND;
/// Timeout of a name.
const RESOLVE_TIMEOUT: Nanos = Nanos::from_secs(10);

/// Starts to resolve the names of the current configuration and of all that replace it.
pub(super) fn start(current: Arc<ConfigCell>, engine: CallEngine, logger: Logger) {
    tokio::task::spawn_local(async move {
        let running = Rc::new(RefCell::new(HashSet::new()));
        loop {
            for (name, upstream) in &current.get().upstreams {
                let Some(interval) = upstream.config.resolve else { continue };
                // An upstream that a reload has not changed is the same object.
                let identity = Arc::as_ptr(&upstream.upstream) as usize;
                if running.borrow_mut().insert(identity) {
                    let (engine, running, logger) = (engine.clone(), Rc::clone(&running), logger.clone());
                    let mut names = ResolvedNames::new(name, upstream);
                    let upstream = Arc::downgrade(&upstream.upstream);
                    tokio::task::spawn_local(async move {
                        while upstream.strong_count() > 0 {
                            names.resolve(&engine, &logger).await;
                            if let Some(upstream) = upstream.upgrade() {
                                upstream.set_hosts(engine.timer().now(), names.hosts());
                            }
                            engine.timer().sleep(interval).await;
                        }
                        running.borrow_mut().remove(&identity);
                    });
                }
            }
            engine.timer().sleep(RELOAD_POLL_INTERVAL).await;
        }
    });
}

/// Hosts of an upstream with the addresses that their names had last.
struct ResolvedNames {
    upstream: String,
    options: ConnectOptions,
    hosts: Vec<ResolvedHost>,
}

struct ResolvedHost {
    config: HostConfig,
    target: Target,
    /// Addresses in order; None before the first success.
    addresses: Option<BTreeSet<SocketAddr>>,
    /// Whether the last attempt failed.
    has_failed: bool,
}

impl ResolvedNames {
    fn new(name: &str, upstream: &UpstreamRuntime) -> Self {
        let options = connect_options(&upstream.config, None, upstream.tls.clone());
        let host = |config: &HostConfig| {
            // Valid, since the upstream has been made of it.
            let target = Target::parse(&config.url).ok()?;
            Some(ResolvedHost { config: config.clone(), target, addresses: None, has_failed: false })
        };
        let hosts = upstream.config.hosts.iter().filter_map(host).collect();
        Self { upstream: name.to_owned(), options, hosts }
    }

    /// Resolves all names once.
    async fn resolve(&mut self, engine: &CallEngine, logger: &Logger) {
        for host in self.hosts.iter_mut().filter(|host| host.config.has_name()) {
            let found = tokio::select! {
                found = tokio::net::lookup_host((host.target.host.as_str(), host.target.port)) => {
                    found.map(BTreeSet::<SocketAddr>::from_iter).map_err(|error| error.to_string())
                }
                () = engine.timer().sleep(RESOLVE_TIMEOUT) => Err(format!("no response within {RESOLVE_TIMEOUT}")),
            };
            match found {
                Ok(addresses) if !addresses.is_empty() => {
                    host.addresses = Some(addresses);
                    host.has_failed = false;
                }
                failed => {
                    let why = failed.err().unwrap_or_else(|| "it has no address".to_owned());
                    // Once per outage.
                    if !std::mem::replace(&mut host.has_failed, true) {
                        let (upstream, name) = (&self.upstream, &host.target.host);
                        logger.log(&format!(
                            "upstream {upstream}: {name} cannot be resolved, and keeps its hosts: {why}"
                        ));
                    }
                }
            }
        }
    }

    /// All hosts: of a name one per address.
    fn hosts(&self) -> Vec<UpstreamHost> {
        let mut all = Vec::new();
        for host in &self.hosts {
            let weight = host.config.weight;
            let mut push = |options: &ConnectOptions| {
                // It was possible when the upstream was made.
                if let Ok(origin) = Origin::new(&host.target, options) {
                    all.push(UpstreamHost { origin: Arc::new(origin), weight });
                }
            };
            match &host.addresses {
                Some(addresses) => {
                    for address in addresses {
                        push(&ConnectOptions { address: Some(*address), ..self.options.clone() });
                    }
                }
                None => push(&ConnectOptions { socket: host.config.socket.clone(), ..self.options.clone() }),
            }
        }
        all
    }
}
