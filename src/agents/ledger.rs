//! What the agents of a run told, added up: of each on its own, of all together, and stretch by stretch.

use super::speech::News;
use crate::decide::Nanos;
use crate::decide::offset::Offset;
use crate::load::{Driven, Gathered};
use crate::measure::Counted;
use crate::measure::agent::Account;
use crate::measure::gathering::Gathering;
use crate::measure::recorder::Interval;
use crate::measure::series::Series;

/// The books of a run. Nothing that an agent tells harms them.
#[derive(Debug)]
pub struct Ledger {
    agents: Vec<Entry>,
    gathering: Gathering,
    series: Series,
    ended: u64,
}

#[derive(Debug)]
struct Entry {
    account: Account,
    offset: Offset,
    stage: Stage,
    /// The question that it owes an answer to, and when it was asked.
    asked: Option<(u64, Nanos)>,
    /// When something was heard of it last.
    heard: Nanos,
}

/// How far an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    GettingReady,
    Ready,
    Done,
    Lost,
}

/// The latest stretch that a run can have: a year of tenths of a second.
const LATEST: u64 = 365 * 86_400 * 10;

impl Ledger {
    /// For agents on these nodes that begin to get ready at `now`; `stretch` is the length of a point of the series at first.
    pub fn new(nodes: &[String], stretch: Nanos, now: Nanos) -> Self {
        let entry = |node: &String| Entry {
            account: Account { node: node.clone(), ..Account::default() },
            offset: Offset::default(),
            stage: Stage::GettingReady,
            asked: None,
            heard: now,
        };
        Self {
            agents: nodes.iter().map(entry).collect(),
            gathering: Gathering::of(nodes.len() as u64),
            series: Series::of(stretch),
            ended: 0,
        }
    }

    /// Takes in what an agent told, which was here at `now`: the whole stretch, if it was the last to tell of one.
    ///
    /// # Errors
    /// It cannot be true; why, in one line.
    pub fn take(&mut self, agent: usize, news: News, now: Nanos) -> Result<Option<Interval>, String> {
        let Some(entry) = self.agents.get_mut(agent).filter(|entry| entry.stage < Stage::Done) else {
            // Of an earlier load, or of one that was given up.
            return Ok(None);
        };
        entry.heard = now;
        match news {
            News::Hello(_) => {}
            News::Clock { probe, at } => {
                if let Some((_, asked)) = entry.asked.take_if(|(number, _)| *number == probe) {
                    entry.offset.add(asked, at, now);
                }
            }
            News::Ready(threads) => {
                entry.account.threads = threads.min(1 << 16);
                entry.stage = Stage::Ready;
            }
            News::Refused(why) => return Err(why),
            News::Stretch(stretch, _) | News::Rest(stretch, _) if stretch > LATEST => {
                return Err(format!("it told of stretch {stretch}, and no load takes so long"));
            }
            News::Stretch(stretch, slip) => {
                let interval = open(entry, slip.open()?);
                if let Some(whole) = self.gathering.told(stretch, &interval) {
                    self.ended += whole.ok + whole.failed;
                    self.series.add(stretch, &whole);
                    return Ok(Some(whole));
                }
            }
            News::Rest(stretch, slip) => {
                let interval = open(entry, slip.open()?);
                self.series.add(stretch, &interval);
            }
            News::Done(parcel) => {
                entry.account.counted.go_on(&parcel.open()?);
                entry.stage = Stage::Done;
                self.gathering.left();
            }
        }
        Ok(None)
    }

    /// An agent is gone before it was done. What it told before counts.
    pub fn lose(&mut self, agent: usize, why: String) {
        if let Some(entry) = self.agents.get_mut(agent).filter(|entry| entry.stage < Stage::Done) {
            entry.account.lost = Some(why);
            entry.stage = Stage::Lost;
            self.gathering.left();
        }
    }

