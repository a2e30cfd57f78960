//! What a limiter is asked.

use std::fmt;

use crate::decide::Nanos;
use crate::decide::admit::{Arrival, Refusal};

/// A call, as gates know it; not in use by another while this one has a place or waits.
pub type Id = u32;

/// What becomes of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It goes to the upstream.
    Run,
    /// It waits; [`Gate::overdue`] is asked at that time, if it still does.
    Wait(Nanos),
    /// It is not taken.
    Refuse(Refusal),
}

/// What becomes of one that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It goes to the upstream.
    Run(Id),
    /// It has waited for nothing.
    Refuse(Id, Refusal),
}

/// How one that was at the upstream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With an answer.
    Answered,
    /// Its deadline has come before the answer.
    GivenUp,
    /// Its caller has broken off.
    Gone,
    /// The upstream has refused it.
    Refused,
}

/// One that was at the upstream.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// When it went there.
    pub began: Nanos,
    /// How many were there for this gate then, itself included.
    pub beside: u32,
    /// How late the gate's own process was when it found that out, about.
    pub lag: Nanos,
    /// How it ended.
    pub how: How,
}

/// Stands before the upstream and says who goes there. Time never goes back.
pub trait Gate: fmt::Debug {
    /// The gate's own process has done nothing for so long, ever: what it is told next may have happened meanwhile.
    fn paused(&mut self, _: Nanos) {}
    /// Somebody comes. `told` gets what becomes of others by it, here and below.
    fn arrive(&mut self, now: Nanos, id: Id, call: &Arrival, told: &mut Vec<Told>) -> Entry;
    /// One is back.
    fn ended(&mut self, now: Nanos, ended: &Ended, told: &mut Vec<Told>);
    /// One still waits that said when it is to be looked at: when to look again, unless it is told.
    fn overdue(&mut self, _: Nanos, _: Id, _: &mut Vec<Told>) -> Option<Nanos> {
        None
    }
    /// One that waits goes away.
    fn withdraw(&mut self, _: Id) {}
    /// How many may be at the upstream; none: any number.
    fn limit(&self) -> Option<u32>;
    /// How many are there.
    fn in_flight(&self) -> u32;
    /// How many wait here.
    fn waiting(&self) -> u32 {
        0
    }
}
