//! What the agents of a run told, added up: of each on its own, of all together, and stretch by stretch.

use super::speech::AgentEvent;
use crate::decide::Nanos;
use crate::decide::offset::ClockOffset;
use crate::load::{DriveResult, RunParts};
use crate::measure::RunCounts;
use crate::measure::agent::AgentCounts;
use crate::measure::gathering::IntervalMerger;
use crate::measure::recorder::Interval;
use crate::measure::series::RunSeries;

/// The books of a run. Nothing that an agent tells harms them.
#[derive(Debug)]
pub struct AgentAggregator {
    agents: Vec<AgentState>,
    merger: IntervalMerger,
    series: RunSeries,
    ended: u64,
}

#[derive(Debug)]
struct AgentState {
    counts: AgentCounts,
    clock_offset: ClockOffset,
    stage: AgentStage,
    /// The question that it owes an answer to, and when it was asked.
    pending_probe: Option<(u64, Nanos)>,
    /// When something was heard of it last.
    last_message: Nanos,
}

/// How far an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AgentStage {
    Preparing,
    Ready,
    Done,
    Failed,
}

/// The latest stretch that a run can have: a year of tenths of a second.
const MAX_INTERVAL_NUMBER: u64 = 365 * 86_400 * 10;

impl AgentAggregator {
    /// For agents on these nodes that begin to get ready at `now`; `stretch` is the length of a point of the series at first.
    pub fn new(nodes: &[String], stretch: Nanos, now: Nanos) -> Self {
        let entry = |node: &String| AgentState {
            counts: AgentCounts { node: node.clone(), ..AgentCounts::default() },
            clock_offset: ClockOffset::default(),
            stage: AgentStage::Preparing,
            pending_probe: None,
            last_message: now,
        };
        Self {
            agents: nodes.iter().map(entry).collect(),
            merger: IntervalMerger::new(nodes.len() as u64),
            series: RunSeries::with_interval(stretch),
            ended: 0,
        }
    }

    /// Takes in what an agent told, which was here at `now`: the whole stretch, if it was the last to tell of one.
    ///
    /// # Errors
    /// It cannot be true; why, in one line.
    pub fn on_event(&mut self, agent: usize, news: AgentEvent, now: Nanos) -> Result<Option<Interval>, String> {
        let Some(entry) = self.agents.get_mut(agent).filter(|entry| entry.stage < AgentStage::Done) else {
            // Of an earlier load, or of one that was given up.
            return Ok(None);
        };
        entry.last_message = now;
        match news {
            AgentEvent::Hello(_) => {}
            AgentEvent::Clock { probe, at } => {
                if let Some((_, asked)) = entry.pending_probe.take_if(|(number, _)| *number == probe) {
                    entry.clock_offset.add(asked, at, now);
                }
            }
            AgentEvent::Ready(threads) => {
                entry.counts.threads = threads.min(1 << 16);
                entry.stage = AgentStage::Ready;
            }
            AgentEvent::Rejected(why) => return Err(why),
            AgentEvent::Interval(stretch, _) | AgentEvent::PartialInterval(stretch, _)
                if stretch > MAX_INTERVAL_NUMBER =>
            {
                return Err(format!("it told of stretch {stretch}, and no load takes so long"));
            }
            AgentEvent::Interval(stretch, slip) => {
                let interval = record_counts(entry, slip.decode()?);
                if let Some(whole) = self.merger.add(stretch, &interval) {
                    self.ended += whole.ok + whole.failed;
                    self.series.add(stretch, &whole);
                    return Ok(Some(whole));
                }
            }
            AgentEvent::PartialInterval(stretch, slip) => {
                let interval = record_counts(entry, slip.decode()?);
                self.series.add(stretch, &interval);
            }
            AgentEvent::Done(parcel) => {
                entry.counts.counts.add_later(&parcel.decode()?);
                entry.stage = AgentStage::Done;
                self.merger.remove_source();
            }
        }
        Ok(None)
    }

    /// An agent is gone before it was done. What it told before counts.
    pub fn fail(&mut self, agent: usize, why: String) {
        if let Some(entry) = self.agents.get_mut(agent).filter(|entry| entry.stage < AgentStage::Done) {
            entry.counts.failure = Some(why);
            entry.stage = AgentStage::Failed;
            self.merger.remove_source();
        }
    }

    /// An agent is asked what its clock shows.
    pub fn probe(&mut self, agent: usize, number: u64, now: Nanos) {
        if let Some(entry) = self.agents.get_mut(agent) {
            entry.pending_probe = Some((number, now));
        }
    }

