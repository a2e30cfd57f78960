//! Progress of a sender.

use super::super::channels::RecordEvent;
use super::AttemptLoop;
use super::hosts::{HostProgress, SenderHosts};
use crate::api_key::ApiKey;
use crate::key_pause::PauseRecord;
use crate::options::Options;
use weir_base::Nanos;
use weir_delivery::dispatch::{Dispatch, DispatchSizes, HostId, LimitTimes, SendLimit};
use weir_delivery::key_window::KeyWindows;
use weir_machine::lock::lock;

/// Snapshot of a sender: jobs, keys, hosts, pauses and the limit that holds it.
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
    /// Pauses of keys by responses, the longest first; at most 64.
    pub pauses: Vec<PauseRecord>,
    /// Whether nothing is sent, since there is no space for results.
    pub has_no_space: bool,
    /// Time so far for which each limit held the next job.
    pub limit_times: LimitTimes,
    /// Limit that held the jobs for most of the latest second; None before the first one.
    pub limited_by: Option<SendLimit>,
}

/// Maximum number of hosts whose allowed rates are summed.
const MAX_SUMMED_HOSTS: usize = 256;

impl SenderProgress {
    /// Current progress.
    pub(super) fn of(
        options: &Options,
        dispatch: &Dispatch,
        hosts: &SenderHosts,
        now: Nanos,
        has_no_space: bool,
    ) -> Self {
        let DispatchSizes { queued: ready, leased: in_flight, .. } = dispatch.sizes();
        let keys = 0..u32::try_from(options.keys.len()).unwrap_or(u32::MAX);
        Self {
            ready,
            in_flight,
            usable_keys: dispatch.usable_keys(),
            delay_bound: dispatch.delay_bound(),
            allowed_per_s: keys.map(|key| allowed_per_s(options, dispatch, hosts, key)).collect(),
            hosts_down: hosts.down(dispatch),
            pauses: hosts.pauses(dispatch, now),
            has_no_space,
            limit_times: dispatch.limit_times(now),
            limited_by: None,
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

impl AttemptLoop {
    /// Shows the current progress.
    pub(super) fn update_progress(&self) {
        let (options, now) = (&self.context.options, self.context.timer.now());
        let mut next = SenderProgress::of(options, &self.dispatch, &self.hosts, now, self.is_listener_full);
        let mut shown = lock(&self.progress);
        next.limited_by = shown.limited_by;
        *shown = next;
    }

    /// Shows the current progress, and what has limited the second before it.
    pub(super) fn on_second(&mut self) {
        self.update_progress();
        let mut shown = lock(&self.progress);
        shown.limited_by = shown.limit_times.since(&self.earlier_limits).binding();
        self.earlier_limits = shown.limit_times.clone();
        drop(shown);
        // Other processes may end the last jobs without a notification.
        if self.context.shares_keys() {
            self.end.check();
        }
    }

    /// Shows pauses that an earlier run has begun, and keeps them in the store.
    pub(super) fn show_resumed_pauses(&mut self) {
        self.noted_pauses = self.dispatch.pause_changes();
        self.update_progress();
        let all = self.hosts.pauses(&self.dispatch, self.context.timer.now());
        for (number, key) in (0..).zip(&self.context.options.keys) {
            let of_key: Vec<PauseRecord> = all.iter().filter(|pause| pause.key == key.name()).cloned().collect();
            if !of_key.is_empty() {
                self.outcomes.record(RecordEvent::Paused(number, of_key));
            }
        }
    }

    /// Shows and stores pauses that have just begun by a response to this key: while a sender pauses, nothing else
    /// happens that would.
    pub(super) fn note_pauses(&mut self, key: usize) {
        if self.noted_pauses == self.dispatch.pause_changes() {
            return;
        }
        self.noted_pauses = self.dispatch.pause_changes();
        self.update_progress();
        let all = self.hosts.pauses(&self.dispatch, self.context.timer.now());
        let Some((number, name)) = u32::try_from(key).ok().zip(self.context.options.keys.get(key).map(ApiKey::name))
        else {
            return;
        };
        let of_key = all.into_iter().filter(|pause| pause.key == name).collect();
        self.outcomes.record(RecordEvent::Paused(number, of_key));
        self.outcomes.record(RecordEvent::HighWater(number, self.marks.high_water(key)));
    }
}
