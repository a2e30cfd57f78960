//! May a run be believed, and if not, why, in words that say what to do.
//!
//! A load generator that is late, saturated or measuring too little still prints figures with three digits. Each
//! rule here catches one way in which figures have been wrong in the field:
//!
//! 1. too short or too few: percentiles of a handful are noise;
//! 2. the generator was late: response times then hold its own delay. It is judged by what it did to them, quantile by
//!    quantile: a send that was late by 2 ms spoils a median of 1 ms, and no percentile of 100 ms;
//! 3. the generator used up its core: the limit found is its own;
//! 4. Little's law, N = X R (Little 1961): requests in the system, averaged over time, must equal throughput times
//!    mean response time. It ties three independently taken figures together; where it fails, one of them is wrong;
//! 5. requests without an answer are in no percentile, so percentiles are of the lucky ones.
//!
//! Where several agents drive a run, 2 and 3 are asked of each of them, and two things more:
//!
//! 6. they did not begin together: then the load is not the plan's;
//! 7. one was lost: then part of the load is missing.

use serde::{Deserialize, Serialize};

use super::agent::{Agent, AgentCounts, clock_error_ms, skew_ms};
use super::histogram::{Histogram, Percentiles};
use super::recorder::Totals;
use super::run::{LoadModel, Run};

/// The least measured time, in seconds, that is not called too short.
pub const MIN_DURATION_S: f64 = 1.0;
/// The fewest successes that are not called too few: below, the 99th percentile is the maximum.
pub const MIN_SUCCESSES: u64 = 100;
/// The largest accepted deviation from Little's law.
pub const MAX_LITTLE_DEVIATION_FRACTION: f64 = 0.05;
/// A quantile of response times is spoilt by lateness that makes up this share of it, ...
pub const MAX_LATENESS_FRACTION: f64 = 0.1;
/// ... if that is more than so many milliseconds: an idle virtual machine takes a while to wake a thread up, and now and then
/// longer.
pub const TOLERATED_LATENESS_MS: [(f64, f64); 5] =
    [(0.5, 0.2), (0.75, 0.5), (0.9, 1.0), (0.95, 1.0), (0.99, TOLERATED_LATENESS_P99_MS)];
/// The same for the 99th percentile alone.
const TOLERATED_LATENESS_P99_MS: f64 = 2.0;
/// Below this share of a core a thread that is late had time enough, and was woken up late.
const IDLE_CPU_FRACTION: f64 = 0.5;
/// The largest accepted share of a core.
pub const MAX_CPU_FRACTION: f64 = 0.95;
/// How far apart agents may begin, in milliseconds, ...
pub const MAX_SKEW_MS: f64 = 10.0;
/// ... and by how much their clocks may be wrong.
pub const MAX_CLOCK_ERROR_MS: f64 = 100.0;
/// Agents of whom the same is to be said are named up to so many.
const MAX_NAMED_AGENTS: usize = 3;

/// Whether a run may be believed, and the reasons when not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// Whether nothing speaks against it.
    pub ok: bool,
    /// What speaks against it, a sentence each.
    pub reasons: Vec<String>,
}

/// What the judgement rests on.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Length of the window, in seconds.
    pub duration_s: f64,
    /// What was counted.
    pub totals: &'a Totals,
    /// Arrivals per second meant to start.
    pub offered: f64,
    /// Answers per second.
    pub achieved: f64,
    /// Arrivals never sent.
    pub dropped: u64,
    /// The busiest generator thread's share of a core.
    pub cpu_share: f64,
    /// Requests in the system, averaged over time.
    pub in_flight_mean: f64,
    /// Who set the pace.
    pub model: LoadModel,
    /// Whether the generator never sleeps; its share of a core says nothing then.
    pub spins: bool,
}

impl Trust {
    /// Applies every rule.
    pub fn judge(evidence: &Evidence<'_>) -> Self {
        let reasons: Vec<String> = [too_few_samples, late_sends, saturated, littles_law, no_response]
            .iter()
            .filter_map(|rule| rule(evidence))
            .collect();
        Self { ok: reasons.is_empty(), reasons }
    }

