//! An undeclared limit that the server reports: no more than its remaining quota is sent until its reset.

use serde::{Deserialize, Serialize};

use super::in_flight::OutstandingRequests;
use super::{KeyWindows, LimitUnit, Nanos};
use crate::key_window::WindowSlot;
use crate::limit_headers::Quota;

/// Remaining quota of a limit that only responses report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ServerQuota {
    /// Name of the limit, as reported.
    name: String,
    unit: LimitUnit,
    remaining: u64,
    resets_at: Nanos,
    /// The limit and its longest reset; None: the limit is not reported.
    limit_and_reset: Option<(u64, Nanos)>,
    /// Whether `remaining` is assumed: a reset has passed since the last report.
    is_assumed: bool,
    /// Newest request whose response reported this limit.
    slot: WindowSlot,
    /// First reported reset.
    first_reset_at: Nanos,
    /// For a reset that moves with each request: the time of the next free slot, on average, and the time between
    /// slots.
    refill: Option<(Nanos, Nanos)>,
}

/// Resets closer than this are the same one: delays vary, and some servers round to whole seconds.
const SAME_RESET_TOLERANCE: Nanos = Nanos::from_millis(50);

impl ServerQuota {
    /// Whether the quota still applies. After its reset the full limit is assumed until the next report, for one more
    /// reset period at most.
    pub(super) fn is_active(&mut self, now: Nanos) -> bool {
        if now >= self.resets_at
            && let Some((limit, reset)) = self.limit_and_reset.take()
        {
            (self.remaining, self.resets_at, self.refill) = (limit, self.resets_at + reset, None);
            self.is_assumed = true;
        }
        now < self.resets_at
    }

    /// Time from which it does not apply.
    pub(super) fn over_by(&self) -> Nanos {
        self.resets_at + self.limit_and_reset.map_or(Nanos::ZERO, |(_, reset)| reset)
    }

    /// Earliest time at which this weight fits. A reset that moves with each request belongs to a log or a bucket,
    /// which frees a part before all of it; a `paced` sender does not wait for the full reset. After a reset only the
    /// responses in flight report what is left.
    pub(super) fn earliest(&self, weight: u64, paced: bool, is_idle: bool) -> Nanos {
        let missing = self.unit.amount(weight).saturating_sub(self.remaining);
        match self.refill {
            _ if missing == 0 || (self.is_assumed && is_idle) => Nanos::ZERO,
            Some((from, each)) if paced => (from + Nanos(each.0.saturating_mul(missing))).min(self.resets_at),
            _ => self.resets_at,
        }
    }

    pub(super) fn send(&mut self, weight: u64) {
        self.remaining = self.remaining.saturating_sub(self.unit.amount(weight));
    }

    /// Takes in another report. The response to a request sent earlier probably reports an earlier moment: it counts
    /// only where it leaves less until the same reset.
    fn update(&mut self, report: Self, now: Nanos, limit: Option<u64>) {
        let reset = report.resets_at - now;
        let rounding = if reset.0.is_multiple_of(Nanos::SECOND.0) { Nanos::SECOND } else { Nanos::ZERO };
        let same = SAME_RESET_TOLERANCE.max(Nanos(reset.0 / 20)) + rounding;
        if report.slot < self.slot {
            if report.resets_at + same >= self.resets_at {
                self.remaining = self.remaining.min(report.remaining);
            }
            return;
        }
        let moves = self.refill.is_some() || report.resets_at > self.first_reset_at + same;
        let more = limit.filter(|limit| moves && *limit > 0).map(|limit| (now, Nanos(reset.0 / limit)));
        *self = Self { first_reset_at: self.first_reset_at, refill: more, ..report };
    }
}

