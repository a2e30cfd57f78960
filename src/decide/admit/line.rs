//! Those that wait for a place.
//!
//! A queue in front of a service that is busy by chance is good: it smooths. A queue in front of one that is overloaded
//! does harm only: it stays long, and everybody waits for its whole length. What tells them apart is not how long the
//! queue is but for how long nobody has come through it soon (Nichols and Jacobson, "Controlling queue delay", 2012). So
//! while some do now and then, newcomers may wait for about as long as an answer takes, and who came first is first; when
//! none has for that long they may wait for next to nothing, and who came last is first, since it has the most time
//! left. That there is always somebody who waits is no overload: a hundred connections before fifty places, each of
//! which asks again as soon as it is answered, wait for a place or in the upstream, and as long here as there.
//!
//! Waits are told in own time, which pauses of our process ([`super::Pulse`]) and stalls of the upstream (`silence`) do not
//! belong to.
//!
//! Who would wait for too long is refused when it comes, not when it has waited: it can go elsewhere at once. Who was let
//! wait before the overload is not sent away for it, and goes first: it has been reckoned with.
//!
//! Each priority has a line of its own, and is judged by it: those of low priority may be too many while there is room
//! for all of a high one.

use std::collections::VecDeque;

use super::bar::{DemandTrend, ShedThreshold};
use super::usual::ServiceFlow;
use super::{AdmissionVerdict, CallArrival, Priority, QueueAction, QueueTicket, Rejection, RejectionReason, Slots};
use crate::decide::Nanos;

/// A line may stay for so long at least: the interval of CoDel (RFC 8289, 4.3), and more than a stall of a shared host. With
/// 50 ms, stalls of 20 to 60 ms had some refused in the simulation (`upstream-stalls`); with 100 none, and the first second
/// of a crowd is as before.
const MIN_WAIT: Nanos = Nanos::from_millis(100);

/// While all is well one may wait for so many times as long as a line may stay: a long wait by chance is no overload.
const NORMAL_WAIT_FACTOR: f64 = 1.5;

#[derive(Clone, Copy, Debug)]
struct QueuedArrival {
    ticket: QueueTicket,
    /// When it came, in own time.
    queued_at: Nanos,
    /// Until then, in own time, it may wait: it is held to what it was told when it came.
    until: Nanos,
    /// Whether that was under overload.
    is_under_overload: bool,
    deadline: Nanos,
}

impl QueuedArrival {
    /// When that is, after pauses of this length.
    fn ends_at(&self, lost: Nanos) -> Nanos {
        (self.until + lost).min(self.deadline)
    }
}

#[derive(Clone, Debug)]
struct PriorityClass {
    /// From the oldest to the newest.
    waiters: VecDeque<QueuedArrival>,
    /// When it was empty last, or somebody came through it soon; in own time.
    last_short_at: Nanos,
    /// When somebody was refused last, in own time.
    rejected_at: Option<Nanos>,
    /// When somebody was refused last because it would have been late.
    deadline_rejected_at: Option<Nanos>,
    overloaded: bool,
}

impl PriorityClass {
    /// Whether more come than go.
    fn update_overload(&mut self, own: Nanos, patience: Nanos, crowd: DemandTrend) {
        if self.waiters.is_empty() {
            self.last_short_at = own;
        }
        if self.overloaded {
            // It is over when nobody had to be refused for a while.
            self.overloaded = crowd >= DemandTrend::Steady && self.rejected_at.is_some_and(|at| own - at <= patience);
        } else {
            self.overloaded = crowd == DemandTrend::Growing && own - self.last_short_at > patience;
            if self.overloaded {
                self.rejected_at = Some(own);
            }
        }
    }
}

/// Those that wait, by priority.
#[derive(Clone, Debug)]
pub(super) struct CallQueue {
    classes: [PriorityClass; Priority::ALL.len()],
    /// The longest waits, as they are set.
    max_wait: Nanos,
    overload_wait: Nanos,
    max_len: u32,
    len: u32,
    next_ticket: u64,
    /// The time that does not count.
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

    /// So much time does not count, ever.
    pub(super) fn exclude_time(&mut self, ever: Nanos) {
        self.excluded_time = self.excluded_time.max(ever);
    }

    /// The time without what does not count.
    pub(super) fn active_time(&self, now: Nanos) -> Nanos {
        now - self.excluded_time
    }

