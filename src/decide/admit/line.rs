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

use super::bar::{Bar, Crowd};
use super::usual::Flow;
use super::{Action, Arrival, Priority, Refusal, Room, Ticket, Verdict, Why};
use crate::decide::Nanos;

/// A line may stay for so long at least: the interval of CoDel (RFC 8289, 4.3), and more than a stall of a shared host. With
/// 50 ms, stalls of 20 to 60 ms had some refused in the simulation (`upstream-stalls`); with 100 none, and the first second
/// of a crowd is as before.
const LEAST: Nanos = Nanos::from_millis(100);

/// While all is well one may wait for so many times as long as a line may stay: a long wait by chance is no overload.
const CHANCE: f64 = 1.5;

#[derive(Clone, Copy, Debug)]
struct Waiter {
    ticket: Ticket,
    /// When it came, in own time.
    since: Nanos,
    /// Until then, in own time, it may wait: it is held to what it was told when it came.
    until: Nanos,
    /// Whether that was under overload.
    hasty: bool,
    deadline: Nanos,
}

impl Waiter {
    /// When that is, after pauses of this length.
    fn ends(&self, lost: Nanos) -> Nanos {
        (self.until + lost).min(self.deadline)
    }
}

#[derive(Clone, Debug)]
struct Class {
    /// From the oldest to the newest.
    waiters: VecDeque<Waiter>,
    /// When it was empty last, or somebody came through it soon; in own time.
    short_at: Nanos,
    /// When somebody was refused last, in own time.
    refused_at: Option<Nanos>,
    /// When somebody was refused last because it would have been late.
    late_at: Option<Nanos>,
    overloaded: bool,
}

impl Class {
    /// Whether more come than go.
    fn judge(&mut self, own: Nanos, patience: Nanos, crowd: Crowd) {
        if self.waiters.is_empty() {
            self.short_at = own;
        }
        if self.overloaded {
            // It is over when nobody had to be refused for a while.
            self.overloaded = crowd >= Crowd::Stays && self.refused_at.is_some_and(|at| own - at <= patience);
        } else {
            self.overloaded = crowd == Crowd::Grows && own - self.short_at > patience;
            if self.overloaded {
                self.refused_at = Some(own);
            }
        }
    }
}

/// Those that wait, by priority.
#[derive(Clone, Debug)]
pub(super) struct Line {
    classes: [Class; Priority::ALL.len()],
    /// The longest waits, as they are set.
    patience: Nanos,
    haste: Nanos,
    most: u32,
    len: u32,
    next: u64,
    /// The time that does not count.
    lost: Nanos,
}

