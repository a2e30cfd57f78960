//! Events during a run: an objective is missed or met again, or the run is no longer trusted.
//!
//! The verdict on a run is that of its end. While it goes on a user needs the instants: when did the service begin to
//! miss an objective, and since when are weir's own figures in doubt? An objective is judged over the last ten seconds,
//! as a condition that ends a run early, so that a bad moment alone makes none. Trust is judged over the run so far, by
//! the rules that do not depend on its end.

use std::collections::VecDeque;

use super::agent_counts::AgentCounts;
use super::counts::Counts;
use super::load_model::LoadModel;
use super::recorder::Interval;
use super::slo::Slo;
use super::trust::Trust;
use weir_base::Nanos;

/// Length of the time over which an objective is judged.
const WINDOW: Nanos = Nanos::from_secs(10);
/// Maximum number of marks; what comes after them is in the verdict.
const MAX_MARKS: usize = 200;

/// Event during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveEvent {
    /// An objective is missed in the last seconds: the objective, and what was measured.
    Missed(String, String),
    /// The objective is met again.
    Met(String),
    /// The run so far is not trusted, with the reason.
    Doubted(String),
    /// The run is trusted again.
    Trusted,
}

/// Event with its time since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveMark {
    /// End of the interval with which it happened.
    pub at: Nanos,
    /// Event.
    pub event: LiveEvent,
}

/// Observer of a run that notes its events.
#[derive(Clone, Debug)]
pub struct LiveMarks {
    /// Objectives that intervals know, and whether each was missed at the last look.
    objectives: Vec<(Slo, bool)>,
    model: LoadModel,
    spins: bool,
    interval: Nanos,
    warmup: Nanos,
    /// Intervals of the window.
    last: VecDeque<Interval>,
    /// Reason of the last look not to trust the run.
    doubt: Option<String>,
    marks: Vec<LiveMark>,
}

impl LiveMarks {
    /// Observer of a run with these objectives; those on steps, checks and service times are known at its end only.
    pub fn new(objectives: &[Slo], (model, spins): (LoadModel, bool), interval: Nanos, warmup: Nanos) -> Self {
        let known = objectives.iter().filter(|slo| slo.is_known_from_intervals());
        Self {
            objectives: known.map(|slo| (slo.clone(), false)).collect(),
            model,
            spins,
            interval: interval.max(Nanos(1)),
            warmup,
            last: VecDeque::new(),
            doubt: None,
            marks: Vec::new(),
        }
    }

    /// Events so far, in order.
    pub fn marks(&self) -> &[LiveMark] {
        &self.marks
    }

    /// Looks at interval `number`, and at the counts so far of each part that generates the load; at nothing before the
    /// end of the warm-up or after `until`, the end of the load.
    pub fn add(&mut self, number: u64, interval: &Interval, parts: &[AgentCounts], until: Nanos) {
        let (from, at) = (self.interval.0.saturating_mul(number), self.interval.0.saturating_mul(number + 1));
        if Nanos(from) < self.warmup || Nanos(at) > until {
            return;
        }
        let at = Nanos(at);
        self.judge_objectives(at, interval);
        self.judge_trust(at, parts);
    }

    fn judge_objectives(&mut self, at: Nanos, interval: &Interval) {
        if self.objectives.is_empty() {
            return;
        }
        let size = usize::try_from(WINDOW.0.div_ceil(self.interval.0)).unwrap_or(usize::MAX).max(1);
        // Other counts are not looked at.
        self.last.push_back(Interval { counts: None, outcomes: None, steps: Vec::new(), ..interval.clone() });
        if self.last.len() > size {
            self.last.pop_front();
        }
        if self.last.len() < size {
            return;
        }
        let mut all = Interval::default();
        self.last.iter().for_each(|interval| all.add(interval));
        let length_s = Nanos(self.interval.0.saturating_mul(size as u64)).as_secs_f64();
        let mut events = Vec::new();
        for (slo, was_missed) in &mut self.objectives {
            // Nothing that ended is no evidence either way.
            let Some((is_met, measured)) = slo.holds_in(&all, length_s) else { continue };
            if is_met == *was_missed {
                *was_missed = !is_met;
                events.push(match is_met {
                    true => LiveEvent::Met(slo.to_string()),
                    false => LiveEvent::Missed(slo.to_string(), measured),
                });
            }
        }
        events.into_iter().for_each(|event| self.mark(at, event));
    }

    fn judge_trust(&mut self, at: Nanos, parts: &[AgentCounts]) {
        if parts.is_empty() {
            return;
        }
        let doubt = Trust::doubt_so_far(parts, self.model, self.spins);
        match (&self.doubt, &doubt) {
            (None, Some(why)) => self.mark(at, LiveEvent::Doubted(why.clone())),
            (Some(_), None) => self.mark(at, LiveEvent::Trusted),
            _ => {}
        }
        self.doubt = doubt;
    }