    /// Applies every rule to a run that agents drove; whether they themselves were late or busy is asked of each.
    pub fn judge_agents(whole: &Evidence<'_>, agents: &[(AgentCounts, Agent)]) -> Self {
        let mut reasons: Vec<String> = failed_agents(agents).into_iter().chain(skewed_start(agents)).collect();
        reasons.extend([too_few_samples, littles_law, no_response].iter().filter_map(|rule| rule(whole)));
        for rule in [late_sends, saturated] {
            let of = |(index, (account, figures)): (usize, &(AgentCounts, Agent))| {
                let (totals, cpu_share) = (&account.counts.totals, figures.cpu_share);
                let why = rule(&Evidence { totals, cpu_share, ..*whole })?;
                Some(format!("{}: {why}", agent_label(index, &account.node)))
            };
            let found: Vec<String> = agents.iter().enumerate().filter_map(of).collect();
            let more = found.len().saturating_sub(MAX_NAMED_AGENTS);
            reasons.extend(found.into_iter().take(MAX_NAMED_AGENTS));
            reasons.extend((more > 0).then(|| format!("The same is true of {more} more agents.")));
        }
        Self { ok: reasons.is_empty(), reasons }
    }
}

/// How an agent is called: from 1 on, and by its node.
pub fn agent_label(index: usize, node: &str) -> String {
    format!("agent {} on {node}", index + 1)
}

fn failed_agents(agents: &[(AgentCounts, Agent)]) -> Vec<String> {
    let of = |(index, (account, _)): (usize, &(AgentCounts, Agent))| {
        let why = account.failure.as_ref()?;
        Some(format!(
            "{} was lost: {why}. The run was ended then; its part of the load is missing from there on.",
            agent_label(index, &account.node)
        ))
    };
    agents.iter().enumerate().filter_map(of).collect()
}

fn skewed_start(agents: &[(AgentCounts, Agent)]) -> Option<String> {
    let figures: Vec<Agent> = agents.iter().map(|(_, figures)| figures.clone()).collect();
    let (skew, error) = (skew_ms(&figures), clock_error_ms(&figures));
    (skew > MAX_SKEW_MS || error > MAX_CLOCK_ERROR_MS).then(|| {
        format!(
            "the agents started {skew:.1} ms apart, by clocks known to within {error:.1} ms. Run less beside them on their \
             nodes, or bring them closer."
        )
    })
}

/// Whether what was slow in a run may have been weir itself: a thread that had no time left, or sends that were late by
/// more than a tenth of the slow response times.
pub fn is_generator_fault(run: &Run) -> bool {
    let is_late =
        |late: &Percentiles, answers: &Percentiles| is_distorted(late.p99, answers.p99, TOLERATED_LATENESS_P99_MS);
    let of = |agent: &Agent| agent.failure.is_some() || is_late(&agent.lateness_ms, &agent.response_ms);
    run.cpu_share > MAX_CPU_FRACTION || is_late(&run.lateness_ms, &run.response_ms) || run.agents.iter().any(of)
}

/// Whether lateness spoils a percentile of response times; all in milliseconds.
fn is_distorted(late: f64, response: f64, least: f64) -> bool {
    late > least.max(response * MAX_LATENESS_FRACTION)
}

fn too_few_samples(e: &Evidence<'_>) -> Option<String> {
    let (good, all) = (e.totals.good.count(), e.totals.requests + e.dropped);
    if good == 0 && all > 0 {
        return Some(format!(
            "not one of {all} requests succeeded: there is no response time of a success. See first why they failed."
        ));
    }
    if good < MIN_SUCCESSES {
        return Some(format!(
            "too few successes: {good}; below {MIN_SUCCESSES} the high percentiles are single requests. Run longer."
        ));
    }
    (e.duration_s < MIN_DURATION_S)
        .then(|| format!("too short: {:.3} s measured; run for at least {MIN_DURATION_S} s, better 10.", e.duration_s))
}

