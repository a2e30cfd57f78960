//! Aggregation of a run's results from its agents: per agent, in total, and by interval.

use std::collections::BTreeMap;

use super::protocol::AgentEvent;
use super::step_join::StepJoin;
use weir_base::Nanos;
use weir_measure::agent_counts::AgentCounts;
use weir_measure::end_reason::EndReason;
use weir_measure::interval_merger::IntervalMerger;
use weir_measure::recorder::Interval;
use weir_measure::run_steps::StepFacts;
use weir_measure::series::RunSeries;
use weir_pace::clock_offset::ClockOffset;

/// Aggregated results of a run. Invalid events of an agent are errors, and leave them unchanged.
#[derive(Debug)]
pub struct AgentAggregator {
    agents: Vec<AgentState>,
    /// Counts so far, of each agent.
    parts: Vec<AgentCounts>,
    merger: IntervalMerger,
    /// Sums of the intervals that agents have not reached whole.
    partial: BTreeMap<u64, Interval>,
    series: RunSeries,
    ended: u64,
    steps: StepJoin,
    script_reports: Vec<String>,
}

#[derive(Debug)]
struct AgentState {
    clock_offset: ClockOffset,
    stage: AgentStage,
    /// Number of the open clock probe, and when it was sent.
    pending_probe: Option<(u64, Nanos)>,
    /// Time of the last message.
    last_message: Nanos,
    /// Why its script has ended its load.
    ended_by: Option<EndReason>,
}

/// Stage of an agent in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AgentStage {
    Preparing,
    Ready,
    Done,
    Failed,
}

/// Highest number of an interval: a year of tenths of a second.
const MAX_INTERVAL_NUMBER: u64 = 365 * 86_400 * 10;

impl AgentAggregator {
    /// Aggregator for agents on these nodes that prepare from `now` on; `interval` is the initial length of an interval
    /// of the series.
    pub fn new(nodes: &[String], interval: Nanos, now: Nanos) -> Self {
        let part = |node: &String| AgentCounts { node: node.clone(), ..AgentCounts::default() };
        let entry = |_: &String| AgentState {
            clock_offset: ClockOffset::default(),
            stage: AgentStage::Preparing,
            pending_probe: None,
            last_message: now,
            ended_by: None,
        };
        Self {
            agents: nodes.iter().map(entry).collect(),
            parts: nodes.iter().map(part).collect(),
            merger: IntervalMerger::new(nodes.len() as u64),
            partial: BTreeMap::new(),
            series: RunSeries::with_interval(interval),
            ended: 0,
            steps: StepJoin::new(nodes.len()),
            script_reports: Vec::new(),
        }
    }