    /// Whether any class is.
    pub(super) fn is_overloaded(&self) -> bool {
        self.classes.iter().any(|class| class.overloaded)
    }

    /// The longest wait while all is well: an answer's time, and more where there are few places, since then a place is
    /// long in coming.
    fn normal_wait(&self, flow: &ServiceFlow) -> Nanos {
        if self.max_wait == Nanos::NEVER {
            return self.max_wait;
        }
        if flow.service_time == Nanos::ZERO {
            return MIN_WAIT.min(self.max_wait);
        }
        let few = flow.wait_for(8).0;
        Nanos(flow.service_time.0.saturating_add(few)).max(MIN_WAIT).min(self.max_wait)
    }

    /// For how long one of this class may wait now.
    fn wait_limit(&self, class: usize, flow: &ServiceFlow) -> Nanos {
        if self.classes[class].overloaded {
            return self.overload_wait;
        }
        Nanos((self.normal_wait(flow).0 as f64 * NORMAL_WAIT_FACTOR) as u64).min(self.max_wait)
    }

    /// One more comes, for whom there was no place a moment ago.
    pub(super) fn arrive(
        &mut self,
        now: Nanos,
        call: &CallArrival,
        flow: &ServiceFlow,
        room: &Slots,
        bar: &ShedThreshold,
        actions: &mut Vec<QueueAction>,
    ) -> AdmissionVerdict {
        let class = call.priority.index();
        let (own, patience) = (self.active_time(now), self.normal_wait(flow));
        self.classes[class].update_overload(own, patience, bar.demand_trend(class, flow));
        // It is counted before it looks again; see `Room::enter`.
        room.set_waiting(self.len + 1);
        let ahead: usize = self.classes[class + 1..].iter().map(|class| class.waiters.len()).sum();
        if ahead == 0 && self.classes[class].waiters.is_empty() && room.try_take() {
            return AdmissionVerdict::Run;
        }
        let (term, overloaded) = (self.wait_limit(class, flow), self.classes[class].overloaded);
        let beside = self.classes[class].waiters.len();
        // Those that came under overload are passed by those that come under overload.
        let promised = self.classes[class].waiters.partition_point(|waiter| !waiter.is_under_overload);
        let before = if overloaded { ahead + promised } else { ahead + beside };
        let too_many = room.in_flight().saturating_sub(flow.slots) as usize;
        let wait = flow.wait_for((before + too_many) as u64 + 1);
        let refuse = |why| AdmissionVerdict::Reject(Rejection { reason: why, retry_after: Nanos::SECOND.max(wait) });
        // Who goes now has the usual time before it.
        if call.deadline < Nanos::NEVER && now + wait + flow.service_time > call.deadline {
            self.classes[class].deadline_rejected_at = Some(own);
            return refuse(RejectionReason::DeadlineExceeded);
        }
        if wait > term && before > 0 {
            self.classes[class].rejected_at = Some(own);
            return refuse(RejectionReason::QueueFull);
        }
        if overloaded && beside > promised && flow.wait_for((beside - promised) as u64 + 1) > term {
            // The newest takes the place of the oldest, which has the least time left.
            self.reject_at(now, class, promised, wait, actions);
        }
        if self.len >= self.max_len && !self.evict_lower(now, class, wait, actions) {
            self.classes[class].rejected_at = Some(own);
            return refuse(RejectionReason::QueueFull);
        }
        let ticket = QueueTicket(self.next_ticket);
        self.next_ticket += 1;
        self.classes[class].waiters.push_back(QueuedArrival {
            ticket,
            queued_at: own,
            until: own + term,
            is_under_overload: overloaded,
            deadline: call.deadline,
        });
        self.len += 1;
        AdmissionVerdict::Wait(ticket, now + term)
    }

    /// Refuses the oldest of the lowest class below this one.
    fn evict_lower(&mut self, now: Nanos, class: usize, wait: Nanos, actions: &mut Vec<QueueAction>) -> bool {
        let lowest = (0..class).find(|lower| !self.classes[*lower].waiters.is_empty());
        lowest.inspect(|lowest| self.reject_at(now, *lowest, 0, wait, actions)).is_some()
    }