    /// Clocks are asked anew: they drift apart.
    pub fn reset_clocks(&mut self) {
        self.agents
            .iter_mut()
            .for_each(|entry| (entry.clock_offset, entry.pending_probe) = (ClockOffset::default(), None));
    }

    /// What is known of clocks now is what agents begin by.
    pub fn record_clock_errors(&mut self) {
        self.agents.iter_mut().for_each(|entry| entry.counts.clock_error = entry.clock_offset.error());
    }

    /// What is known of an agent's clock.
    pub fn clock_offset(&self, agent: usize) -> ClockOffset {
        self.agents.get(agent).map_or_else(ClockOffset::default, |entry| entry.clock_offset)
    }

    /// An agent of which nothing was heard since `then`, if there is one.
    pub fn silent_since(&self, then: Nanos) -> Option<usize> {
        self.agents.iter().position(|entry| entry.stage < AgentStage::Done && entry.last_message < then)
    }

    /// Whether all are ready to begin, or done already since there is nothing for them to do.
    pub fn is_ready(&self) -> bool {
        self.agents.iter().all(|entry| entry.stage >= AgentStage::Ready)
    }

    /// Whether nobody has anything more to tell.
    pub fn is_done(&self) -> bool {
        self.agents.iter().all(|entry| entry.stage >= AgentStage::Done)
    }

    /// Those who have something to tell.
    pub fn running(&self) -> Vec<usize> {
        (0..self.agents.len()).filter(|index| self.agents[*index].stage < AgentStage::Done).collect()
    }

    /// Whether an agent was lost.
    pub fn has_failed(&self) -> bool {
        self.agents.iter().any(|entry| entry.stage == AgentStage::Failed)
    }

    /// Requests ended so far.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// All that was told, when the run is over; when it was ended before its end, and whether somebody wanted that.
    pub fn close(self, stopped: Option<Nanos>, interrupted: bool) -> RunParts {
        let Self { agents, merger: gathering, mut series, .. } = self;
        for (stretch, rest) in gathering.into_partial() {
            series.add(stretch, &rest);
        }
        let mut counted = RunCounts::default();
        let account = |entry: AgentState| {
            counted.add(&entry.counts.counts);
            entry.counts
        };
        let agents = agents.into_iter().map(account).collect();
        RunParts { result: DriveResult { counts: counted, stopped_at: stopped, interrupted }, series, agents }
    }
}