    /// Handles an event of an agent that arrived at `now`; returns an interval once all agents have reported it.
    ///
    /// # Errors
    /// The event is invalid; the reason, in one line.
    pub fn on_event(&mut self, agent: usize, news: AgentEvent, now: Nanos) -> Result<Option<(u64, Interval)>, String> {
        let Some(entry) = self.agents.get_mut(agent).filter(|entry| entry.stage < AgentStage::Done) else {
            // Event of an earlier load, or of an agent that has failed.
            return Ok(None);
        };
        let Some(part) = self.parts.get_mut(agent) else { return Ok(None) };
        entry.last_message = now;
        match news {
            AgentEvent::Hello(_) => {}
            AgentEvent::Clock { probe, at } => {
                if let Some((_, asked_at)) = entry.pending_probe.take_if(|(number, _)| *number == probe) {
                    entry.clock_offset.add(asked_at, at, now);
                }
            }
            AgentEvent::Ready(threads) => {
                part.threads = threads.min(1 << 16);
                entry.stage = AgentStage::Ready;
            }
            AgentEvent::Rejected(why) => return Err(why),
            AgentEvent::Interval(number, _) | AgentEvent::PartialInterval(number, _)
                if number > MAX_INTERVAL_NUMBER =>
            {
                return Err(format!("interval {number} is beyond the longest load"));
            }
            AgentEvent::Steps(steps) => self.steps.name(agent, &steps)?,
            AgentEvent::Ended(reason) => entry.ended_by = Some(reason),
            AgentEvent::ScriptReport(report) => self.script_reports.push(report),
            AgentEvent::Interval(number, mut interval) => {
                interval.check()?;
                self.steps.join(agent, &mut interval)?;
                move_counts(part, &mut interval);
                if let Some(whole) = self.merger.add(number, &interval) {
                    self.ended += whole.ended();
                    self.series.add(number, &whole);
                    return Ok(Some((number, whole)));
                }
            }
            AgentEvent::PartialInterval(number, mut interval) => {
                interval.check()?;
                self.steps.join(agent, &mut interval)?;
                move_counts(part, &mut interval);
                self.series.add(number, &interval);
                self.partial.entry(number).or_default().add(&interval);
            }
            AgentEvent::Done(mut counts) => {
                counts.check()?;
                self.steps.join_counts(agent, &mut counts.steps)?;
                part.counts.add_later(&counts);
                entry.stage = AgentStage::Done;
                self.merger.remove_source();
            }
        }
        Ok(None)
    }

    /// Marks an agent as failed. Its earlier results count.
    pub fn fail(&mut self, agent: usize, why: String) {
        let entry = self.agents.get_mut(agent).filter(|entry| entry.stage < AgentStage::Done);
        if let (Some(entry), Some(part)) = (entry, self.parts.get_mut(agent)) {
            entry.stage = AgentStage::Failed;
            part.failure = Some(why);
            self.merger.remove_source();
        }
    }

    /// Records a clock probe that was sent to an agent.
    pub fn probe(&mut self, agent: usize, number: u64, now: Nanos) {
        if let Some(entry) = self.agents.get_mut(agent) {
            entry.pending_probe = Some((number, now));
        }
    }

    /// Discards clock offsets, which drift between loads.
    pub fn reset_clocks(&mut self) {
        self.agents
            .iter_mut()
            .for_each(|entry| (entry.clock_offset, entry.pending_probe) = (ClockOffset::default(), None));
    }

    /// Saves the current clock errors, as those at the start.
    pub fn record_clock_errors(&mut self) {
        for (part, entry) in self.parts.iter_mut().zip(&self.agents) {
            part.clock_error = entry.clock_offset.error();
        }
    }

    /// Counts so far, of each agent.
    pub fn parts(&self) -> &[AgentCounts] {
        &self.parts
    }

    /// Estimate of an agent's clock offset.
    pub fn clock_offset(&self, agent: usize) -> ClockOffset {
        self.agents.get(agent).map_or_else(ClockOffset::default, |entry| entry.clock_offset)
    }

    /// Agent without a message since `then`, if there is one.
    pub fn silent_since(&self, then: Nanos) -> Option<usize> {
        self.agents.iter().position(|entry| entry.stage < AgentStage::Done && entry.last_message < then)
    }

    /// Whether all agents are ready to start, or done already without any work.
    pub fn is_ready(&self) -> bool {
        self.agents.iter().all(|entry| entry.stage >= AgentStage::Ready)
    }

    /// Whether all agents are done or have failed.
    pub fn is_done(&self) -> bool {
        self.agents.iter().all(|entry| entry.stage >= AgentStage::Done)
    }

    /// Agents that are neither done nor failed.
    pub fn running(&self) -> Vec<usize> {
        (0..self.agents.len()).filter(|index| self.agents[*index].stage < AgentStage::Done).collect()
    }

    /// Whether an agent has failed.
    pub fn has_failed(&self) -> bool {
        self.agents.iter().any(|entry| entry.stage == AgentStage::Failed)
    }