impl KeyWindows {
    /// Applies the quotas that the response to this request reports; called before its slot ends.
    ///
    /// A quota of a declared limit counts if it leaves less than the local count. For an undeclared limit no more is
    /// sent than remains until its reset; all requests in transit may arrive after the reported moment, so they are
    /// subtracted.
    ///
    /// A reset beyond `max_pause` is not waited for: after that time a single request asks again. The reset of a declared
    /// limit may be as far away as its window is long. Returns the time until which nothing remains, and whether the
    /// response stated a later one.
    pub fn apply_quotas(
        &mut self,
        slot: WindowSlot,
        now: Nanos,
        quotas: &[Quota],
        max_pause: Nanos,
    ) -> Option<(Nanos, bool)> {
        let now = self.advance(now);
        let mut pause: Option<(Nanos, bool)> = None;
        let open = self.in_flight.get(slot)?;
        let (snapshots, own, arrived) = (open.snapshots, open.weight, open.arrived);
        for quota in quotas {
            let meant = self.counts.iter().position(|count| {
                count.matches(quota) && quota.limit.is_some_and(|limit| limit == count.limit.window.limit())
            });
            let mut others = (0..self.counts.len()).filter(|index| self.counts[*index].matches(quota));
            let only = others.next().filter(|_| others.next().is_none());
            if let Some(index) = meant.or(only) {
                let unit = self.counts[index].limit.unit;
                let in_flight = self.in_flight.in_flight(unit).saturating_sub(unit.amount(own));
                let out =
                    OutstandingRequests { in_transit: self.in_flight.in_transit(unit, self.delay_bound), in_flight };
                let longest = max_pause.max(self.counts[index].limit.window.per());
                let bounded = Quota { reset: quota.reset.map(|reset| reset.min(longest)), ..quota.clone() };
                self.counts[index].apply_quota(&bounded, &snapshots[index], own, &out, now);
                if let Some(open) = self.in_flight.get(slot) {
                    open.snapshots[index].is_reported = quota.remaining.is_some();
                }
            } else if let (Some(remaining), Some(reset)) = (quota.remaining, quota.reset) {
                let unit = quota.unit.unwrap_or(LimitUnit::Requests);
                let own = if arrived { 0 } else { unit.amount(own) };
                let on_the_way = self.in_flight.in_transit(unit, None).total().saturating_sub(own);
                let left = remaining.saturating_sub(on_the_way);
                let is_capped = reset > max_pause;
                let reset = reset.min(max_pause);
                let (name, until) = (quota.name.clone(), now + reset);
                // What a service allows after a time that is too far away is unknown.
                let limit = if is_capped { Some(1) } else { quota.limit };
                let limit_and_reset = limit.map(|limit| (limit, reset));
                if left == 0 {
                    pause = pause.max(Some((until, is_capped)));
                }
                let report = ServerQuota {
                    name,
                    unit,
                    remaining: left,
                    resets_at: until,
                    limit_and_reset,
                    is_assumed: false,
                    slot,
                    first_reset_at: until,
                    refill: None,
                };
                match self.server_quotas.iter_mut().find(|known| known.name == report.name) {
                    Some(known) => known.update(report, now, limit),
                    None => self.server_quotas.push(report),
                }
            }
        }
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::super::{KeyLimit, KeyRules};
    use super::*;
    use weir_limits::models::{LimitModel, LimitWindow};

    const MAX_PAUSE: Nanos = Nanos::from_secs(3600);

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn windows(limit: &str) -> KeyWindows {
        let window = LimitWindow::read(limit, LimitModel::SlidingLog).expect(limit);
        KeyWindows::new(&KeyRules {
            limits: vec![KeyLimit::new(window)],
            delay_bound: Some(ms(50)),
            ..KeyRules::default()
        })
    }

    /// Sends one request, whose response reports this quota 100 ms later.
    fn exchange(windows: &mut KeyWindows, at: u64, quota: Quota) {
        let slot = windows.sent(ms(at), 1);
        windows.departed(slot, ms(at));
        windows.apply_quotas(slot, ms(at + 100), &[quota], MAX_PAUSE);
        windows.responded(slot, ms(at + 100), Nanos::NEVER);
    }

    /// Number of requests that fit at `at`, and the time of the next one.
    fn fitting(windows: &mut KeyWindows, at: u64) -> (u32, Nanos) {
        let mut count = 0;
        while windows.earliest(1) <= ms(at) {
            let slot = windows.sent(ms(at), 1);
            windows.departed(slot, ms(at));
            count += 1;
        }
        (count, windows.earliest(1))
    }

    fn reported(limit: u64, remaining: u64, reset_s: u64) -> Quota {
        Quota {
            limit: Some(limit),
            remaining: Some(remaining),
            reset: Some(Nanos::from_secs(reset_s)),
            ..Quota::default()
        }
    }

    #[test]
    fn usage_by_others_counts_from_the_report_on() {
        let mut ours = windows("20/1s");
        exchange(&mut ours, 0, reported(20, 19, 1));
        assert_eq!(fitting(&mut ours, 200), (19, ms(50 + 1001)));
        let mut shared = windows("20/1s");
        exchange(&mut shared, 0, reported(20, 5, 1));
        // The first request's slot is free before those that were reported as used at 100 ms.
        assert_eq!(fitting(&mut shared, 200), (5, ms(50 + 1001)));
        assert_eq!(fitting(&mut shared, 1051), (1, ms(100 + 1001)));
        assert_eq!(fitting(&mut shared, 1101).0, 14);
    }

    #[test]
    fn a_lower_reported_limit_holds_at_once() {
        let mut windows = windows("20/1s");
        exchange(&mut windows, 0, reported(10, 9, 1));
        assert_eq!(fitting(&mut windows, 200).0, 9);
    }

    #[test]
    fn an_undeclared_limit_holds_until_its_reset() {
        let mut windows = windows("20/1s");
        exchange(&mut windows, 0, reported(5000, 2, 60));
        assert_eq!(fitting(&mut windows, 200), (2, ms(60_100)));
        windows.advance(ms(60_100));
        assert_eq!(fitting(&mut windows, 60_100).0, 20);
    }

    #[test]
    fn a_reset_beyond_the_longest_pause_is_asked_for_with_one_request() {
        let mut windows = windows("20/1s");
        exchange(&mut windows, 0, reported(5000, 0, 9_999_999_999));
        let hour = 3_600_100;
        assert_eq!(fitting(&mut windows, hour - 1), (0, ms(hour)));
        windows.advance(ms(hour));
        assert_eq!(fitting(&mut windows, hour).0, 1);
        exchange(&mut windows, hour, reported(5000, 4000, 60));
        assert!(fitting(&mut windows, hour + 5000).0 > 10);
    }

    #[test]
    fn incomplete_reports_change_nothing() {
        let mut windows = windows("20/1s");
        exchange(&mut windows, 0, Quota { remaining: Some(0), unit: Some(LimitUnit::Requests), ..Quota::default() });
        exchange(&mut windows, 100, Quota { limit: Some(5000), remaining: Some(0), ..Quota::default() });
        exchange(&mut windows, 200, Quota::default());
        assert_eq!(fitting(&mut windows, 300).0, 17);
    }

    #[test]
    fn an_older_response_does_not_replace_a_newer_quota() {
        let mut windows = windows("20/1s");
        let (older, newer) = (windows.sent(ms(0), 1), windows.sent(ms(1), 1));
        for slot in [older, newer] {
            windows.departed(slot, ms(1));
        }
        for (slot, at, left) in [(newer, 100, 5), (older, 110, 4999)] {
            windows.apply_quotas(slot, ms(at), &[reported(5000, left, 60)], MAX_PAUSE);
            windows.responded(slot, ms(at), Nanos::NEVER);
        }
        // The older request was in flight when the newer one's response came, and may have arrived after it.
        assert_eq!(fitting(&mut windows, 200), (5, ms(60_100)));
    }
}
