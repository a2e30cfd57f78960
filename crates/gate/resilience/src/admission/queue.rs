//! The queue of calls that wait for a slot.
//!
//! A queue in front of a service that is busy by chance smooths; in front of an overloaded service it stays long, and
//! every call waits for its whole length. The difference is not its length but for how long no call has come through it
//! quickly (CoDel: Nichols and Jacobson, "Controlling queue delay", 2012). So there are two modes per priority:
//!
//! - **Normal**, while now and then the queue is empty, or a call comes through it within
//!   [`overload_queue_wait`](super::AdmissionConfig::overload_queue_wait): first come first served, and calls may wait
//!   for about a service time.
//! - **Overload**, when neither has happened for about that time *and* more calls arrive than complete: calls may wait
//!   for `overload_queue_wait` only, and the newest is first, since it has the most time left. A queue that is never
//!   empty is not overload by itself: a hundred connections before fifty slots, each of which sends again after its
//!   response, wait here or in the upstream, and as long here as there.
//!
//! Waits are measured in active time, which excludes pauses of weir's own process ([`super::Pulse`]) and stalls of the
//! upstream (`StallAllowance`). The configured `max_queue_wait` is a bound by the clock, whatever was excluded.
//!
//! A call that would wait too long is rejected when it arrives, not after its wait: its caller can retry elsewhere at
//! once. A call that was queued before the overload stays, and goes first: its wait was estimated before it began.
//!
//! Each priority has a queue and a mode of its own: there may be too many calls of low priority while all of a high one
//! can be served. Below it is another queue, for calls of connections that have their share of the slots
//! (`connection_shares`): these may also wait beside a free slot.

use std::collections::VecDeque;

use super::service_rate::ServiceFlow;
use super::shed_threshold::{DemandTrend, ShedThreshold};
use super::{
    AdmissionVerdict, CallArrival, ConnectionNumber, Priority, QueueAction, QueueTicket, Rejection, RejectionReason,
    Slots,
};
use weir_base::Nanos;

/// Shortest time after which a queue counts as standing: the interval of CoDel (RFC 8289, 4.3), and more than a stall
/// of a shared host. With 50 ms, stalls of 20 to 60 ms had 0.03% to 1.4% of the calls rejected in the simulation
/// (`upstream-stalls`), by seed; with 100 ms none, and the first second of a crowd is as before.
const MIN_WAIT: Nanos = Nanos::from_millis(100);

/// Completions that the normal wait covers beyond a service time: with few slots the next one is long in coming. Chosen
/// by the simulation's scenarios.
const NORMAL_WAIT_COMPLETIONS: u64 = 8;

/// Maximum wait without overload, in normal waits: a long wait by chance is not overload. Chosen by the simulation's
/// scenarios.
const NORMAL_WAIT_FACTOR: f64 = 1.5;

/// A queued call. Its times but `latest` and the deadline are active times.
#[derive(Clone, Copy, Debug)]
struct QueuedArrival {
    ticket: QueueTicket,
    queued_at: Nanos,
    /// End of its wait, as set on arrival.
    until: Nanos,
    /// Whether it arrived under overload.
    is_under_overload: bool,
    /// End of the configured maximum wait or the deadline, whichever is first: pauses and stalls do not extend it.
    latest: Nanos,
    deadline: Nanos,
    connection: Option<ConnectionNumber>,
}

impl QueuedArrival {
    /// End of its wait, after `excluded` time of pauses and stalls.
    fn ends_at(&self, excluded: Nanos) -> Nanos {
        (self.until + excluded).min(self.latest)
    }
}

/// Queue of one priority. Its times are active times.
#[derive(Clone, Debug)]
struct PriorityClass {
    /// From the oldest to the newest.
    waiters: VecDeque<QueuedArrival>,
    /// Last time when it was empty, or a call came through it quickly.
    last_short_at: Nanos,
    /// Last rejection.
    rejected_at: Option<Nanos>,
    /// Last rejection for a deadline.
    deadline_rejected_at: Option<Nanos>,
    overloaded: bool,
}