    /// An agent is asked what its clock shows.
    pub fn ask(&mut self, agent: usize, number: u64, now: Nanos) {
        if let Some(entry) = self.agents.get_mut(agent) {
            entry.asked = Some((number, now));
        }
    }

    /// Clocks are asked anew: they drift apart.
    pub fn forget_clocks(&mut self) {
        self.agents.iter_mut().for_each(|entry| (entry.offset, entry.asked) = (Offset::default(), None));
    }

    /// What is known of clocks now is what agents begin by.
    pub fn note_clock_errors(&mut self) {
        self.agents.iter_mut().for_each(|entry| entry.account.clock_error = entry.offset.error());
    }

    /// What is known of an agent's clock.
    pub fn offset(&self, agent: usize) -> Offset {
        self.agents.get(agent).map_or_else(Offset::default, |entry| entry.offset)
    }

    /// An agent of which nothing was heard since `then`, if there is one.
    pub fn silent_since(&self, then: Nanos) -> Option<usize> {
        self.agents.iter().position(|entry| entry.stage < Stage::Done && entry.heard < then)
    }

    /// Whether all are ready to begin, or done already since there is nothing for them to do.
    pub fn is_ready(&self) -> bool {
        self.agents.iter().all(|entry| entry.stage >= Stage::Ready)
    }

    /// Whether nobody has anything more to tell.
    pub fn is_done(&self) -> bool {
        self.agents.iter().all(|entry| entry.stage >= Stage::Done)
    }

    /// Those who have something to tell.
    pub fn running(&self) -> Vec<usize> {
        (0..self.agents.len()).filter(|index| self.agents[*index].stage < Stage::Done).collect()
    }

    /// Whether an agent was lost.
    pub fn has_lost(&self) -> bool {
        self.agents.iter().any(|entry| entry.stage == Stage::Lost)
    }

    /// Requests ended so far.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// All that was told, when the run is over; when it was ended before its end, and whether somebody wanted that.
    pub fn close(self, stopped: Option<Nanos>, interrupted: bool) -> Gathered {
        let Self { agents, gathering, mut series, .. } = self;
        for (stretch, rest) in gathering.rest() {
            series.add(stretch, &rest);
        }
        let mut counted = Counted::default();
        let account = |entry: Entry| {
            counted.add(&entry.account.counted);
            entry.account
        };
        let agents = agents.into_iter().map(account).collect();
        Gathered { driven: Driven { counted, stopped, interrupted }, series, agents }
    }
}