    /// Number of requests that have ended.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// Error of a script that ends the load of all agents.
    pub(crate) fn script_error(&self) -> Option<&EndReason> {
        let mut reasons = self.agents.iter().filter_map(|entry| entry.ended_by.as_ref());
        reasons.find(|reason| matches!(reason, EndReason::ScriptError(_)))
    }

    /// Why scripts have ended the load: one of them by an error, or each by itself.
    pub(crate) fn ended_by(&self) -> Option<EndReason> {
        let each = || self.agents.iter().map(|entry| entry.ended_by.clone()).collect::<Option<Vec<_>>>();
        self.script_error().cloned().or_else(|| each()?.into_iter().next())
    }

    /// Final reports of the agents' scripts; leaves none.
    pub(crate) fn take_script_reports(&mut self) -> Vec<String> {
        std::mem::take(&mut self.script_reports)
    }

    /// Steps of scripts by their names.
    pub(crate) fn named_steps(&self) -> &[StepFacts] {
        self.steps.facts()
    }

    /// Takes the join of the steps.
    pub(crate) fn take_steps(&mut self) -> StepJoin {
        std::mem::replace(&mut self.steps, StepJoin::new(0))
    }

    /// Intervals that not all agents have reached, in order; later calls return none.
    pub fn take_partial(&mut self) -> BTreeMap<u64, Interval> {
        let merger = std::mem::replace(&mut self.merger, IntervalMerger::new(0));
        let mut partial = std::mem::take(&mut self.partial);
        for (number, part) in merger.into_partial() {
            self.series.add(number, &part);
            partial.entry(number).or_default().add(&part);
        }
        partial
    }

    /// Counts of each agent, and the series of all.
    pub fn close(mut self) -> (Vec<AgentCounts>, RunSeries) {
        self.take_partial();
        let Self { parts, series, .. } = self;
        (parts, series)
    }
}

