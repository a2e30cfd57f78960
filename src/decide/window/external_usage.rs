//! The usage of others: what a service reports of a limit, compared with what is counted here.
//!
//! A report is of one moment between a request's send and its response. Two bounds hold for the service's count at that
//! moment, whatever the order of arrivals was:
//!
//! - **Proof.** Without others it is at most what was counted here at the send, the request itself, what was sent since, and
//!   what was booked for others since. More than that is another user's (or the limit is lower than stated), and stays booked:
//!   all requests of that moment report the same difference, and each of them finds it booked.
//! - **Ceiling.** What has a response was judged before that response, so the latest of all moments reported covers
//!   it: the service counts at most the latest count reported and what is still in flight. Of two reports of requests that were
//!   in flight together the higher one is the later one, since each request that is judged adds to the count; one whose
//!   request was sent after another's response is later in any case.
//!
//! What is booked lies between them: requests arrive about in the order of their sending, so those sent since are taken
//! not to be in the report. Those that were (they overtook it) are counted twice, at their send and in the report, until
//! their responses are here: until then they are in flight, and then the ceiling takes them back. So the count believed is at
//! most the service's own and what is in flight, once. What is proven is never taken back, nor is what was sent here: a
//! service whose reports lag behind its count changes neither.
//!
//! Of limits below 200 likely differences are booked at the first report alone, and not taken back: a request sent for what was
//! taken back too soon (an outcome that is unknown, a report that is lost) would be rejected, and those limits are kept to exactly.
//! What is believed there may exceed the service's count by what was sent until that report, too, until the window has passed.
//!
//! Sums are of all that was ever counted, so that what windows forget meanwhile counts on both sides.

use super::Nanos;
use super::limit_estimate::HIGH_LIMIT;

/// What was booked for other users of a limit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExternalUsage {
    /// All that was ever booked and not taken back.
    booked: i128,
    /// What of it was likely and not proven, and has not been taken back; and when it was booked last.
    unproven: i128,
    booked_at: Nanos,
    /// When a response reported on this limit first.
    first_report_at: Option<Nanos>,
    /// Others were seen to spend from it: from then on likely differences are booked, and not only proven ones.
    is_shared: bool,
    latest: Option<LatestReport>,
}

/// The latest moment of which there is a report.
#[derive(Clone, Copy, Debug)]
struct LatestReport {
    /// The count, with all that windows had forgotten when its response came.
    count: i128,
    /// All that had been sent by then.
    total_sent: u64,
}

/// What had been seen of others when a request was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExternalSnapshot {
    booked: i128,
    is_reported: bool,
}

/// One report, and the count here.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountReport {
    pub(super) counted: u64,
    /// At the send of its request: what was counted, the request included; all that was ever sent; what was seen of others.
    pub(super) at_send: (u64, u64, ExternalSnapshot),
    /// What was sent after it.
    pub(super) sent_later: u64,
    /// What is in flight now, without its request.
    pub(super) in_flight: u64,
    /// What is counted now, what is on its way included; what of it has arrived; all that ever arrived; all that was ever sent.
    pub(super) local_count: u64,
    pub(super) local_arrived: u64,
    pub(super) total_arrived: i128,
    pub(super) total_sent: u64,
    /// What the limit is, and how long it counts.
    pub(super) limit: u64,
    pub(super) per: Nanos,
}

impl ExternalUsage {
    pub(super) fn snapshot(&self) -> ExternalSnapshot {
        ExternalSnapshot { booked: self.booked, is_reported: self.first_report_at.is_some() }
    }

    pub(super) fn mark_shared(&mut self) {
        self.is_shared = true;
    }

    /// What is left to others of a limit that they spend from, too: what they take until there is a report of it.
    pub(super) fn reserve(&self, limit: u64) -> u64 {
        if self.is_shared { limit / 100 } else { 0 }
    }

    /// When a difference was booked last.
    pub(super) fn booked_at(&self) -> Nanos {
        self.booked_at
    }

    /// A request ended without a report: it may have been judged after the latest moment.
    pub(super) fn ended_unreported(&mut self, amount: u64) {
        if let Some(latest) = &mut self.latest {
            latest.count += i128::from(amount);
        }
    }

    /// What is to be booked on account of this report; below zero: to be taken back.
    pub(super) fn apply_report(&mut self, report: &CountReport, now: Nanos) -> i128 {
        let (used, sent, seen) = report.at_send;
        let counted = i128::from(report.counted);
        let likely = (i128::from(used) + self.booked - seen.booked).max(0);
        let most = likely + i128::from(report.sent_later);
        let first = *self.first_report_at.get_or_insert(now);
        // The first reports are of what was spent before; a later proof is of a user that goes on.
        self.is_shared |= counted > most && seen.is_reported && report.limit >= HIGH_LIMIT;
        let books = counted > most || (counted > likely && (self.is_shared || first == now));
        let more = if books { counted - likely } else { 0 };
        let proven = (counted - most).max(0);
        if now > self.booked_at + report.per + report.per {
            // All of it is forgotten.
            self.unproven = 0;
        }
        if books {
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
        let believed = report.total_arrived + i128::from(report.local_count - report.local_arrived) + more;
        // A low limit is exact: what is taken back too soon would be rejected.
        let most_back = if report.limit >= HIGH_LIMIT { self.unproven.max(0) } else { 0 };
        let back = (believed - ceiling).clamp(0, most_back);
        self.unproven -= back;
        self.booked += more - back;
        more - back
    }
}