/// Enters what an agent counted, and leaves what happened.
fn open(entry: &mut Entry, mut interval: Interval) -> Interval {
    if let Some(counted) = interval.counted.take() {
        entry.account.counted.go_on(&counted);
    }
    interval
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::outcome::{End, Outcome};
    use crate::measure::parcel::{Parcel, Slip};
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
            end: End::Answer(200),
            bytes_in: 1,
            body_in: 1,
            bytes_out: 1,
        }
    }

    fn nodes(count: usize) -> Vec<String> {
        (0..count).map(|index| format!("n{index}")).collect()
    }

    /// What an agent tells that sees these answers, stretch by stretch.
    fn tells(stretches: &[Vec<u64>]) -> Vec<News> {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        let mut told = vec![News::Ready(1)];
        for (number, times) in (0..).zip(stretches) {
            times.iter().for_each(|ns| recorder.record(&outcome(*ns)));
            let mut interval = std::mem::take(&mut recorder.interval);
            interval.counted = Some(Box::new(Counted { totals: recorder.take_totals(), ..Counted::default() }));
            told.push(News::Stretch(number, Slip::of(&interval)));
        }
        told.push(News::Done(Box::new(Parcel::of(&Counted::default()))));
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
            let mut ledger = Ledger::new(&nodes(agents.len()), Nanos::SECOND, Nanos::ZERO);
            let mut queues: Vec<std::vec::IntoIter<News>> = agents.iter().map(|them| tells(them).into_iter()).collect();
            let rest = (0..agents.len()).flat_map(|agent| [agent; 8]);
            for agent in turns.into_iter().map(|turn| turn % agents.len()).chain(rest) {
                if let Some(news) = queues[agent].next() {
                    ledger.take(agent, news, Nanos(1)).expect("true news");
                }
            }
            prop_assert!(ledger.is_done());
            let mut whole = Recorder::new(Nanos::ZERO, Nanos::NEVER);
            agents.iter().flatten().flatten().for_each(|ns| whole.record(&outcome(*ns)));
            let gathered = ledger.close(None, false);
            let totals = &gathered.driven.counted.totals;
            prop_assert_eq!(totals.good.response.spread(), whole.totals.good.response.spread());
            prop_assert_eq!(totals.failed_response().to_bytes(), whole.totals.failed_response().to_bytes());
            prop_assert_eq!((totals.requests, totals.ok), (whole.totals.requests, whole.totals.ok));
            let points = gathered.series.points(10.0);
            prop_assert_eq!(points.iter().map(|point| point.ok).sum::<u64>(), whole.totals.ok);
            for (account, own) in gathered.agents.iter().zip(&agents) {
                prop_assert_eq!(account.counted.totals.requests, own.iter().flatten().count() as u64);
            }
        }
    }

    #[test]
    fn what_a_lost_agent_told_counts_and_nobody_waits_for_it() {
        let mut ledger = Ledger::new(&nodes(2), Nanos::SECOND, Nanos::ZERO);
        for agent in 0..2 {
            for news in tells(&[vec![5, 6], vec![7]]).into_iter().take(2) {
                assert!(ledger.take(agent, news, Nanos(9)).is_ok());
            }
        }
        assert_eq!((ledger.silent_since(Nanos(9)), ledger.silent_since(Nanos(10))), (None, Some(0)));
        ledger.lose(1, "gone".into());
        assert_eq!((ledger.running(), ledger.has_lost(), ledger.is_done()), (vec![0], true, false));
        let rest = tells(&[vec![5, 6], vec![7]]).into_iter().skip(2);
        let whole: Vec<_> = rest.map(|news| ledger.take(0, news, Nanos(9)).expect("news").is_some()).collect();
        assert_eq!(whole, [true, false]);
        assert!(ledger.is_done());
        let gathered = ledger.close(Some(Nanos::SECOND), false);
        assert_eq!(gathered.driven.counted.totals.requests, 5);
        assert_eq!(gathered.agents[1].lost.as_deref(), Some("gone"));
    }

    #[test]
    fn a_clock_s_answer_counts_for_its_own_question_only() {
        let mut ledger = Ledger::new(&nodes(1), Nanos::SECOND, Nanos::ZERO);
        ledger.ask(0, 7, Nanos(100));
        for (probe, answers) in [(6, 0), (7, 1), (7, 1)] {
            let news = News::Clock { probe, at: Nanos(5_000) };
            assert!(ledger.take(0, news, Nanos(140)).is_ok());
            assert_eq!(ledger.offset(0).answers(), answers);
        }
        assert_eq!(ledger.offset(0).theirs(Nanos(120)), Nanos(5_000));
    }

    #[test]
    fn absurd_news_are_an_error_and_change_nothing() {
        let mut ledger = Ledger::new(&nodes(1), Nanos::SECOND, Nanos::ZERO);
        assert!(ledger.take(0, News::Stretch(u64::MAX, Slip::default()), Nanos(1)).is_err());
        assert!(ledger.take(0, News::Rest(u64::MAX, Slip::default()), Nanos(1)).is_err());
        assert_eq!(ledger.take(0, News::Refused("no".into()), Nanos(1)).err().as_deref(), Some("no"));
        assert!(ledger.take(9, News::Ready(1), Nanos(1)).is_ok_and(|whole| whole.is_none()));
        assert!(!ledger.is_ready());
    }
}
