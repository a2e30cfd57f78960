//! Later turns of sessions that a reader has in its window: what each waits for.

use std::collections::HashMap;

use super::trace_options::TraceLoop;
use crate::trace::{TraceRecord, TraceStart, TraceTurn, TurnDependency, TurnTrigger};
use weir_base::Nanos;

/// Turns that wait for their session's first one to leave the window.
#[derive(Debug)]
pub(super) struct LaterTurns {
    /// Number of the first turn in the trace, and its arrival.
    pub(super) first: u64,
    begun: i64,
    pub(super) turns: Vec<TraceTurn>,
    /// End of the last turn as recorded, or its start; `None` if it has no time.
    last_end: Option<i64>,
    /// Identifiers of the turns, as far as they have any.
    ids: Vec<u64>,
}

impl LaterTurns {
    pub(super) fn new(first: u64, at: i64, took: Nanos, id: Option<u64>) -> Self {
        let mut own = Self { first, begun: at, turns: Vec::new(), last_end: None, ids: id.into_iter().collect() };
        own.ends(TraceStart::At(at), took);
        own
    }

    fn ends(&mut self, start: TraceStart, took: Nanos) {
        self.last_end = match start {
            TraceStart::At(at) => Some(at.saturating_add_unsigned(took.0)),
            TraceStart::Delay(_) => None,
        };
    }

    /// Turn of a record, number `number` in the trace; `None` if all that it waits for was left out.
    pub(super) fn turn(
        &self,
        record: TraceRecord,
        places: &TurnPlaces,
        (number, session): (u64, Option<u64>),
        pacing: TraceLoop,
    ) -> Option<TraceTurn> {
        let since_begin = match record.start {
            TraceStart::At(at) => Nanos(u64::try_from(at.saturating_sub(self.begun)).unwrap_or(0)),
            TraceStart::Delay(_) => Nanos::ZERO,
        };
        let place = |of: u64| places.turn_of(of, session);
        let is_waiting = !record.after.is_empty();
        let after: Box<[TurnDependency]> = if is_waiting {
            let known = record.after.iter().filter_map(|wait| {
                Some(TurnDependency { turn: place(wait.request)?, trigger: wait.trigger, delay: wait.delay })
            });
            known.collect()
        } else {
            self.turn_before(record.start, pacing).into_iter().collect()
        };
        if is_waiting && after.is_empty() {
            return None;
        }
        // With the recorded times a request that waits for others has its own time as well.
        let keeps_time = after.is_empty() || pacing == TraceLoop::Open;
        Some(TraceTurn {
            number,
            session,
            after,
            not_before: if keeps_time { since_begin } else { Nanos::ZERO },
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens,
            prompt: record.prompt,
        })
    }

    /// The turn before, as what a request without named ones waits for. With a time of its own it waits for the time that
    /// passed between the two, if sessions are to be loops.
    fn turn_before(&self, start: TraceStart, pacing: TraceLoop) -> Option<TurnDependency> {
        let turn = u32::try_from(self.turns.len()).ok()?;
        let delay = match start {
            TraceStart::Delay(delay) => delay,
            TraceStart::At(_) if pacing == TraceLoop::Open => return None,
            TraceStart::At(at) => Nanos(u64::try_from(at.saturating_sub(self.last_end?)).unwrap_or(0)),
        };
        Some(TurnDependency { turn, trigger: TurnTrigger::End, delay })
    }

    pub(super) fn push(&mut self, turn: TraceTurn, (start, took): (TraceStart, Nanos), id: Option<u64>) {
        self.turns.push(turn);
        self.ends(start, took);
        self.ids.extend(id);
    }
}

/// Requests in the window that others may wait for, by their identifiers: session, and turn in it.
#[derive(Debug, Default)]
pub(super) struct TurnPlaces(HashMap<u64, (u64, u32)>);

impl TurnPlaces {
    /// Session of the first request that is known of those that a record waits for.
    pub(super) fn session_of(&self, record: &TraceRecord) -> Option<u64> {
        record.after.iter().find_map(|wait| self.0.get(&wait.request)).map(|(session, _)| *session)
    }

    /// Turn of a request in a session.
    fn turn_of(&self, request: u64, session: Option<u64>) -> Option<u32> {
        self.0.get(&request).filter(|(of, _)| Some(*of) == session).map(|(_, turn)| *turn)
    }

    /// Adds a request, by its identifier, if it has one.
    pub(super) fn add(&mut self, id: Option<u64>, session: Option<u64>, turn: usize) {
        if let (Some(id), Some(session), Ok(turn)) = (id, session, u32::try_from(turn)) {
            self.0.insert(id, (session, turn));
        }
    }

    /// Removes the requests of a session.
    pub(super) fn remove(&mut self, turns: &LaterTurns) {
        for id in &turns.ids {
            self.0.remove(id);
        }
    }
}
