//! Those that wait for a place.
//!
//! A queue in front of a service that is busy by chance is good: it smooths. A queue in front of one that is overloaded
//! does harm only: it stays full, and everybody waits for its whole length. What tells them apart is not how long the
//! queue is but for how long it has not been empty (Nichols and Jacobson, "Controlling queue delay", 2012). So while
//! it empties now and then, newcomers may wait for about as long as an answer takes, and who came first is first; when
//! it has not been empty for that long they may wait for next to nothing, and who came last is first, since it has the
//! most time left.
//!
//! Who would wait for too long is refused when it comes, not when it has waited: it can go elsewhere at once. Who was let
//! wait before the overload is not sent away for it, and goes first: it has been reckoned with.
//!
//! Each priority has a line of its own, and is judged by it: those of low priority may be too many while there is room
//! for all of a high one.

use std::collections::VecDeque;

use super::bar::Bar;
use super::usual::Flow;
use super::{Action, Arrival, Priority, Refusal, Room, Ticket, Verdict, Why};
use crate::decide::Nanos;

/// A line may stay for so long at least: nobody minds.
const LEAST: Nanos = Nanos::from_millis(50);

/// While all is well one may wait for so many times as long as a line may stay: a long wait by chance is no overload.
const CHANCE: f64 = 1.5;

#[derive(Clone, Copy, Debug)]
struct Waiter {
    ticket: Ticket,
    /// Until then it may wait: it is held to what it was told when it came.
    until: Nanos,
    /// Whether that was under overload.
    hasty: bool,
    deadline: Nanos,
}

impl Waiter {
    fn ends(&self) -> Nanos {
        self.until.min(self.deadline)
    }
}

#[derive(Clone, Debug)]
struct Class {
    /// From the oldest to the newest.
    waiters: VecDeque<Waiter>,
    /// When it was empty last.
    empty_at: Nanos,
    /// When somebody was refused last; never, if that is later than all.
    refused_at: Option<Nanos>,
    overloaded: bool,
}

impl Class {
    /// Whether more come than go.
    fn judge(&mut self, now: Nanos, patience: Nanos, crowded: bool) {
        if self.waiters.is_empty() {
            self.empty_at = now;
        }
        if self.overloaded {
            // It is over when nobody had to be refused for a while.
            self.overloaded = crowded && self.refused_at.is_some_and(|at| now - at <= patience);
        } else {
            self.overloaded = crowded && now - self.empty_at > patience;
            if self.overloaded {
                self.refused_at = Some(now);
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
}

impl Line {
    pub(super) fn new(patience: Nanos, haste: Nanos, most: u32) -> Self {
        let class = Class { waiters: VecDeque::new(), empty_at: Nanos::ZERO, refused_at: None, overloaded: false };
        Self { classes: std::array::from_fn(|_| class.clone()), patience, haste, most, len: 0, next: 0 }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
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
        let patience = self.patience(flow);
        self.classes[class].judge(now, patience, bar.is_crowded(class, flow));
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
            return refuse(Why::Late);
        }
        if wait > term && before > 0 {
            self.classes[class].refused_at = Some(now);
            return refuse(Why::Full);
        }
        if overloaded && beside > promised && flow.wait_for((beside - promised) as u64 + 1) > term {
            // The newest takes the place of the oldest, which has the least time left.
            self.refuse_at(now, class, promised, wait, actions);
        }
        if self.len >= self.most && !self.make_room(now, class, wait, actions) {
            self.classes[class].refused_at = Some(now);
            return refuse(Why::Full);
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        self.classes[class].waiters.push_back(Waiter {
            ticket,
            until: now + term,
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
        let class = &mut self.classes[class];
        if let Some(oldest) = class.waiters.remove(at) {
            class.refused_at = Some(now);
            self.len -= 1;
            let refusal = Refusal { why: Why::Full, retry_after: Nanos::SECOND.max(wait) };
            actions.push(Action::Refuse(oldest.ticket, refusal));
        }
    }

    /// Who is next.
    pub(super) fn next(&mut self, now: Nanos) -> Option<Ticket> {
        let class = self.classes.iter_mut().rev().find(|class| !class.waiters.is_empty())?;
        let newest_first = class.overloaded && class.waiters.front().is_some_and(|oldest| oldest.hasty);
        let next = if newest_first { class.waiters.pop_back() } else { class.waiters.pop_front() }?;
        self.len -= 1;
        if class.waiters.is_empty() {
            class.empty_at = now;
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
        let patience = self.patience(flow);
        let next = now + if too_many > 0 { flow.wait_for(too_many.into()) } else { Nanos::ZERO };
        for class in 0..self.classes.len() {
            self.classes[class].judge(now, patience, bar.is_crowded(class, flow));
            while let Some(oldest) = self.classes[class].waiters.front().filter(|oldest| oldest.ends() <= next) {
                let why = if oldest.deadline <= now { Why::Late } else { Why::Waited };
                actions.push(Action::Refuse(oldest.ticket, Refusal { why, retry_after: Nanos::SECOND.max(patience) }));
                self.classes[class].waiters.pop_front();
                self.classes[class].refused_at = Some(now);
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
        let patience = self.patience(flow);
        self.classes[class].judge(now, patience, bar.is_crowded(class, flow));
        let waiter = self.classes[class].waiters[at];
        if now < waiter.ends() {
            return Some(Ok(waiter.ends()));
        }
        self.classes[class].waiters.remove(at);
        self.classes[class].refused_at = Some(now);
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
