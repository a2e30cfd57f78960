//! Session of a trace as it was recorded, and the requests that it becomes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use weir_base::Nanos;

use super::trace_record::{TraceDependency, TraceRecord, TraceStart, TurnTrigger};
use super::trace_session::{TraceSession, TraceTurn, TurnDependency};

/// What the requests of a session wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnRule {
    /// Whether the trace names all that a request waits for.
    pub names_all: bool,
    /// Whether requests with a time of their own wait for the response before, instead of that time.
    pub chains: bool,
}

/// Requests of a session in the order of the trace.
#[derive(Clone, Debug)]
pub struct RecordedSession {
    /// Name, a hash; none of a request that belongs to no session.
    pub name: Option<u64>,
    turns: Vec<RecordedTurn>,
}

/// Request with its number in the trace.
#[derive(Clone, Debug)]
struct RecordedTurn {
    number: u64,
    record: TraceRecord,
}

/// Session as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct AssembledSession {
    /// Requests.
    pub session: TraceSession,
    /// Number of requests that are left out: they wait for one that the session does not have, or for one another.
    pub lost: u64,
}

impl RecordedSession {
    /// Session that begins with a request, number `number` of the trace.
    pub fn new(name: Option<u64>, number: u64, record: TraceRecord) -> Self {
        Self { name, turns: vec![RecordedTurn { number, record }] }
    }

    /// Adds a request, number `number` of the trace.
    pub fn push(&mut self, number: u64, record: TraceRecord) {
        self.turns.push(RecordedTurn { number, record });
    }

    /// Requests, in the order of the trace.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &TraceRecord> {
        self.turns.iter().map(|turn| &turn.record)
    }

    /// Requests as they are sent; `None` without any that waits for nothing.
    pub fn assembled(mut self, rule: TurnRule) -> Option<AssembledSession> {
        let by_time = self.records().all(|record| record.after.is_empty() && record.arrival().is_some());
        if by_time && !rule.names_all {
            self.turns.sort_by_key(|turn| turn.record.arrival());
        }
        let roots = (0..).zip(self.records()).filter(|(_, record)| record.after.is_empty());
        let (first, begun) =
            roots.filter_map(|(at, record)| Some((at, record.arrival()?))).min_by_key(|(_, arrival)| *arrival)?;
        self.turns[..=first].rotate_right(1);
        let all = self.turns.len();
        let order = TurnOrder::of(&self.turns, rule);
        let mut turns: Vec<Option<RecordedTurn>> = self.turns.into_iter().map(Some).collect();
        let sent = order.placed.into_iter().filter_map(|(at, after)| {
            let RecordedTurn { number, record } = turns.get_mut(at)?.take()?;
            // With the recorded times a request that waits for others has its own time as well.
            let keeps_time = after.is_empty() || !rule.chains;
            let since = record.arrival().map_or(0, |arrival| arrival.saturating_sub(begun));
            Some(TraceTurn {
                number,
                session: self.name,
                after,
                not_before: Nanos(if keeps_time { u64::try_from(since).unwrap_or(0) } else { 0 }),
                input_tokens: record.input_tokens,
                output_tokens: record.output_tokens,
                prompt: record.prompt,
            })
        });
        let mut sent = sent.collect::<Vec<_>>().into_iter();
        let session = TraceSession { client: 0, arrival: begun, first: sent.next()?, later: sent.collect() };
        let lost = (all - 1 - session.later.len()) as u64;
        Some(AssembledSession { session, lost })
    }
}

/// Order in which each request follows all that it waits for.
#[derive(Debug, Default)]
struct TurnOrder {
    /// Requests by their index, each with what it waits for.
    placed: Vec<(usize, Box<[TurnDependency]>)>,
}

/// What a request waits for, by indices.
#[derive(Debug)]
struct IndexedWait {
    of: usize,
    trigger: TurnTrigger,
    delay: Nanos,
}