impl PriorityClass {
    /// Detects the begin and the end of overload at active time `now`.
    fn update_overload(&mut self, now: Nanos, normal_wait: Nanos, demand: DemandTrend) {
        if self.waiters.is_empty() {
            self.last_short_at = now;
        }
        if self.overloaded {
            // Overload ends when arrivals fall below completions, or without a rejection for a normal wait.
            self.overloaded =
                demand >= DemandTrend::Steady && self.rejected_at.is_some_and(|at| now - at <= normal_wait);
        } else {
            self.overloaded = demand == DemandTrend::Growing && now - self.last_short_at > normal_wait;
            if self.overloaded {
                self.rejected_at = Some(now);
            }
        }
    }
}

/// Calls that wait for a slot, by priority.
#[derive(Clone, Debug)]
pub(super) struct CallQueue {
    /// Two for each priority, the first one for calls of connections that have their share.
    classes: [PriorityClass; 2 * Priority::ALL.len()],
    /// Configured maximum waits, without and under overload.
    max_wait: Nanos,
    overload_wait: Nanos,
    max_len: u32,
    len: u32,
    next_ticket: u64,
    /// Time so far that is not active: pauses and stalls.
    excluded_time: Nanos,
}

impl CallQueue {
    pub(super) fn new(max_wait: Nanos, overload_wait: Nanos, max_len: u32) -> Self {
        let class = PriorityClass {
            waiters: VecDeque::new(),
            last_short_at: Nanos::ZERO,
            rejected_at: None,
            deadline_rejected_at: None,
            overloaded: false,
        };
        let classes = std::array::from_fn(|_| class.clone());
        Self { classes, max_wait, overload_wait, max_len, len: 0, next_ticket: 0, excluded_time: Nanos::ZERO }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Sets the total of pauses and stalls so far; never decreases.
    pub(super) fn exclude_time(&mut self, total: Nanos) {
        self.excluded_time = self.excluded_time.max(total);
    }

    /// Active time: `now` without pauses and stalls.
    pub(super) fn active_time(&self, now: Nanos) -> Nanos {
        now - self.excluded_time
    }

    /// Whether any priority is overloaded. A connection that wants more than its share is not overload.
    pub(super) fn is_overloaded(&self) -> bool {
        self.classes.as_chunks::<2>().0.iter().any(|[_, class]| class.overloaded)
    }

    /// Usual wait without overload: a service time and [`NORMAL_WAIT_COMPLETIONS`], at least [`MIN_WAIT`].
    fn normal_wait(&self, flow: &ServiceFlow) -> Nanos {
        if self.max_wait == Nanos::NEVER {
            return self.max_wait;
        }
        if flow.service_time == Nanos::ZERO {
            return MIN_WAIT.min(self.max_wait);
        }
        let few_slots = flow.wait_for(NORMAL_WAIT_COMPLETIONS).0;
        Nanos(flow.service_time.0.saturating_add(few_slots)).max(MIN_WAIT).min(self.max_wait)
    }

    /// Maximum wait of a call of this priority that arrives now.
    fn wait_limit(&self, class: usize, flow: &ServiceFlow) -> Nanos {
        if self.classes[class].overloaded {
            return self.overload_wait;
        }
        Nanos((self.normal_wait(flow).0 as f64 * NORMAL_WAIT_FACTOR) as u64).min(self.max_wait)
    }

    /// Decides on a call that found no free slot a moment ago: it runs, waits, or is rejected. In this order:
    ///
    /// 1. A slot that became free meanwhile is taken, unless a call of this or a higher priority waits for it, or the
    ///    call's connection has its share.
    /// 2. The wait until its turn is estimated from the calls ahead and the completions per second. A call whose
    ///    response would miss its deadline is rejected, and one that would wait longer than [`Self::wait_limit`]. (A
    ///    call with no other ahead may wait: its turn is the next completion.)
    /// 3. Under overload the newest is served first; when calls that arrived under overload can no longer all be served
    ///    in time, their oldest, which has the least time left, is rejected for this one.
    /// 4. In a full queue, the oldest call of the lowest priority below this one is rejected, or else this one.
    ///
    /// `actions` receives the rejections of others.
    pub(super) fn arrive(
        &mut self,
        now: Nanos,
        (call, is_over_share): (&CallArrival, bool),
        flow: &ServiceFlow,
        slots: &Slots,
        shed: &ShedThreshold,
        actions: &mut Vec<QueueAction>,
    ) -> AdmissionVerdict {
        let class = 2 * call.priority.index() + usize::from(!is_over_share);
        let (active_now, normal_wait) = (self.active_time(now), self.normal_wait(flow));
        self.classes[class].update_overload(active_now, normal_wait, shed.demand_trend(class / 2, flow));
        // Published before the second look at the slots: see `Slots::try_acquire`.
        slots.set_waiting(self.len + 1);
        let higher: usize = self.classes[class + 1..].iter().map(|class| class.waiters.len()).sum();
        if !is_over_share && higher == 0 && self.classes[class].waiters.is_empty() && slots.try_take() {
            return AdmissionVerdict::Run;
        }
        let (max_wait, overloaded) = (self.wait_limit(class, flow), self.classes[class].overloaded);
        let same_class = self.classes[class].waiters.len();
        // Calls from before the overload keep their turn; those that arrived under overload are overtaken by newer
        // ones.
        let before_overload = self.classes[class].waiters.partition_point(|waiter| !waiter.is_under_overload);
        let ahead = higher + if overloaded { before_overload } else { same_class };
        let excess_in_flight = slots.in_flight().saturating_sub(flow.slots) as usize;
        let wait = flow.wait_for((ahead + excess_in_flight) as u64 + 1);
        let reject = |reason| AdmissionVerdict::Reject(Rejection { reason, retry_after: Nanos::SECOND.max(wait) });
        if call.deadline < Nanos::NEVER && now + wait + flow.service_time > call.deadline {
            self.classes[class].deadline_rejected_at = Some(active_now);
            return reject(RejectionReason::DeadlineExceeded);
        }
        if wait > max_wait && ahead > 0 {
            self.classes[class].rejected_at = Some(active_now);
            return reject(RejectionReason::QueueFull);
        }
        let under_overload = same_class - before_overload;
        if overloaded && under_overload > 0 && flow.wait_for(under_overload as u64 + 1) > max_wait {
            self.reject_at(now, class, before_overload, wait, actions);
        }
        if self.len >= self.max_len && !self.evict_lower(now, class, wait, actions) {
            self.classes[class].rejected_at = Some(active_now);
            return reject(RejectionReason::QueueFull);
        }
        let ticket = QueueTicket(self.next_ticket);
        self.next_ticket += 1;
        self.classes[class].waiters.push_back(QueuedArrival {
            ticket,
            queued_at: active_now,
            until: active_now + max_wait,
            is_under_overload: overloaded,
            latest: call.deadline.min(now + self.max_wait),
            deadline: call.deadline,
            connection: call.connection,
        });
        self.len += 1;
        AdmissionVerdict::Wait(ticket, now + max_wait)
    }

    /// Rejects the oldest call of the lowest priority below this one; false if there is none.
    fn evict_lower(&mut self, now: Nanos, class: usize, wait: Nanos, actions: &mut Vec<QueueAction>) -> bool {
        let lowest = (0..class).find(|lower| !self.classes[*lower].waiters.is_empty());
        lowest.inspect(|lowest| self.reject_at(now, *lowest, 0, wait, actions)).is_some()
    }

    /// Rejects the call at `index` of a priority.
    fn reject_at(&mut self, now: Nanos, class: usize, index: usize, wait: Nanos, actions: &mut Vec<QueueAction>) {
        let active_now = self.active_time(now);
        let class = &mut self.classes[class];
        if let Some(oldest) = class.waiters.remove(index) {
            class.rejected_at = Some(active_now);
            self.len -= 1;
            let rejection = Rejection { reason: RejectionReason::QueueFull, retry_after: Nanos::SECOND.max(wait) };
            actions.push(QueueAction::Reject(oldest.ticket, rejection));
        }
    }

    /// Removes the call whose turn it is: of the highest priority, the oldest, or the newest under overload; of
    /// connections that have their share the oldest that may run. While calls are rejected, only an empty queue counts as
    /// a short one.
    pub(super) fn pop_next(
        &mut self,
        now: Nanos,
        flow: &ServiceFlow,
        sheds: bool,
        mut may_run: impl FnMut(ConnectionNumber) -> bool,
    ) -> Option<(QueueTicket, Option<ConnectionNumber>)> {
        let (active_now, normal_wait) = (self.active_time(now), self.normal_wait(flow));
        let (class, at) = self.classes.iter().enumerate().rev().find_map(|(index, class)| {
            if index % 2 == 1 {
                let newest_first =
                    class.overloaded && class.waiters.front().is_some_and(|oldest| oldest.is_under_overload);
                let last = class.waiters.len().checked_sub(1)?;
                return Some((index, if newest_first { last } else { 0 }));
            }
            let may_run = |waiter: &QueuedArrival| waiter.connection.is_none_or(&mut may_run);
            Some((index, class.waiters.iter().position(may_run)?))
        })?;
        let class = &mut self.classes[class];
        let recent = |at: Option<Nanos>| at.is_some_and(|at| active_now - at <= normal_wait);
        let rejects = sheds || recent(class.deadline_rejected_at) || recent(class.rejected_at);
        let quick = self.overload_wait.min(self.max_wait);
        let next = class.waiters.remove(at)?;
        self.len -= 1;
        if class.waiters.is_empty() || (!rejects && active_now - next.queued_at <= quick) {
            class.last_short_at = active_now;
        }
        Some((next.ticket, next.connection))
    }

    /// Rejects calls whose wait is over, or will be before the calls in flight beyond the limit (`excess_in_flight`)
    /// have completed: until then no slot becomes free.
    pub(super) fn reject_overdue(
        &mut self,
        now: Nanos,
        flow: &ServiceFlow,
        excess_in_flight: u32,
        shed: &ShedThreshold,
        actions: &mut Vec<QueueAction>,
    ) {
        let (active_now, normal_wait) = (self.active_time(now), self.normal_wait(flow));
        let next = now + if excess_in_flight > 0 { flow.wait_for(excess_in_flight.into()) } else { Nanos::ZERO };
        for class in 0..self.classes.len() {
            self.classes[class].update_overload(active_now, normal_wait, shed.demand_trend(class / 2, flow));
            while let Some(oldest) =
                self.classes[class].waiters.front().filter(|oldest| oldest.ends_at(self.excluded_time) <= next)
            {
                let reason = if oldest.deadline <= now {
                    RejectionReason::DeadlineExceeded
                } else {
                    RejectionReason::QueueTimeout
                };
                actions.push(QueueAction::Reject(
                    oldest.ticket,
                    Rejection { reason, retry_after: Nanos::SECOND.max(normal_wait) },
                ));
                self.classes[class].waiters.pop_front();
                self.classes[class].rejected_at = Some(active_now);
                self.len -= 1;
            }
        }
    }

    /// Checks a queued call: a rejection, or the time of the next check; `None` if it is not queued any more.
    pub(super) fn recheck(
        &mut self,
        now: Nanos,
        ticket: QueueTicket,
        flow: &ServiceFlow,
        shed: &ShedThreshold,
    ) -> Option<Result<Nanos, Rejection>> {
        let (class, at) = self.find(ticket)?;
        let (active_now, normal_wait) = (self.active_time(now), self.normal_wait(flow));
        self.classes[class].update_overload(active_now, normal_wait, shed.demand_trend(class / 2, flow));
        let waiter = self.classes[class].waiters[at];
        let ends_at = waiter.ends_at(self.excluded_time);
        if now < ends_at {
            return Some(Ok(ends_at));
        }
        self.classes[class].waiters.remove(at);
        self.classes[class].rejected_at = Some(active_now);
        self.len -= 1;
        let reason =
            if waiter.deadline <= now { RejectionReason::DeadlineExceeded } else { RejectionReason::QueueTimeout };
        Some(Err(Rejection { reason, retry_after: Nanos::SECOND.max(normal_wait) }))
    }

    /// Removes a queued call, without a rejection.
    pub(super) fn withdraw(&mut self, ticket: QueueTicket) {
        if let Some((class, at)) = self.find(ticket) {
            self.classes[class].waiters.remove(at);
            self.len -= 1;
        }
    }

    /// Priority and index of a queued call.
    fn find(&self, ticket: QueueTicket) -> Option<(usize, usize)> {
        let found = |class: &PriorityClass| class.waiters.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok();
        self.classes.iter().enumerate().find_map(|(class, of)| Some((class, found(of)?)))
    }
}