    fn mark(&mut self, at: Nanos, event: LiveEvent) {
        if self.marks.len() < MAX_MARKS {
            self.marks.push(LiveMark { at, event });
        }
    }
}

/// Counts of a load that this process generates, as those of one agent.
pub fn own_counts(threads: u64) -> AgentCounts {
    AgentCounts { threads, counts: Counts::default(), ..AgentCounts::default() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::outcome::{Outcome, RequestEnd};
    use crate::recorder::Recorder;

    fn second(ok: u64, failed: u64) -> Interval {
        Interval { ok, failed, ..Interval::default() }
    }

    fn response() -> Outcome {
        let outcome = Outcome::new(RequestEnd::Response(200), Nanos::ZERO, Nanos::from_millis(5));
        Outcome { sent: Nanos(10), ..outcome }
    }

    fn watch(slo: &str) -> LiveMarks {
        let objectives = [slo.parse().expect("an objective"), "checks>99%".parse().expect("an objective")];
        LiveMarks::new(&objectives, (LoadModel::Open, false), Nanos::SECOND, Nanos::from_secs(2))
    }

    #[test]
    fn a_missed_objective_is_marked_once_with_its_time_and_again_when_it_is_met() {
        let mut marks = watch("errors<10%");
        for number in 0..40 {
            marks.add(
                number,
                &if (20..25).contains(&number) { second(50, 50) } else { second(100, 0) },
                &[],
                Nanos::NEVER,
            );
        }
        let found: Vec<_> = marks.marks().iter().map(|mark| (mark.at.as_secs_f64(), &mark.event)).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        // 20% of the last ten seconds are errors after two bad ones, less than a tenth when four of five are over.
        assert!((22.0..24.0).contains(&found[0].0) && (33.0..36.0).contains(&found[1].0), "{found:?}");
        assert!(matches!(found[0].1, LiveEvent::Missed(slo, _) if slo == "errors<10%"), "{found:?}");
        assert_eq!(found[1].1, &LiveEvent::Met("errors<10%".to_owned()));
    }

    #[test]
    fn the_warm_up_and_what_comes_after_the_load_are_no_evidence() {
        let mut marks = watch("errors<10%");
        (0..2).for_each(|number| marks.add(number, &second(0, 1000), &[], Nanos::from_secs(20)));
        (2..20).for_each(|number| marks.add(number, &second(100, 0), &[], Nanos::from_secs(20)));
        (20..40).for_each(|number| marks.add(number, &second(0, 100), &[], Nanos::from_secs(20)));
        assert_eq!(marks.marks(), []);
    }

    #[test]
    fn a_run_is_doubted_from_the_interval_in_which_a_thread_is_saturated() {
        let mut marks = watch("errors<10%");
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        (0..200).for_each(|_| recorder.record(&response()));
        let mut parts = [own_counts(1)];
        parts[0].counts = recorder.take_counts();
        for number in 0..10 {
            parts[0].counts.cpu_utilization = if number < 5 { 0.4 } else { 0.99 };
            marks.add(number, &second(100, 0), &parts, Nanos::NEVER);
        }
        let [mark] = marks.marks() else { panic!("{:?}", marks.marks()) };
        assert_eq!(mark.at, Nanos::from_secs(6));
        assert!(matches!(&mark.event, LiveEvent::Doubted(why) if why.contains("99% of a core")), "{mark:?}");
    }

    proptest! {
        /// Oracle: the sums of the last ten seconds, and no more marks than there are turns.
        #[test]
        fn marks_are_the_turns_of_the_sum_of_the_window(seconds in prop::collection::vec((0..5_u64, 0..5_u64), 1..60)) {
            let mut marks = LiveMarks::new(
                &["errors<30%".parse().expect("an objective")], (LoadModel::Open, false), Nanos::SECOND, Nanos::ZERO);
            let (mut was_missed, mut turns) = (false, Vec::new());
            for (number, (ok, failed)) in seconds.iter().enumerate() {
                marks.add(number as u64, &second(*ok, *failed), &[], Nanos::NEVER);
                let Some(from) = (number + 1).checked_sub(10) else { continue };
                let window = &seconds[from..=number];
                let (ok, failed) = window.iter().fold((0, 0), |(a, b), (ok, failed)| (a + ok, b + failed));
                if ok + failed == 0 { continue }
                let is_missed = failed as f64 >= 0.3 * (ok + failed) as f64;
                if is_missed != was_missed {
                    turns.push((Nanos::from_secs(number as u64 + 1), is_missed));
                    was_missed = is_missed;
                }
            }
            let found: Vec<_> = marks.marks().iter()
                .map(|mark| (mark.at, matches!(mark.event, LiveEvent::Missed(..)))).collect();
            prop_assert_eq!(found, turns);
        }
    }
}