/// Enters what an agent counted, and leaves what happened.
fn record_counts(entry: &mut AgentState, mut interval: Interval) -> Interval {
    if let Some(counted) = interval.counts.take() {
        entry.counts.counts.add_later(&counted);
    }
    interval
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::outcome::{Outcome, RequestEnd};
    use crate::measure::parcel::{WireCounts, WireInterval};
    use crate::measure::recorder::Recorder;
    use proptest::prelude::*;

    fn outcome(ns: u64) -> Outcome {
        Outcome {
            number: 0,
            intended: Nanos::ZERO,
            ready: Nanos::ZERO,
            sent: Nanos(1),
            first_byte: Nanos(ns),
            done: Nanos(ns),
            connect: Nanos::ZERO,
            end: RequestEnd::Response(200),
            bytes_in: 1,
            body_in: 1,
            bytes_out: 1,
        }
    }

    fn nodes(count: usize) -> Vec<String> {
        (0..count).map(|index| format!("n{index}")).collect()
    }

    /// What an agent tells that sees these answers, stretch by stretch.
    fn tells(stretches: &[Vec<u64>]) -> Vec<AgentEvent> {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        let mut told = vec![AgentEvent::Ready(1)];
        for (number, times) in (0..).zip(stretches) {
            times.iter().for_each(|ns| recorder.record(&outcome(*ns)));
            let mut interval = std::mem::take(&mut recorder.interval);
            interval.counts = Some(Box::new(RunCounts { totals: recorder.take_totals(), ..RunCounts::default() }));
            told.push(AgentEvent::Interval(number, WireInterval::encode(&interval)));
        }
        told.push(AgentEvent::Done(Box::new(WireCounts::encode(&RunCounts::default()))));
        told
    }

    proptest! {
        // A case unpacks histograms of megabytes.
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// The oracle: one recorder that sees everything.
        #[test]
        fn agents_together_saw_what_one_would_have_seen(
            agents in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(2..1_000_000_000_u64, 0..20), 1..5), 1..5),
            turns in prop::collection::vec(0..5_usize, 0..60)
        ) {
            let mut ledger = AgentAggregator::new(&nodes(agents.len()), Nanos::SECOND, Nanos::ZERO);
            let mut queues: Vec<std::vec::IntoIter<AgentEvent>> = agents.iter().map(|them| tells(them).into_iter()).collect();
            let rest = (0..agents.len()).flat_map(|agent| [agent; 8]);
            for agent in turns.into_iter().map(|turn| turn % agents.len()).chain(rest) {
                if let Some(news) = queues[agent].next() {
                    ledger.on_event(agent, news, Nanos(1)).expect("true news");
                }
            }
            prop_assert!(ledger.is_done());
            let mut whole = Recorder::new(Nanos::ZERO, Nanos::NEVER);
            agents.iter().flatten().flatten().for_each(|ns| whole.record(&outcome(*ns)));
            let gathered = ledger.close(None, false);
            let totals = &gathered.result.counts.totals;
            prop_assert_eq!(totals.good.response.percentiles(), whole.totals.good.response.percentiles());
            prop_assert_eq!(totals.failed_response().to_bytes(), whole.totals.failed_response().to_bytes());
            prop_assert_eq!((totals.requests, totals.ok), (whole.totals.requests, whole.totals.ok));
            let points = gathered.series.points(10.0);
            prop_assert_eq!(points.iter().map(|point| point.ok).sum::<u64>(), whole.totals.ok);
            for (account, own) in gathered.agents.iter().zip(&agents) {
                prop_assert_eq!(account.counts.totals.requests, own.iter().flatten().count() as u64);
            }
        }
    }

    #[test]
    fn what_a_lost_agent_told_counts_and_nobody_waits_for_it() {
        let mut ledger = AgentAggregator::new(&nodes(2), Nanos::SECOND, Nanos::ZERO);
        for agent in 0..2 {
            for news in tells(&[vec![5, 6], vec![7]]).into_iter().take(2) {
                assert!(ledger.on_event(agent, news, Nanos(9)).is_ok());
            }
        }
        assert_eq!((ledger.silent_since(Nanos(9)), ledger.silent_since(Nanos(10))), (None, Some(0)));
        ledger.fail(1, "gone".into());
        assert_eq!((ledger.running(), ledger.has_failed(), ledger.is_done()), (vec![0], true, false));
        let rest = tells(&[vec![5, 6], vec![7]]).into_iter().skip(2);
        let whole: Vec<_> = rest.map(|news| ledger.on_event(0, news, Nanos(9)).expect("news").is_some()).collect();
        assert_eq!(whole, [true, false]);
        assert!(ledger.is_done());
        let gathered = ledger.close(Some(Nanos::SECOND), false);
        assert_eq!(gathered.result.counts.totals.requests, 5);
        assert_eq!(gathered.agents[1].failure.as_deref(), Some("gone"));
    }

    #[test]
    fn a_clock_s_answer_counts_for_its_own_question_only() {
        let mut ledger = AgentAggregator::new(&nodes(1), Nanos::SECOND, Nanos::ZERO);
        ledger.probe(0, 7, Nanos(100));
        for (probe, answers) in [(6, 0), (7, 1), (7, 1)] {
            let news = AgentEvent::Clock { probe, at: Nanos(5_000) };
            assert!(ledger.on_event(0, news, Nanos(140)).is_ok());
            assert_eq!(ledger.clock_offset(0).samples(), answers);
        }
        assert_eq!(ledger.clock_offset(0).to_remote(Nanos(120)), Nanos(5_000));
    }

    #[test]
    fn absurd_news_are_an_error_and_change_nothing() {
        let mut ledger = AgentAggregator::new(&nodes(1), Nanos::SECOND, Nanos::ZERO);
        assert!(ledger.on_event(0, AgentEvent::Interval(u64::MAX, WireInterval::default()), Nanos(1)).is_err());
        assert!(ledger.on_event(0, AgentEvent::PartialInterval(u64::MAX, WireInterval::default()), Nanos(1)).is_err());
        assert_eq!(ledger.on_event(0, AgentEvent::Rejected("no".into()), Nanos(1)).err().as_deref(), Some("no"));
        assert!(ledger.on_event(9, AgentEvent::Ready(1), Nanos(1)).is_ok_and(|whole| whole.is_none()));
        assert!(!ledger.is_ready());
    }
}
