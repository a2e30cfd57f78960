//! Requests of a session as they become due: a decision without a clock.
//!
//! A turn waits for others: for their ends, or for their starts, each with a delay. It starts when all of these are
//! over, and not before its own time if the trace gives one. Turns that wait for the same end start together (calls of
//! tools, sub-agents), and one that waits for several joins them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_base::Nanos;

use super::trace_record::TurnTrigger;
use super::trace_session::TraceSession;

/// Next step of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayStep {
    /// Sends a turn, with its intended start.
    Send(u32, Nanos),
    /// Nothing is due before this time, if no response comes earlier.
    WaitUntil(Nanos),
    /// Only a response goes on.
    Await,
    /// Has ended; `ok`: with a response to each turn.
    End {
        /// Whether each turn has its response.
        ok: bool,
    },
}

/// Session that is being replayed.
#[derive(Clone, Debug)]
pub struct SessionPlay {
    session: TraceSession,
    begun: Nanos,
    /// By turn: what it waits for, and the earliest start by what is over.
    waits: Vec<TurnWait>,
    /// Turn that is waited for, the turn that waits, and how; sorted.
    edges: Vec<(u32, u32, TurnTrigger, Nanos)>,
    /// Turns that wait for nothing but their time.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    in_flight: u32,
    has_failed: bool,
}

#[derive(Clone, Copy, Debug)]
struct TurnWait {
    open: u32,
    earliest: Nanos,
}

impl SessionPlay {
    /// Session whose first turn is intended at `begun`.
    pub fn new(session: TraceSession, begun: Nanos) -> Self {
        let (mut waits, mut edges, mut due) = (Vec::new(), Vec::new(), BinaryHeap::new());
        for (number, turn) in (0..).zip(session.turns()) {
            let open = u32::try_from(turn.after.len()).unwrap_or(u32::MAX);
            let earliest = begun + turn.not_before;
            waits.push(TurnWait { open, earliest });
            edges.extend(turn.after.iter().map(|wait| (wait.turn, number, wait.trigger, wait.delay)));
            if open == 0 {
                due.push(Reverse((earliest, number)));
            }
        }
        edges.sort_unstable_by_key(|(of, number, ..)| (*of, *number));
        Self { session, begun, waits, edges, due, in_flight: 0, has_failed: false }
    }

    /// Session.
    pub fn session(&self) -> &TraceSession {
        &self.session
    }

    /// Intended start of the first turn.
    pub fn begun(&self) -> Nanos {
        self.begun
    }

    /// Next step at `now`. A turn that is to be sent counts as sent.
    pub fn next(&mut self, now: Nanos) -> PlayStep {
        match self.due.peek().filter(|_| !self.has_failed) {
            Some(Reverse((at, turn))) if *at <= now => {
                let (at, turn) = (*at, *turn);
                self.due.pop();
                self.in_flight += 1;
                self.is_over(turn, TurnTrigger::Start, at);
                PlayStep::Send(turn, at)
            }
            Some(Reverse((at, _))) => PlayStep::WaitUntil(*at),
            None if self.in_flight > 0 => PlayStep::Await,
            None => PlayStep::End { ok: !self.has_failed },
        }
    }

    /// Whether nothing happens before the one request that is in flight ends.
    pub fn waits_for_one(&self) -> bool {
        self.in_flight == 1 && self.due.is_empty()
    }

    /// Takes the end of a turn. After a failure nothing more is sent.
    pub fn ended(&mut self, turn: u32, at: Nanos, ok: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.has_failed |= !ok;
        self.is_over(turn, TurnTrigger::End, at);
    }

    /// Continues the turns that wait for this.
    fn is_over(&mut self, turn: u32, what: TurnTrigger, at: Nanos) {
        let first = self.edges.partition_point(|(of, ..)| *of < turn);
        let of_turn = self.edges[first..].iter().take_while(|(of, ..)| *of == turn);
        for (_, number, _, delay) in of_turn.filter(|(_, _, trigger, _)| *trigger == what) {
            let Some(wait) = self.waits.get_mut(*number as usize) else { continue };
            wait.earliest = wait.earliest.max(at + *delay);
            wait.open = wait.open.saturating_sub(1);
            if wait.open == 0 {
                self.due.push(Reverse((wait.earliest, *number)));
            }
        }
    }
}