    fn reject_at(&mut self, now: Nanos, class: usize, at: usize, wait: Nanos, actions: &mut Vec<QueueAction>) {
        let own = self.active_time(now);
        let class = &mut self.classes[class];
        if let Some(oldest) = class.waiters.remove(at) {
            class.rejected_at = Some(own);
            self.len -= 1;
            let refusal = Rejection { reason: RejectionReason::QueueFull, retry_after: Nanos::SECOND.max(wait) };
            actions.push(QueueAction::Reject(oldest.ticket, refusal));
        }
    }

    /// Who is next. While others are refused, only an empty line is a short one: it could be shorter instead.
    pub(super) fn pop_next(&mut self, now: Nanos, flow: &ServiceFlow, sheds: bool) -> Option<QueueTicket> {
        let (own, patience) = (self.active_time(now), self.normal_wait(flow));
        let class = self.classes.iter_mut().rev().find(|class| !class.waiters.is_empty())?;
        let recent = |at: Option<Nanos>| at.is_some_and(|at| own - at <= patience);
        let refuses = sheds || recent(class.deadline_rejected_at) || recent(class.rejected_at);
        let soon = self.overload_wait.min(self.max_wait);
        let newest_first = class.overloaded && class.waiters.front().is_some_and(|oldest| oldest.is_under_overload);
        let next = if newest_first { class.waiters.pop_back() } else { class.waiters.pop_front() }?;
        self.len -= 1;
        if class.waiters.is_empty() || (!refuses && own - next.queued_at <= soon) {
            class.last_short_at = own;
        }
        Some(next.ticket)
    }

    /// Refuses those that have waited for too long, and those that will have before so many have left that are in beyond
    /// the limit.
    pub(super) fn reject_overdue(
        &mut self,
        now: Nanos,
        flow: &ServiceFlow,
        too_many: u32,
        bar: &ShedThreshold,
        actions: &mut Vec<QueueAction>,
    ) {
        let (own, patience) = (self.active_time(now), self.normal_wait(flow));
        let next = now + if too_many > 0 { flow.wait_for(too_many.into()) } else { Nanos::ZERO };
        for class in 0..self.classes.len() {
            self.classes[class].update_overload(own, patience, bar.demand_trend(class, flow));
            while let Some(oldest) =
                self.classes[class].waiters.front().filter(|oldest| oldest.ends_at(self.excluded_time) <= next)
            {
                let why = if oldest.deadline <= now {
                    RejectionReason::DeadlineExceeded
                } else {
                    RejectionReason::QueueTimeout
                };
                actions.push(QueueAction::Reject(
                    oldest.ticket,
                    Rejection { reason: why, retry_after: Nanos::SECOND.max(patience) },
                ));
                self.classes[class].waiters.pop_front();
                self.classes[class].rejected_at = Some(own);
                self.len -= 1;
            }
        }
    }

    /// A refusal, or when to look again; none if it does not wait.
    pub(super) fn recheck(
        &mut self,
        now: Nanos,
        ticket: QueueTicket,
        flow: &ServiceFlow,
        bar: &ShedThreshold,
    ) -> Option<Result<Nanos, Rejection>> {
        let (class, at) = self.find(ticket)?;
        let (own, patience) = (self.active_time(now), self.normal_wait(flow));
        self.classes[class].update_overload(own, patience, bar.demand_trend(class, flow));
        let waiter = self.classes[class].waiters[at];
        let ends = waiter.ends_at(self.excluded_time);
        if now < ends {
            return Some(Ok(ends));
        }
        self.classes[class].waiters.remove(at);
        self.classes[class].rejected_at = Some(own);
        self.len -= 1;
        let why =
            if waiter.deadline <= now { RejectionReason::DeadlineExceeded } else { RejectionReason::QueueTimeout };
        Some(Err(Rejection { reason: why, retry_after: Nanos::SECOND.max(patience) }))
    }

    pub(super) fn withdraw(&mut self, ticket: QueueTicket) {
        if let Some((class, at)) = self.find(ticket) {
            self.classes[class].waiters.remove(at);
            self.len -= 1;
        }
    }

    fn find(&self, ticket: QueueTicket) -> Option<(usize, usize)> {
        let found = |class: &PriorityClass| class.waiters.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok();
        self.classes.iter().enumerate().find_map(|(class, of)| Some((class, found(of)?)))
    }
}