/// Moves the counts of an interval to those of the agent.
fn move_counts(part: &mut AgentCounts, interval: &mut Interval) {
    if let Some(counts) = interval.counts.take() {
        part.counts.add_later(&counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_measure::Counts;
    use weir_measure::outcome::{Outcome, RequestEnd};
    use weir_measure::recorder::Recorder;

    fn outcome(ns: u64) -> Outcome {
        Outcome { sent: Nanos(1), ..Outcome::new(RequestEnd::Response(200), Nanos::ZERO, Nanos(ns)) }
    }

    fn nodes(count: usize) -> Vec<String> {
        (0..count).map(|index| format!("n{index}")).collect()
    }

    /// Events of an agent with these response times, by interval.
    fn events(intervals: &[Vec<u64>]) -> Vec<AgentEvent> {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        let mut events = vec![AgentEvent::Ready(1)];
        for (number, times) in (0..).zip(intervals) {
            times.iter().for_each(|ns| recorder.record(&outcome(*ns)));
            let mut interval = std::mem::take(&mut recorder.interval);
            interval.counts = Some(Box::new(recorder.take_counts()));
            events.push(AgentEvent::Interval(number, interval));
        }
        events.push(AgentEvent::Done(Box::default()));
        events
    }

    proptest! {
        // A case decodes histograms of megabytes.
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Oracle: one recorder of all responses.
        #[test]
        fn results_of_agents_add_up_to_those_of_a_single_recorder(
            agents in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(2..1_000_000_000_u64, 0..20), 1..5), 1..5),
            turns in prop::collection::vec(0..5_usize, 0..60)
        ) {
            let mut ledger = AgentAggregator::new(&nodes(agents.len()), Nanos::SECOND, Nanos::ZERO);
            let mut queues: Vec<std::vec::IntoIter<AgentEvent>> =
                agents.iter().map(|intervals| events(intervals).into_iter()).collect();
            let rest = (0..agents.len()).flat_map(|agent| [agent; 8]);
            for agent in turns.into_iter().map(|turn| turn % agents.len()).chain(rest) {
                if let Some(news) = queues[agent].next() {
                    ledger.on_event(agent, news, Nanos(1)).expect("a valid event");
                }
            }
            prop_assert!(ledger.is_done());
            let mut whole = Recorder::new(Nanos::ZERO, Nanos::NEVER);
            agents.iter().flatten().flatten().for_each(|ns| whole.record(&outcome(*ns)));
            let (aggregated, series) = ledger.close();
            let counts: Counts = aggregated.iter().map(|agent| &agent.counts).sum();
            prop_assert_eq!(counts.good.response.percentiles(), whole.counts.good.response.percentiles());
            prop_assert_eq!(counts.failed_response().to_bytes(), whole.counts.failed_response().to_bytes());
            prop_assert_eq!((counts.requests, counts.ok), (whole.counts.requests, whole.counts.ok));
            let points = series.points(10.0);
            prop_assert_eq!(points.iter().map(|point| point.ok).sum::<u64>(), whole.counts.ok);
            for (agent, own) in aggregated.iter().zip(&agents) {
                prop_assert_eq!(agent.counts.requests, own.iter().flatten().count() as u64);
            }
        }
    }

    #[test]
    fn results_of_a_failed_agent_count_and_the_run_does_not_wait_for_it() {
        let mut ledger = AgentAggregator::new(&nodes(2), Nanos::SECOND, Nanos::ZERO);
        for agent in 0..2 {
            for news in events(&[vec![5, 6], vec![7]]).into_iter().take(2) {
                assert!(ledger.on_event(agent, news, Nanos(9)).is_ok());
            }
        }
        assert_eq!((ledger.silent_since(Nanos(9)), ledger.silent_since(Nanos(10))), (None, Some(0)));
        ledger.fail(1, "gone".into());
        assert_eq!((ledger.running(), ledger.has_failed(), ledger.is_done()), (vec![0], true, false));
        let rest = events(&[vec![5, 6], vec![7]]).into_iter().skip(2);
        let whole: Vec<_> = rest.map(|news| ledger.on_event(0, news, Nanos(9)).expect("valid").is_some()).collect();
        assert_eq!(whole, [true, false]);
        assert!(ledger.is_done());
        let (agents, _) = ledger.close();
        assert_eq!(agents.iter().map(|agent| agent.counts.requests).sum::<u64>(), 5);
        assert_eq!(agents[1].failure.as_deref(), Some("gone"));
    }

    #[test]
    fn a_clock_response_counts_for_its_own_probe_only() {
        let mut ledger = AgentAggregator::new(&nodes(1), Nanos::SECOND, Nanos::ZERO);
        ledger.probe(0, 7, Nanos(100));
        for (probe, samples) in [(6, 0), (7, 1), (7, 1)] {
            let news = AgentEvent::Clock { probe, at: Nanos(5_000) };
            assert!(ledger.on_event(0, news, Nanos(140)).is_ok());
            assert_eq!(ledger.clock_offset(0).samples(), samples);
        }
        assert_eq!(ledger.clock_offset(0).to_remote(Nanos(120)), Nanos(5_000));
    }

    #[test]
    fn an_invalid_event_is_an_error_and_changes_nothing() {
        let mut ledger = AgentAggregator::new(&nodes(1), Nanos::SECOND, Nanos::ZERO);
        assert!(ledger.on_event(0, AgentEvent::Interval(u64::MAX, Interval::default()), Nanos(1)).is_err());
        assert!(ledger.on_event(0, AgentEvent::PartialInterval(u64::MAX, Interval::default()), Nanos(1)).is_err());
        assert_eq!(ledger.on_event(0, AgentEvent::Rejected("no".into()), Nanos(1)).err().as_deref(), Some("no"));
        assert!(ledger.on_event(9, AgentEvent::Ready(1), Nanos(1)).is_ok_and(|whole| whole.is_none()));
        assert!(!ledger.is_ready());
    }
}