impl Line {
    pub(super) fn new(patience: Nanos, haste: Nanos, most: u32) -> Self {
        let class = Class {
            waiters: VecDeque::new(),
            short_at: Nanos::ZERO,
            refused_at: None,
            late_at: None,
            overloaded: false,
        };
        let classes = std::array::from_fn(|_| class.clone());
        Self { classes, patience, haste, most, len: 0, next: 0, lost: Nanos::ZERO }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// So much time does not count, ever.
    pub(super) fn lost(&mut self, ever: Nanos) {
        self.lost = self.lost.max(ever);
    }

    /// The time without what does not count.
    pub(super) fn own(&self, now: Nanos) -> Nanos {
        now - self.lost
    }

    /// Whether any class is.
    pub(super) fn is_overloaded(&self) -> bool {
        self.classes.iter().any(|class| class.overloaded)
    }

    /// The longest wait while all is well: an answer's time, and more where there are few places, since then a place is
    /// long in coming.
    fn patience(&self, flow: &Flow) -> Nanos {
        if self.patience == Nanos::NEVER {
            return self.patience;
        }
        if flow.service == Nanos::ZERO {
            return LEAST.min(self.patience);
        }
        let few = flow.wait_for(8).0;
        Nanos(flow.service.0.saturating_add(few)).max(LEAST).min(self.patience)
    }

    /// For how long one of this class may wait now.
    fn term(&self, class: usize, flow: &Flow) -> Nanos {
        if self.classes[class].overloaded {
            return self.haste;
        }
        Nanos((self.patience(flow).0 as f64 * CHANCE) as u64).min(self.patience)
    }

    /// One more comes, for whom there was no place a moment ago.
    pub(super) fn arrive(
        &mut self,
        now: Nanos,
        call: &Arrival,
        flow: &Flow,
        room: &Room,
        bar: &Bar,
        actions: &mut Vec<Action>,
    ) -> Verdict {
        let class = call.priority.index();
        let (own, patience) = (self.own(now), self.patience(flow));
        self.classes[class].judge(own, patience, bar.crowd(class, flow));
        // It is counted before it looks again; see `Room::enter`.
        room.set_waiting(self.len + 1);
        let ahead: usize = self.classes[class + 1..].iter().map(|class| class.waiters.len()).sum();
        if ahead == 0 && self.classes[class].waiters.is_empty() && room.take() {
            return Verdict::Run;
        }
        let (term, overloaded) = (self.term(class, flow), self.classes[class].overloaded);
        let beside = self.classes[class].waiters.len();
        // Those that came under overload are passed by those that come under overload.
        let promised = self.classes[class].waiters.partition_point(|waiter| !waiter.hasty);
        let before = if overloaded { ahead + promised } else { ahead + beside };
        let too_many = room.in_flight().saturating_sub(flow.places) as usize;
        let wait = flow.wait_for((before + too_many) as u64 + 1);
        let refuse = |why| Verdict::Refuse(Refusal { why, retry_after: Nanos::SECOND.max(wait) });
        // Who goes now has the usual time before it.
        if call.deadline < Nanos::NEVER && now + wait + flow.service > call.deadline {
            self.classes[class].late_at = Some(own);
            return refuse(Why::Late);
        }
        if wait > term && before > 0 {
            self.classes[class].refused_at = Some(own);
            return refuse(Why::Full);
        }
        if overloaded && beside > promised && flow.wait_for((beside - promised) as u64 + 1) > term {
            // The newest takes the place of the oldest, which has the least time left.
            self.refuse_at(now, class, promised, wait, actions);
        }
        if self.len >= self.most && !self.make_room(now, class, wait, actions) {
            self.classes[class].refused_at = Some(own);
            return refuse(Why::Full);
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        self.classes[class].waiters.push_back(Waiter {
            ticket,
            since: own,
            until: own + term,
            hasty: overloaded,
            deadline: call.deadline,
        });
        self.len += 1;
        Verdict::Wait(ticket, now + term)
    }

    /// Refuses the oldest of the lowest class below this one.
    fn make_room(&mut self, now: Nanos, class: usize, wait: Nanos, actions: &mut Vec<Action>) -> bool {
        let lowest = (0..class).find(|lower| !self.classes[*lower].waiters.is_empty());
        lowest.inspect(|lowest| self.refuse_at(now, *lowest, 0, wait, actions)).is_some()
    }

    fn refuse_at(&mut self, now: Nanos, class: usize, at: usize, wait: Nanos, actions: &mut Vec<Action>) {
        let own = self.own(now);
        let class = &mut self.classes[class];
        if let Some(oldest) = class.waiters.remove(at) {
            class.refused_at = Some(own);
            self.len -= 1;
            let refusal = Refusal { why: Why::Full, retry_after: Nanos::SECOND.max(wait) };
            actions.push(Action::Refuse(oldest.ticket, refusal));
        }
    }

    /// Who is next. While others are refused, only an empty line is a short one: it could be shorter instead.
    pub(super) fn next(&mut self, now: Nanos, flow: &Flow, sheds: bool) -> Option<Ticket> {
        let (own, patience) = (self.own(now), self.patience(flow));
        let class = self.classes.iter_mut().rev().find(|class| !class.waiters.is_empty())?;
        let recent = |at: Option<Nanos>| at.is_some_and(|at| own - at <= patience);
        let refuses = sheds || recent(class.late_at) || recent(class.refused_at);
        let soon = self.haste.min(self.patience);
        let newest_first = class.overloaded && class.waiters.front().is_some_and(|oldest| oldest.hasty);
        let next = if newest_first { class.waiters.pop_back() } else { class.waiters.pop_front() }?;
        self.len -= 1;
        if class.waiters.is_empty() || (!refuses && own - next.since <= soon) {
            class.short_at = own;
        }
        Some(next.ticket)
    }

    /// Refuses those that have waited for too long, and those that will have before so many have left that are in beyond
    /// the limit.
    pub(super) fn drop_overdue(
        &mut self,
        now: Nanos,
        flow: &Flow,
        too_many: u32,
        bar: &Bar,
        actions: &mut Vec<Action>,
    ) {
        let (own, patience) = (self.own(now), self.patience(flow));
        let next = now + if too_many > 0 { flow.wait_for(too_many.into()) } else { Nanos::ZERO };
        for class in 0..self.classes.len() {
            self.classes[class].judge(own, patience, bar.crowd(class, flow));
            while let Some(oldest) = self.classes[class].waiters.front().filter(|oldest| oldest.ends(self.lost) <= next)
            {
                let why = if oldest.deadline <= now { Why::Late } else { Why::Waited };
                actions.push(Action::Refuse(oldest.ticket, Refusal { why, retry_after: Nanos::SECOND.max(patience) }));
                self.classes[class].waiters.pop_front();
                self.classes[class].refused_at = Some(own);
                self.len -= 1;
            }
        }
    }

    /// A refusal, or when to look again; none if it does not wait.
    pub(super) fn overdue(
        &mut self,
        now: Nanos,
        ticket: Ticket,
        flow: &Flow,
        bar: &Bar,
    ) -> Option<Result<Nanos, Refusal>> {
        let (class, at) = self.find(ticket)?;
        let (own, patience) = (self.own(now), self.patience(flow));
        self.classes[class].judge(own, patience, bar.crowd(class, flow));
        let waiter = self.classes[class].waiters[at];
        let ends = waiter.ends(self.lost);
        if now < ends {
            return Some(Ok(ends));
        }
        self.classes[class].waiters.remove(at);
        self.classes[class].refused_at = Some(own);
        self.len -= 1;
        let why = if waiter.deadline <= now { Why::Late } else { Why::Waited };
        Some(Err(Refusal { why, retry_after: Nanos::SECOND.max(patience) }))
    }

    pub(super) fn withdraw(&mut self, ticket: Ticket) {
        if let Some((class, at)) = self.find(ticket) {
            self.classes[class].waiters.remove(at);
            self.len -= 1;
        }
    }

    fn find(&self, ticket: Ticket) -> Option<(usize, usize)> {
        let found = |class: &Class| class.waiters.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok();
        self.classes.iter().enumerate().find_map(|(class, of)| Some((class, found(of)?)))
    }
}