impl TurnOrder {
    fn of(turns: &[RecordedTurn], rule: TurnRule) -> Self {
        let ids: HashMap<u64, usize> =
            turns.iter().enumerate().rev().filter_map(|(at, turn)| Some((turn.record.id?, at))).collect();
        let waits: Vec<Option<Vec<IndexedWait>>> = (0..turns.len()).map(|at| waits_of(turns, at, rule, &ids)).collect();
        let mut open: Vec<usize> = waits.iter().map(|waits| waits.as_ref().map_or(usize::MAX, Vec::len)).collect();
        let mut followers: Vec<Vec<usize>> = vec![Vec::new(); turns.len()];
        for (at, waits) in waits.iter().enumerate() {
            for wait in waits.iter().flatten() {
                followers[wait.of].push(at);
            }
        }
        let mut ready: BinaryHeap<Reverse<usize>> = (0..turns.len()).filter(|at| open[*at] == 0).map(Reverse).collect();
        let (mut own, mut places) = (Self::default(), vec![0_u32; turns.len()]);
        while let Some(Reverse(at)) = ready.pop() {
            places[at] = u32::try_from(own.placed.len()).unwrap_or(u32::MAX);
            let waits = waits[at].iter().flatten();
            let after =
                waits.map(|wait| TurnDependency { turn: places[wait.of], trigger: wait.trigger, delay: wait.delay });
            own.placed.push((at, after.collect()));
            for follower in std::mem::take(&mut followers[at]) {
                open[follower] -= 1;
                if open[follower] == 0 {
                    ready.push(Reverse(follower));
                }
            }
        }
        own
    }
}

/// What a request waits for; `None` if the session does not have all of it.
fn waits_of(turns: &[RecordedTurn], at: usize, rule: TurnRule, ids: &HashMap<u64, usize>) -> Option<Vec<IndexedWait>> {
    let record = &turns[at].record;
    if !record.after.is_empty() {
        let indexed = |wait: &TraceDependency| {
            Some(IndexedWait { of: *ids.get(&wait.request)?, trigger: wait.trigger, delay: wait.delay })
        };
        return record.after.iter().map(indexed).collect();
    }
    Some(wait_for_the_one_before(turns, at, rule).into_iter().collect())
}

