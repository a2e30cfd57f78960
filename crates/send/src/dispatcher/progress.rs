//! Progress of a sender.

use super::{HostId, HostProgress, SenderRuntime, SenderState};
use weir_decide::Nanos;
use weir_decide::delivery::key_window::KeyWindows;
use weir_machine::lock::lock;

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

impl SenderRuntime {
    /// Publishes the progress for other threads.
    pub(super) fn publish_progress(&self) {
        let hand = self.state.borrow();
        let (ready, _, out) = hand.dispatch.sizes();
        let keys = 0..u32::try_from(self.options.keys.len()).unwrap_or(u32::MAX);
        *lock(&self.progress) = SenderProgress {
            ready,
            in_flight: out,
            usable_keys: hand.dispatch.usable_keys(),
            delay_bound: hand.dispatch.delay_bound(),
            allowed_per_s: keys.map(|key| self.allowed_per_s(&hand, key)).collect(),
            hosts_down: Self::hosts_down(&hand),
        };
    }

    /// Requests per second that a key may send to all hosts with work; without work, to the fastest host.
    fn allowed_per_s(&self, hand: &SenderState, key: u32) -> f64 {
        let hosts = || hand.hosts.names().map(|(host, _)| host).take(MAX_SUMMED_HOSTS);
        let is_busy = |host: &HostId| {
            hand.dispatch
                .host_status(*host)
                .is_some_and(|host| host.queued + host.in_flight > 0 && host.down_for.is_none())
        };
        let allowed = |host: HostId| hand.dispatch.allowed_per_s(host, key);
        if hosts().any(|host| is_busy(&host)) {
            hosts().filter(is_busy).map(allowed).sum()
        } else {
            hosts()
                .map(allowed)
                .reduce(f64::max)
                .unwrap_or_else(|| KeyWindows::new(&self.options.rules.key).rate_per_s())
        }
    }
}
