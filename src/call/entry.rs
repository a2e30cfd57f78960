//! A call's way in: the places that it has before anything is sent.

use std::sync::Arc;

use super::ask::Ask;
use super::counts::{CallCounts, CallEnd};
use super::places::{Asked, Place, Places, Told};
use super::pulse;
use super::story::Story;
use crate::decide::Nanos;
use crate::decide::admit::{Arrival, Refusal};
use crate::decide::breaker::Pass;
use crate::decide::budget::Purse;
use crate::machine::clock::Clock;
use crate::machine::timer::Timer;

/// What a call has that is in.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its route's, to the end of its answer.
    pub(super) route: Option<Place>,
    /// Its first attempt's.
    pub(super) upstream: Option<Place>,
    /// Its upstream's leave.
    pub(super) pass: Option<Pass>,
    /// Whether it had to wait.
    pub(super) waited: bool,
}

impl Entry {
    /// Takes what there is at once, or waits for it.
    pub(super) async fn of(
        ask: &Ask<'_>,
        timer: &Timer,
        (now, deadline): (Nanos, Nanos),
        roll: impl FnOnce() -> f64,
        gone: &dyn Fn(Story),
    ) -> Result<Self, Refusal> {
        let told = (&*ask.plan.counts, gone, now);
        let arrival = Arrival { deadline, priority: ask.priority, spread: ask.spread };
        let mut entry = Self { route: None, upstream: None, pass: None, waited: false };
        if ask.plan.places.is_some() || ask.plan.upstream.places().is_some() {
            pulse::keep(timer, now);
        }
        if let Some(places) = &ask.plan.places {
            entry.route = Some(entry.place(told, places, timer, now, &arrival).await?);
        }
        if let Some(places) = ask.plan.upstream.places() {
            let now = if entry.waited { timer.now() } else { now };
            entry.upstream = Some(entry.place(told, places, timer, now, &arrival).await?);
        }
        // Last, since it is for a call that is sent.
        let now = if entry.waited { timer.now() } else { now };
        entry.pass = ask.plan.upstream.guard.allows(now, roll)?;
        Ok(entry)
    }

    async fn place(
        &mut self,
        told: Leaver<'_>,
        places: &Arc<Places>,
        timer: &Timer,
        now: Nanos,
        arrival: &Arrival,
    ) -> Told {
        if let Some(place) = places.enter(timer.clock(), now, arrival.rank()) {
            return Ok(place);
        }
        match places.ask(timer.clock(), now, arrival) {
            Asked::Runs(place) => Ok(place),
            Asked::Refused(refusal) => Err(refusal),
            Asked::Waits(waiting) => {
                self.waited = true;
                let leaves = Leaves(Some(told));
                // In a box: few wait, and all would have to carry it.
                let told = Box::pin(waiting.ends(timer)).await;
                leaves.stays();
                told
            }
        }
    }
}

/// What is to be told of a caller that leaves: to whom, and when it came.
type Leaver<'a> = (&'a CallCounts, &'a dyn Fn(Story), Nanos);

/// A caller that may leave while it waits.
struct Leaves<'a>(Option<Leaver<'a>>);

impl Leaves<'_> {
    fn stays(mut self) {
        self.0 = None;
    }
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        if let Some((counts, gone, began)) = self.0 {
            counts.ended(CallEnd::Gone);
            gone(Story { began, ..Story::default() });
        }
    }
}

/// Pays for extra attempts: each needs the budget's leave, and a place that is free at once.
#[derive(Debug)]
pub(super) struct Extras<'a, P> {
    pub(super) purse: &'a mut P,
    pub(super) ask: &'a Ask<'a>,
    pub(super) clock: Clock,
    /// The places of those that were paid for.
    pub(super) taken: &'a mut Vec<Place>,
}

impl<P: Purse> Purse for Extras<'_, P> {
    fn may(&mut self, now: Nanos) -> bool {
        self.purse.may(now)
    }

    fn spend(&mut self, now: Nanos) -> bool {
        let Some(places) = self.ask.plan.upstream.places() else { return self.purse.spend(now) };
        let arrival = Arrival { deadline: Nanos::NEVER, priority: self.ask.priority, spread: self.ask.spread };
        let Some(place) = places.enter(self.clock, now, arrival.rank()) else { return false };
        let granted = self.purse.spend(now);
        self.taken.extend(Some(place).filter(|_| granted));
        granted
    }
}