/// The request before, as what one without named ones waits for. With a time of its own it waits for the time that passed
/// between the two, if sessions are to be loops.
fn wait_for_the_one_before(turns: &[RecordedTurn], at: usize, rule: TurnRule) -> Option<IndexedWait> {
    let of = at.checked_sub(1)?;
    let delay = match turns[at].record.start {
        TraceStart::Delay(delay) => delay,
        TraceStart::At(_) if rule.names_all || !rule.chains => return None,
        TraceStart::At(arrival) => {
            let before = &turns[of].record;
            let ended = before.arrival()?.saturating_add_unsigned(before.took.0);
            Nanos(u64::try_from(arrival.saturating_sub(ended)).unwrap_or(0))
        }
    };
    Some(IndexedWait { of, trigger: TurnTrigger::End, delay })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::trace::TracePrompt;

    const S: i64 = 1_000_000_000;
    const OPEN: TurnRule = TurnRule { names_all: false, chains: false };
    const LOOPS: TurnRule = TurnRule { names_all: false, chains: true };

    fn record(start: TraceStart, id: u64, after: &[u64]) -> TraceRecord {
        let wait = |request: &u64| TraceDependency { request: *request, trigger: TurnTrigger::End, delay: Nanos(7) };
        TraceRecord {
            start,
            took: Nanos::ZERO,
            id: Some(id),
            after: after.iter().map(wait).collect(),
            session: Some(1),
            input_tokens: 1,
            output_tokens: 1,
            prompt: TracePrompt::Text(Box::default()),
        }
    }

    /// Request with its number, what it waits for by number, and its earliest start.
    type Sent = (u64, Vec<u64>, Nanos);

    /// Requests in the order in which they are sent, and how many are lost.
    fn assembled(records: &[TraceRecord], rule: TurnRule) -> Option<(Vec<Sent>, u64)> {
        let mut session = RecordedSession::new(Some(1), 0, records.first()?.clone());
        (1..).zip(&records[1..]).for_each(|(number, record)| session.push(number, record.clone()));
        let AssembledSession { session, lost } = session.assembled(rule)?;
        let numbers: Vec<u64> = session.turns().map(|turn| turn.number).collect();
        let turn = |turn: &TraceTurn| {
            let after = turn.after.iter().map(|wait| numbers[wait.turn as usize]).collect();
            (turn.number, after, turn.not_before)
        };
        Some((session.turns().map(turn).collect(), lost))
    }

    fn at(second: i64) -> TraceStart {
        TraceStart::At(second * S)
    }

    #[test]
    fn a_join_waits_for_a_request_on_a_later_line() {
        let records = [record(at(0), 10, &[]), record(at(1), 11, &[10, 12]), record(at(1), 12, &[10])];
        let (turns, lost) = assembled(&records, OPEN).unwrap();
        assert_eq!((turns[1].0, &turns[1].1, lost), (2, &vec![0], 0));
        assert_eq!((turns[2].0, &turns[2].1), (1, &vec![0, 2]));
    }

    #[test]
    fn a_request_that_waits_for_what_is_not_there_is_lost_and_so_is_what_waits_for_it() {
        let records =
            [record(at(0), 10, &[]), record(at(1), 11, &[10, 99]), record(at(2), 12, &[11]), record(at(3), 13, &[10])];
        let (turns, lost) = assembled(&records, OPEN).unwrap();
        assert_eq!((turns.iter().map(|turn| turn.0).collect::<Vec<_>>(), lost), (vec![0, 3], 2));
        let circle = [record(at(0), 10, &[]), record(at(1), 11, &[12]), record(at(2), 12, &[11])];
        assert_eq!(assembled(&circle, OPEN).unwrap().1, 2);
        assert_eq!(assembled(&[record(at(0), 10, &[10])], OPEN), None);
    }

    #[test]
    fn sessions_that_are_loops_are_in_the_order_of_time() {
        let records = [record(at(2), 10, &[]), record(at(0), 11, &[]), record(at(1), 12, &[])];
        let (turns, _) = assembled(&records, LOOPS).unwrap();
        assert_eq!(
            turns.iter().map(|turn| (turn.0, turn.1.clone())).collect::<Vec<_>>(),
            [(1, vec![]), (2, vec![1]), (0, vec![2])]
        );
    }

    #[test]
    fn requests_that_wait_for_nothing_start_at_their_times_where_the_trace_names_all() {
        let records = [record(at(0), 10, &[]), record(at(3), 11, &[]), record(at(1), 12, &[10])];
        let (turns, _) = assembled(&records, TurnRule { names_all: true, chains: true }).unwrap();
        assert_eq!(turns[1], (1, vec![], Nanos::from_secs(3)));
        assert_eq!(turns[2], (2, vec![0], Nanos::ZERO));
    }

    #[test]
    fn a_delay_follows_the_request_before_it_also_after_one_with_a_time() {
        let delay = TraceStart::Delay(Nanos::from_secs(1));
        let records = [record(at(0), 10, &[]), record(delay, 11, &[]), record(at(5), 12, &[]), record(delay, 13, &[])];
        let (turns, lost) = assembled(&records, OPEN).unwrap();
        assert_eq!(turns.iter().map(|turn| turn.1.clone()).collect::<Vec<_>>(), [vec![], vec![0], vec![], vec![2]]);
        assert_eq!((turns[2].2, lost), (Nanos::from_secs(5), 0));
    }

    proptest! {
        /// Any requests at all: each is sent after all that it waits for, or lost.
        #[test]
        fn each_request_follows_what_it_waits_for_or_is_lost(
            shapes in prop::collection::vec((0_i64..5, any::<bool>(), prop::collection::vec(0_u64..8, 0..3)), 1..8),
            names_all: bool, chains: bool,
        ) {
            let start = |second: i64, timed: bool| if timed { at(second) } else { TraceStart::Delay(Nanos(1)) };
            let records: Vec<TraceRecord> =
                (0..).zip(&shapes).map(|(id, (second, timed, after))| record(start(*second, *timed), id, after)).collect();
            match assembled(&records, TurnRule { names_all, chains }) {
                None => prop_assert!(records.iter().all(|record| !record.after.is_empty() || record.arrival().is_none())),
                Some((turns, lost)) => {
                    prop_assert_eq!(turns.len() + lost as usize, records.len());
                    let mut seen = Vec::new();
                    for (number, after, _) in &turns {
                        prop_assert!(after.iter().all(|of| seen.contains(of)));
                        let named = &records[*number as usize].after;
                        prop_assert!(named.is_empty() || after.len() == named.len());
                        seen.push(*number);
                    }
                }
            }
        }
    }
}