fn late_sends(e: &Evidence<'_>) -> Option<String> {
    let (times, lateness) = (&e.totals.good, &e.totals.lateness);
    let ms = |histogram: &Histogram, q: f64| histogram.quantile(q).as_millis_f64();
    // A response time without its lateness is the service time, if the request did not wait for a connection either. So
    // no quantile is spoilt by more than the two are apart.
    let spoilt = |&(q, least): &(f64, f64)| {
        let response = ms(&times.response, q);
        is_distorted(ms(lateness, q).min(response - ms(&times.service, q)), response, least)
    };
    TOLERATED_LATENESS_MS.iter().any(spoilt).then(|| {
        let remedy = match e.model {
            LoadModel::Open if e.spins => "Something else took its cores: leave it one for each of its threads, or take another machine.",
            LoadModel::Open if e.cpu_share < IDLE_CPU_FRACTION => {
                "It had time enough and was woken up late: --spin keeps it awake, for a whole core per thread."
            }
            LoadModel::Open => "Lower the rate, use more threads (-t), or another machine.",
            LoadModel::Closed => "Use fewer connections (-c), or another machine.",
        };
        format!(
            "weir itself sent late: half of the requests by {}, 1 % by {} or more, where half of the response times are \
             within {} and 99 % within {}. {remedy}",
            lateness.quantile(0.5),
            lateness.quantile(0.99),
            times.response.quantile(0.5),
            times.response.quantile(0.99),
        )
    })
}

fn saturated(e: &Evidence<'_>) -> Option<String> {
    (e.cpu_share > MAX_CPU_FRACTION && !e.spins).then(|| {
        format!(
            "weir's busiest thread used {:.0} % of a core: the limit may be weir's own, and response times hold waiting \
             inside weir. Use more threads (-t) or another machine, or fewer connections.",
            e.cpu_share * 100.0
        )
    })
}

fn littles_law(e: &Evidence<'_>) -> Option<String> {
    let product = e.achieved * e.totals.mean_response_ns() / 1e9;
    // What got no answer is in the system, too, and in no rate; rule 5 speaks of it.
    let few_failures = e.totals.no_response_count() * 100 <= e.totals.requests && e.dropped == 0;
    let ratio = product / e.in_flight_mean;
    (few_failures && e.totals.responses() >= MIN_SUCCESSES && e.duration_s >= MIN_DURATION_S && (ratio - 1.0).abs() > MAX_LITTLE_DEVIATION_FRACTION)
        .then(|| {
            format!(
                "Little's law does not hold: {:.2} requests in the system on average, but throughput x mean response \
                 time is {product:.2}. The load changed during the run, or it is short beside its response times. Run longer, or look at the \
                 seconds (--csv).",
                e.in_flight_mean
            )
        })
}

