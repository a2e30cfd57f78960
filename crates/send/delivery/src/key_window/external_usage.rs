//! Usage of a limit by other clients: reports of the service, compared with the count here.
//!
//! A report is of one moment between a request's send and its response. Two bounds hold for the service's count at that
//! moment, whatever the order of arrivals was:
//!
//! - **Proof.** Without other clients it is at most the count here at the send, the request itself, what was sent
//!   since, and what was booked for others since. A higher report proves usage by others (or a limit lower than stated)
//!   and stays booked: all requests of that moment report the same difference, and each finds it booked.
//! - **Ceiling.** A request with a response was counted before it, so the latest of all reported moments covers it: the
//!   service counts at most the latest reported count and what is still in flight. Of two reports of requests that were
//!   in flight together the higher one is later, since each request adds to the count; a request sent after another's
//!   response is later in any case.
//!
//! The booked amount lies between the two: requests arrive about in the order of their sends, so those sent since are
//! assumed not to be in the report. Those that overtook it are counted twice, at their send and in the report, until
//! their responses come; then the ceiling takes them back. So the count here is at most the service's own plus what is
//! in flight, once. Proven usage is never taken back, nor are requests sent here: a service whose reports lag behind
//! its count changes neither.
//!
//! For limits below 200 likely differences are booked at the first report only, and not taken back: a request sent on
//! an amount taken back too soon (an unknown outcome, a lost report) would be rejected, and those limits are kept
//! exactly. There the count may exceed the service's by what was sent until that report, until the window has passed.
//!
//! Sums are of everything ever counted, so that what windows forget meanwhile counts on both sides.

use serde::{Deserialize, Serialize};

use super::Nanos;
use super::limit_estimate::HIGH_LIMIT;

/// Amount booked for other clients of a limit.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct ExternalUsage {
    /// Amount ever booked and not taken back.
    booked: i128,
    /// Likely but unproven part that has not been taken back, and the time of the last booking.
    unproven: i128,
    booked_at: Nanos,
    /// Time of the first report of this limit.
    first_report_at: Option<Nanos>,
    /// Whether other clients use the limit: then likely differences are booked, and not only proven ones.
    is_shared: bool,
    latest: Option<LatestReport>,
}

/// The latest reported moment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct LatestReport {
    /// Count, including what windows had forgotten when the response came.
    count: i128,
    /// Amount sent by then.
    total_sent: u64,
}

/// Booked usage of others when a request was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExternalSnapshot {
    booked: i128,
    is_reported: bool,
}

/// One report, and the count on this side.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountReport {
    pub(super) counted: u64,
    /// At the send of its request: the count, the request included; the amount ever sent; the usage booked for others.
    pub(super) at_send: (u64, u64, ExternalSnapshot),
    /// Amount sent after it.
    pub(super) sent_later: u64,
    /// Amount in flight now, without its request.
    pub(super) in_flight: u64,
    /// Count now, requests in transit included; its arrived part; the amounts that ever arrived and were ever sent.
    pub(super) local_count: u64,
    pub(super) local_arrived: u64,
    pub(super) total_arrived: i128,
    pub(super) total_sent: u64,
    /// The limit, and its window's length.
    pub(super) limit: u64,
    pub(super) per: Nanos,
}

impl ExternalUsage {
    pub(super) fn snapshot(&self) -> ExternalSnapshot {
        ExternalSnapshot { booked: self.booked, is_reported: self.first_report_at.is_some() }
    }

    /// Whether all sums are far from overflows.
    pub(super) fn is_valid(&self) -> bool {
        let sums = [self.booked, self.unproven, self.latest.map_or(0, |latest| latest.count)];
        sums.iter().all(|sum| sum.unsigned_abs() < super::stored_bounds::MAX_SUM)
    }

    pub(super) fn mark_shared(&mut self) {
        self.is_shared = true;
    }

    /// Amount left to other clients of a shared limit until the next report: 1%.
    pub(super) fn reserve(&self, limit: u64) -> u64 {
        if self.is_shared { limit / 100 } else { 0 }
    }

    /// Time of the last booking.
    pub(super) fn booked_at(&self) -> Nanos {
        self.booked_at
    }

    /// Takes in a request that ended without a report: it may have been counted after the latest moment.
    pub(super) fn ended_unreported(&mut self, amount: u64) {
        if let Some(latest) = &mut self.latest {
            latest.count += i128::from(amount);
        }
    }

    /// Amount to book for this report; below zero: to take back.
    pub(super) fn apply_report(&mut self, report: &CountReport, now: Nanos) -> i128 {
        let (used, sent, known) = report.at_send;
        let counted = i128::from(report.counted);
        let likely = (i128::from(used) + self.booked - known.booked).max(0);
        let max = likely + i128::from(report.sent_later);
        let first = *self.first_report_at.get_or_insert(now);
        // The first reports show earlier usage; a later proof shows a client that continues.
        self.is_shared |= counted > max && known.is_reported && report.limit >= HIGH_LIMIT;
        let is_booked = counted > max || (counted > likely && (self.is_shared || first == now));
        let more = if is_booked { counted - likely } else { 0 };
        let proven = (counted - max).max(0);
        if now > self.booked_at + report.per + report.per {
            // The windows have forgotten all of it.
            self.unproven = 0;
        }
        if is_booked {
            self.unproven += more - proven;
            self.booked_at = now;
        }
        let count = counted + report.total_arrived - i128::from(report.local_arrived);
        let latest = match self.latest {
            Some(latest) if sent < latest.total_sent && count < latest.count => latest,
            _ => LatestReport { count, total_sent: report.total_sent },
        };
        self.latest = Some(latest);
        let ceiling = latest.count + i128::from(report.in_flight);
        let local = report.total_arrived + i128::from(report.local_count - report.local_arrived) + more;
        // A low limit is exact: a request on an amount taken back too soon would be rejected.
        let max_back = if report.limit >= HIGH_LIMIT { self.unproven.max(0) } else { 0 };
        let back = (local - ceiling).clamp(0, max_back);
        self.unproven -= back;
        self.booked += more - back;
        more - back
    }
}
