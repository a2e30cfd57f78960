//! Progress of a sender.

use super::hosts::{HostProgress, SenderHosts};
use crate::options::Options;
use weir_decide::Nanos;
use weir_decide::delivery::dispatch::{Dispatch, HostId};
use weir_decide::delivery::key_window::KeyWindows;

/// Progress of a sender.
#[derive(Clone, Debug, Default)]
pub struct SenderProgress {
    /// Leased jobs that are not sent yet.
    pub ready: usize,
    /// Requests in flight.
    pub in_flight: usize,
    /// Number of usable keys.
    pub usable_keys: usize,
    /// Delay bound: the maximum one-way delay to the service, given or learned.
    pub delay_bound: Option<Nanos>,
    /// By key: requests per second that its limits allow at the hosts with work, as estimated; 0 for a disabled key.
    pub allowed_per_s: Vec<f64>,
    /// Hosts that are down.
    pub hosts_down: Vec<HostProgress>,
}

/// Maximum number of hosts whose allowed rates are summed.
const MAX_SUMMED_HOSTS: usize = 256;

impl SenderProgress {
    /// Current progress.
    pub(super) fn of(options: &Options, dispatch: &Dispatch, hosts: &SenderHosts) -> Self {
        let (ready, _, in_flight) = dispatch.sizes();
        let keys = 0..u32::try_from(options.keys.len()).unwrap_or(u32::MAX);
        Self {
            ready,
            in_flight,
            usable_keys: dispatch.usable_keys(),
            delay_bound: dispatch.delay_bound(),
            allowed_per_s: keys.map(|key| allowed_per_s(options, dispatch, hosts, key)).collect(),
            hosts_down: hosts.down(dispatch),
        }
    }
}

/// Requests per second that a key may send to all hosts with work; without work, to the fastest host.
fn allowed_per_s(options: &Options, dispatch: &Dispatch, hosts: &SenderHosts, key: u32) -> f64 {
    let hosts = || hosts.names().map(|(host, _)| host).take(MAX_SUMMED_HOSTS);
    let is_busy = |host: &HostId| {
        let status = dispatch.host_status(*host);
        status.is_some_and(|host| host.queued + host.in_flight > 0 && host.down_for.is_none())
    };
    let allowed = |host: HostId| dispatch.allowed_per_s(host, key);
    if hosts().any(|host| is_busy(&host)) {
        hosts().filter(is_busy).map(allowed).sum()
    } else {
        let unlimited = || KeyWindows::new(&options.rules.key).rate_per_s();
        hosts().map(allowed).reduce(f64::max).unwrap_or_else(unlimited)
    }
}