fn no_response(e: &Evidence<'_>) -> Option<String> {
    let lost = e.totals.no_response_count() + e.dropped;
    let all = e.totals.requests + e.dropped;
    // A hundredth: then the 99th percentile itself is one of those that have no figure.
    (lost > 0 && lost * 100 >= all).then(|| {
        format!(
            "{lost} of {all} requests got no answer{}; percentiles are of successes only, and those of all would be higher. \
             See why they failed; lower the load or raise --timeout.",
            if e.dropped > 0 {
                format!(" ({} never sent: no connection was free in time)", e.dropped)
            } else {
                String::new()
            }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::counted::RunCounts;
    use super::super::outcome::{Outcome, RequestEnd, TransportFailure};
    use super::super::recorder::Recorder;
    use super::super::run::{Connections, LoadModel, Manifest, RunInput, RunTarget};
    use super::*;
    use crate::decide::Nanos;

    fn outcome(response_ms: u64, late_us: u64, end: RequestEnd) -> Outcome {
        let done = Nanos::from_millis(response_ms);
        Outcome {
            number: 0,
            intended: Nanos::ZERO,
            ready: Nanos::ZERO,
            sent: Nanos(late_us * 1000),
            first_byte: done,
            done,
            connect: Nanos::ZERO,
            end,
            bytes_in: 1,
            body_in: 1,
            bytes_out: 1,
        }
    }

    fn totals(n: u64, response_ms: u64, late_us: u64) -> Totals {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        (0..n).for_each(|_| recorder.record(&outcome(response_ms, late_us, RequestEnd::Response(200))));
        recorder.totals
    }

    fn evidence(totals: &Totals) -> Evidence<'_> {
        Evidence {
            duration_s: 10.0,
            totals,
            offered: 100.0,
            achieved: 100.0,
            dropped: 0,
            cpu_share: 0.3,
            in_flight_mean: 1.0,
            model: LoadModel::Open,
            spins: false,
        }
    }

    fn reasons(e: &Evidence<'_>) -> Vec<String> {
        Trust::judge(e).reasons
    }

    #[test]
    fn a_sound_run_is_believed() {
        let totals = totals(1000, 10, 30);
        assert_eq!(Trust::judge(&evidence(&totals)), Trust { ok: true, reasons: vec![] });
    }

    #[test]
    fn each_fault_is_one_reason() {
        let sound = totals(1000, 10, 30);
        let late = totals(1000, 10, 2500);
        let few = totals(99, 10, 30);
        let cases = [
            (Evidence { duration_s: 0.4, ..evidence(&sound) }, "too short"),
            (evidence(&few), "too few"),
            (evidence(&late), "sent late"),
            (Evidence { cpu_share: 0.97, ..evidence(&sound) }, "97 % of a core"),
            (Evidence { in_flight_mean: 1.2, ..evidence(&sound) }, "Little's law"),
            (Evidence { dropped: 20, ..evidence(&sound) }, "20 of 1020 requests got no answer"),
        ];
        for (evidence, words) in cases {
            let reasons = reasons(&evidence);
            assert!(reasons.len() == 1 && reasons[0].contains(words), "{words}: {reasons:?}");
        }
    }

    #[test]
    fn lateness_is_judged_by_the_response_times_that_it_could_spoil() {
        // 1 % of the sends are late by 3 ms, those of the slowest responses or of the fastest.
        let run = |late_and_slow: bool| {
            let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
            for i in 0..1000 {
                let slow = i < 100;
                let late = if late_and_slow { i < 20 } else { i >= 980 };
                let response_ms = if slow { 80 } else { 5 };
                recorder.record(&outcome(response_ms, if late { 3_000 } else { 30 }, RequestEnd::Response(200)));
            }
            recorder.totals
        };
        for totals in [run(true), run(false)] {
            let reasons = reasons(&Evidence { in_flight_mean: 1.25, ..evidence(&totals) });
            assert_eq!(reasons, [] as [String; 0], "3 ms spoil no 99th percentile of 80 ms, and no median");
        }
        let mut some_late = totals(800, 1, 30);
        some_late.add(&totals(200, 5, 4_500));
        let spoilt = reasons(&Evidence { in_flight_mean: 0.18, ..evidence(&some_late) });
        assert!(spoilt.len() == 1 && spoilt[0].contains("sent late"), "the 90th percentile is weir's own: {spoilt:?}");
        let all_late = totals(1000, 1, 300);
        let spoilt = reasons(&Evidence { in_flight_mean: 0.1, ..evidence(&all_late) });
        assert!(spoilt.len() == 1 && spoilt[0].contains("sent late"), "{spoilt:?}");
    }

    #[test]
    fn what_helps_against_lateness_depends_on_what_it_came_from() {
        let late = totals(1000, 10, 2500);
        let remedy =
            |model, spins, cpu_share| reasons(&Evidence { model, spins, cpu_share, ..evidence(&late) }).join(" ");
        assert!(remedy(LoadModel::Open, false, 0.02).contains("--spin"));
        assert!(remedy(LoadModel::Open, false, 0.8).contains("Lower the rate"));
        assert!(!remedy(LoadModel::Open, true, 1.0).contains("--spin"));
        assert!(remedy(LoadModel::Closed, false, 0.02).contains("-c"));
    }

    #[test]
    fn a_run_without_answers_says_so_and_nothing_absurd() {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        (0..500).for_each(|_| recorder.record(&outcome(1, 0, RequestEnd::Failed(TransportFailure::Reset))));
        let reasons = reasons(&Evidence { achieved: 0.0, in_flight_mean: 0.0, ..evidence(&recorder.totals) });
        assert!(reasons.len() == 2 && reasons[0].contains("not one of 500 requests succeeded"), "{reasons:?}");
    }

    #[test]
    fn one_agent_that_is_late_busy_or_lost_makes_the_run_say_so() {
        let (sound, late) = (totals(1000, 10, 30), totals(1000, 10, 2500));
        let agent = |totals: &Totals, cpu_share: f64, began_ms: u64, lost: Option<&str>| {
            let began = Nanos::from_millis(began_ms);
            let counted = RunCounts { totals: totals.clone(), cpu_share, began, ..RunCounts::default() };
            let lost = lost.map(str::to_owned);
            let account = AgentCounts {
                node: "n".into(),
                threads: 1,
                counts: counted,
                clock_error: Nanos(50_000),
                failure: lost,
            };
            let figures = Agent::of(&account, 10.0);
            (account, figures)
        };
        let mut all = totals(0, 10, 30);
        (0..9).for_each(|_| all.add(&sound));
        let judge = |odd: (AgentCounts, Agent)| {
            let agents: Vec<_> = (0..8).map(|_| agent(&sound, 0.3, 0, None)).chain([odd]).collect();
            Trust::judge_agents(&evidence(&all), &agents).reasons
        };
        assert_eq!(judge(agent(&sound, 0.3, 0, None)), Vec::<String>::new());
        for (odd, words) in [
            (agent(&late, 0.3, 0, None), "agent 9 on n: weir itself sent late"),
            (agent(&sound, 0.97, 0, None), "agent 9 on n: weir's busiest thread used 97 %"),
            (agent(&sound, 0.3, 11, None), "the agents started 11.0 ms apart"),
            (agent(&sound, 0.3, 0, Some("its node is gone")), "agent 9 on n was lost: its node is gone."),
        ] {
            let reasons = judge(odd);
            assert!(reasons.len() == 1 && reasons[0].contains(words), "{words}: {reasons:?}");
        }
        let many: Vec<_> = (0..9).map(|_| agent(&late, 0.3, 0, None)).collect();
        let reasons = Trust::judge_agents(&evidence(&all), &many).reasons;
        assert!(reasons.len() == 4 && reasons[3].contains("6 more agents"), "{reasons:?}");
    }

    #[test]
    fn a_thread_without_time_and_late_sends_are_weir_s_own_fault() {
        let run = |cpu_share: f64, late_us: u64| {
            Run::new(RunInput {
                model: LoadModel::Closed,
                target: RunTarget::default(),
                totals: totals(1000, 10, late_us),
                series: Vec::new(),
                duration_s: 10.0,
                warmup_s: 0.0,
                offered_per_s: None,
                dropped: 0,
                unfinished: 0,
                connections: Connections::default(),
                cpu_s: 0.0,
                cpu_share,
                spins: false,
                in_flight_mean: 1.0,
                interrupted: false,
                agents: Vec::new(),
                manifest: Manifest::default(),
            })
        };
        assert!(!is_generator_fault(&run(0.5, 1_900)), "an idle machine wakes threads up no sooner");
        assert!(is_generator_fault(&run(0.5, 2_500)), "more than a tenth of 10 ms");
        assert!(is_generator_fault(&run(0.97, 30)));
    }
}
