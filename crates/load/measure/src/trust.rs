//! Validity of a run, with the reasons against it and their remedies.
//!
//! A load generator that is late, saturated or measuring too little still prints figures with three digits. Each rule
//! detects one cause of wrong figures:
//!
//! 1. too short, or too few successes: percentiles of a few requests are noise;
//! 2. the generator was late: response times then contain its own delay. Lateness is judged by its effect on each
//!    quantile: a send that is late by 2 ms distorts a median of 1 ms, and not a percentile of 100 ms;
//! 3. the generator saturated its core: the limit is its own, or that of the script which drives its users;
//! 4. Little's law, N = X R (Little 1961): requests in the system, averaged over time, equal throughput times mean
//!    response time. The three figures are measured separately; where the law is violated, one of them is wrong;
//! 5. requests without a response are in no percentile, so percentiles are of the lucky ones;
//! 6. times to first token contain a part that is the generator's own: its late sends.
//!
//! Rule 2 applies to each step of a scenario, too: one step may be late where the whole is not.
//!
//! With agents, rules 2, 3 and 6 apply to each of them, and two more to all:
//!
//! 7. they did not start together: then the load was not the planned one;
//! 8. one was lost: then part of the load is missing.

use serde::{Deserialize, Serialize};

use super::agent_counts::{Agent, AgentCounts, clock_error_ms, skew_ms};
use super::counts::Counts;
use super::lateness::is_any_distorted;
use super::load_model::LoadModel;
use super::run_steps::RunStep;
use super::stolen_time::StolenTime;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_histogram::Histogram;
use weir_histogram::percentiles::{NOT_MEASURED, time_text};

#[cfg(test)]
mod tests;

pub use super::lateness::{MAX_LATENESS_FRACTION, TOLERATED_LATENESS_MS};

/// Minimum measured time, in seconds.
pub const MIN_DURATION_S: f64 = 1.0;
/// Minimum number of successes; with fewer the 99th percentile is the maximum.
pub const MIN_SUCCESSES: u64 = 100;
/// Maximum relative deviation from Little's law.
pub const MAX_LITTLE_DEVIATION_FRACTION: f64 = 0.05;
/// CPU utilization below which a late thread had time enough, and was woken up late.
const IDLE_CPU_FRACTION: f64 = 0.5;
/// Maximum CPU utilization of a generator thread.
pub const MAX_CPU_FRACTION: f64 = 0.95;
/// Fraction of a thread's time from which on a script is what the thread does most.
const MAIN_SCRIPT_FRACTION: f64 = 0.5;
/// Maximum part of the median time to first token that is the generator's own, as a fraction of it, ...
const MAX_TTFT_FRACTION: f64 = 0.01;
/// ... beside this time in milliseconds, which a wake-up takes.
const TOLERATED_TTFT_MS: f64 = 0.05;
/// Maximum time between the starts of agents, in milliseconds.
pub const MAX_SKEW_MS: f64 = 10.0;
/// Maximum error of the agents' clocks, in milliseconds.
pub const MAX_CLOCK_ERROR_MS: f64 = 100.0;
/// Maximum number of agents named for the same reason.
const MAX_NAMED_AGENTS: usize = 3;
/// Maximum number of steps named for the same reason.
const MAX_NAMED_STEPS: usize = 3;

/// Validity of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// Whether the run is trusted.
    pub ok: bool,
    /// Reasons not to trust it, a sentence each.
    pub reasons: Vec<String>,
}

/// Figures that the rules apply to.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Length of the window, in seconds.
    pub duration_s: f64,
    /// Counts of the window.
    pub counts: &'a Counts,
    /// Responses per second.
    pub achieved: f64,
    /// Requests in the system, averaged over time.
    pub in_flight_mean: f64,
    /// Kind of loop.
    pub model: LoadModel,
    /// Whether the generator busy-waits (`--spin`), which makes its CPU utilization meaningless.
    pub spins: bool,
}

/// Reason of a run in which no request has ended.
const NO_REQUEST: &str = "no request ended, so there are no response times.";

impl Trust {
    /// Takes back the reason that no request has ended: a script that sends none measures by metrics of its own.
    pub fn allow_no_requests(&mut self) {
        self.reasons.retain(|reason| reason != NO_REQUEST);
        self.ok = self.reasons.is_empty();
    }

    /// Applies every rule.
    pub fn judge(evidence: &Evidence<'_>) -> Self {
        let rules =
            [too_few_samples, late_sends, late_first_tokens, saturated, littles_law, no_response, mixed_up_replies];
        let reasons: Vec<String> = rules.iter().filter_map(|rule| rule(evidence)).collect();
        Self { ok: reasons.is_empty(), reasons }
    }

    /// Applies every rule to a run of agents, of which `figures` are the same; lateness and saturation are judged for
    /// each agent.
    pub fn judge_agents(whole: &Evidence<'_>, agents: &[AgentCounts], figures: &[Agent]) -> Self {
        let mut reasons: Vec<String> = failed_agents(agents).into_iter().chain(skewed_start(figures)).collect();
        reasons.extend(
            [too_few_samples, littles_law, no_response, mixed_up_replies].iter().filter_map(|rule| rule(whole)),
        );
        for rule in [late_sends, late_first_tokens, saturated] {
            let of = |(index, agent): (usize, &AgentCounts)| {
                let why = rule(&Evidence { counts: &agent.counts, ..*whole })?;
                Some(format!("{}: {why}", agent_label(index, &agent.node)))
            };
            let found: Vec<String> = agents.iter().enumerate().filter_map(of).collect();
            let more = found.len().saturating_sub(MAX_NAMED_AGENTS);
            reasons.extend(found.into_iter().take(MAX_NAMED_AGENTS));
            reasons.extend((more > 0).then(|| format!("The same applies to {more} more agents.")));
        }
        Self { ok: reasons.is_empty(), reasons }
    }

    /// First reason not to trust the figures so far of a run that goes on, if there is one. Rules that few requests break
    /// at the start of any run are left out.
    pub fn doubt_so_far(parts: &[AgentCounts], model: LoadModel, spins: bool) -> Option<String> {
        let of = |(index, part): (usize, &AgentCounts)| {
            let counts = &part.counts;
            let evidence = Evidence { duration_s: 0.0, counts, achieved: 0.0, in_flight_mean: 0.0, model, spins };
            let rules = [late_sends, saturated, no_response];
            let has_samples = counts.ended() >= MIN_SUCCESSES;
            let why = rules.iter().filter(|_| has_samples).find_map(|rule| rule(&evidence))?;
            Some(if parts.len() > 1 { format!("{}: {why}", agent_label(index, &part.node)) } else { why })
        };
        failed_agents(parts).into_iter().next().or_else(|| parts.iter().enumerate().find_map(of))
    }

    /// Adds steps whose percentiles weir's own lateness distorts; a single step is the whole run.
    pub(super) fn with_steps(mut self, steps: &[RunStep]) -> Self {
        let late_steps: Vec<&RunStep> = steps.iter().filter(|step| step.untrusted).collect();
        let Some(first) = late_steps.first().filter(|_| steps.len() > 1) else { return self };
        let more = late_steps.len().saturating_sub(MAX_NAMED_STEPS);
        let mut names: Vec<String> =
            late_steps.iter().take(MAX_NAMED_STEPS).map(|step| format!("'{}'", step.name)).collect();
        names.extend((more > 0).then(|| format!("{more} more")));
        let (late, response) = (&first.lateness_ms, &first.response_ms);
        let ms = |ms: Option<f64>| ms.map_or_else(|| NOT_MEASURED.into(), |ms| format!("{ms:.2} ms"));
        self.reasons.push(format!(
            "weir itself sent late in {} {}: requests of '{}' by {} at the median and {} at p99, where response times are \
             {} and {}. Their percentiles include this delay. Use fewer users, a lower rate, or another machine.",
            if late_steps.len() == 1 { "step" } else { "steps" },
            names.join(", "),
            first.name,
            ms(late.p50),
            ms(late.p99),
            ms(response.p50),
            ms(response.p99),
        ));
        self.ok = false;
        self
    }

    /// Adds the time that the machine took from the generator, where the generator was late or had no time left.
    pub(super) fn with_stolen_time(mut self, stolen: &StolenTime, evidence: &Evidence<'_>) -> Self {
        if [late_sends, late_first_tokens, saturated].iter().any(|rule| rule(evidence).is_some()) {
            self.reasons.extend(stolen.causes());
        }
        self
    }
}

/// Name of an agent in messages: its number from 1 on, and its node.
pub fn agent_label(index: usize, node: &str) -> String {
    format!("agent {} on {node}", index + 1)
}

fn failed_agents(agents: &[AgentCounts]) -> Vec<String> {
    let of = |(index, agent): (usize, &AgentCounts)| {
        let why = agent.failure.as_ref()?;
        Some(format!(
            "{} was lost: {why}. The run was ended; this agent's load is missing from then on.",
            agent_label(index, &agent.node)
        ))
    };
    agents.iter().enumerate().filter_map(of).collect()
}

fn skewed_start(agents: &[Agent]) -> Option<String> {
    let (skew, error) = (skew_ms(agents), clock_error_ms(agents));
    (skew > MAX_SKEW_MS || error > MAX_CLOCK_ERROR_MS).then(|| {
        format!(
            "the agents started {skew:.1} ms apart, by clocks known to within {error:.1} ms. Run less \
             beside them on their nodes, or bring them closer."
        )
    })
}

fn too_few_samples(e: &Evidence<'_>) -> Option<String> {
    let (good, all) = (e.counts.good.count(), e.counts.ended());
    if good == 0 && all > 0 {
        return Some(format!(
            "none of {all} requests succeeded, so there are no response times. Find out first why they failed."
        ));
    }
    // Connections that only listen are measured by their messages.
    let listened = e.counts.websocket.as_ref().and(e.counts.streams.as_ref()).filter(|_| e.counts.steps.is_empty());
    if let Some(why) = few_successes(listened.map_or(good, |streams| good.max(streams.gaps.count()))) {
        return Some(why);
    }
    too_short(e.duration_s)
}

/// Reason not to trust a run of so few seconds, if they are too few.
pub(super) fn too_short(seconds: f64) -> Option<String> {
    (seconds < MIN_DURATION_S)
        .then(|| format!("too short: {seconds:.3} s measured; run for at least {MIN_DURATION_S} s, better 10."))
}

/// Reason not to trust high percentiles of so few successes, if they are too few.
pub(super) fn few_successes(good: u64) -> Option<String> {
    match good {
        0 => Some(NO_REQUEST.to_owned()),
        MIN_SUCCESSES.. => None,
        _ => Some(format!(
            "too few successes: {good}; below {MIN_SUCCESSES} the high percentiles are single requests. Run longer."
        )),
    }
}

/// Whether a late generator had time enough by its CPU utilization, and so was woken up late.
pub fn is_wake_up_late(cpu_utilization: f64) -> bool {
    cpu_utilization < IDLE_CPU_FRACTION
}

fn late_sends(e: &Evidence<'_>) -> Option<String> {
    let (times, lateness) = (&e.counts.good, &e.counts.lateness);
    let has_iterations =
        !e.counts.steps.is_empty() || !e.counts.scenarios.is_empty() || e.counts.script_utilization > 0.0;
    is_any_distorted(lateness, &times.response, &times.service, |_| true).then(|| {
        let remedy = match e.model {
            LoadModel::Open if e.spins => {
                "Other processes took its cores: leave one for each of its threads, or use another machine."
            }
            LoadModel::Open if is_wake_up_late(e.counts.cpu_utilization) && e.counts.llm.is_some() => {
                "Its threads were idle, and the system woke them late: use a machine with fewer other processes."
            }
            LoadModel::Open if is_wake_up_late(e.counts.cpu_utilization) => {
                "Its threads were idle, and the system woke them late: --spin keeps them awake, at one core each."
            }
            LoadModel::Open => "Lower the rate, use more threads (-t), or another machine.",
            LoadModel::Closed if has_iterations => "Use fewer users (--users), or another machine.",
            LoadModel::Closed => "Use fewer connections (-c) or users (--users), or another machine.",
        };
        let remedy = late_by_script(e).unwrap_or_else(|| remedy.to_owned());
        let time = |times: &Histogram, q| time_text(times.quantile(q));
        format!(
            "weir itself sent late: by {} at the median and {} at p99, where response times are {} and {}. {remedy}",
            time(lateness, 0.5),
            time(lateness, 0.99),
            time(&times.response, 0.5),
            time(&times.response, 0.99),
        )
    })
}

/// Own part of the times to first token, unless lateness distorts response times as well.
fn late_first_tokens(e: &Evidence<'_>) -> Option<String> {
    let llm = e.counts.llm.as_deref()?;
    let [Some(own), Some(ttft)] = [&llm.ttft_lateness, &llm.ttft].map(|times| times.quantile_ms(0.5)) else {
        return None;
    };
    let is_distorted = own > ttft * MAX_TTFT_FRACTION + TOLERATED_TTFT_MS;
    (is_distorted && late_sends(e).is_none()).then(|| {
        format!(
            "weir itself sent late: that is {own:.3} ms of the median time to first token, {ttft:.3} ms. \
             Use more threads (-t), fewer requests at a time, or another machine."
        )
    })
}

/// Remedy where calls of a script are what late requests have waited for.
fn late_by_script(e: &Evidence<'_>) -> Option<String> {
    let (longest, fraction) = (e.counts.longest_script_call, e.counts.script_utilization);
    let is_long = e.counts.lateness.quantile(0.99).is_some_and(|late| longest > Nanos::ZERO && longest.0 >= late.0 / 2);
    (is_long || fraction >= MAIN_SCRIPT_FRACTION).then(|| {
        format!(
            "Requests waited for the script: its calls took up to {longest} each, and {:.0}% of its thread's time. \
             {SCRIPT_REMEDY}",
            fraction * 100.0
        )
    })
}

/// Advice for a script that limits the load.
const SCRIPT_REMEDY: &str = "Make it cheaper, or share the users among more threads (-t) or, in Python, processes \
    (--processes).";

fn saturated(e: &Evidence<'_>) -> Option<String> {
    let script = e.counts.script_utilization;
    if script.max(e.counts.cpu_utilization) > MAX_CPU_FRACTION && script >= MAIN_SCRIPT_FRACTION {
        return Some(format!(
            "the script is the limit: its calls took {:.0}% of the time of weir's busiest thread, and response times \
             contain waiting for it. {SCRIPT_REMEDY}",
            script * 100.0
        ));
    }
    (e.counts.cpu_utilization > MAX_CPU_FRACTION && !e.spins).then(|| {
        format!(
            "weir's busiest thread used {:.0}% of a core: the limit may be weir's own, and response times contain \
             waiting inside weir. Use more threads (-t) or another machine, or fewer connections.",
            e.counts.cpu_utilization * 100.0
        )
    })
}

fn littles_law(e: &Evidence<'_>) -> Option<String> {
    let product = e.achieved * e.counts.mean_response_ns() / 1e9;
    // Requests without a response are in the system and not in the rate; rule 5 reports them.
    let few_failures = e.counts.no_response_count() * 100 <= e.counts.requests && e.counts.dropped == 0;
    let ratio = product / e.in_flight_mean;
    (few_failures
        && e.counts.responses() >= MIN_SUCCESSES
        && e.duration_s >= MIN_DURATION_S
        && (ratio - 1.0).abs() > MAX_LITTLE_DEVIATION_FRACTION)
        .then(|| {
            format!(
                "Little's law is violated: {:.2} requests in the system on average, but throughput x mean response \
                 time is {product:.2}. The load changed during the run, or the run is short compared with its response \
                 times. Run longer, or see the time series (--csv).",
                e.in_flight_mean
            )
        })
}

/// Replies of WebSocket that may be those of other messages.
fn mixed_up_replies(e: &Evidence<'_>) -> Option<String> {
    let websocket = e.counts.websocket.as_ref()?;
    let missing = e.counts.failures[FailureKind::Timeout as usize];
    if websocket.repeated_ids > 0 {
        return Some(format!(
            "{} messages reused the ID of one in flight, so replies may be mixed up. Give each its own ID, such as \
             {{{{seq}}}}.",
            websocket.repeated_ids
        ));
    }
    (missing > 0 && websocket.matched_in_order > 0).then(|| {
        format!(
            "{missing} messages got no reply in time. Replies are matched in order, so later messages may have got the \
             replies of others. Write an ID into each message, and name it with --reply."
        )
    })
}

fn no_response(e: &Evidence<'_>) -> Option<String> {
    let missing = e.counts.no_response_count() + e.counts.dropped;
    let all = e.counts.ended();
    // What came has not what was asked for.
    let valid = if e.counts.failures[FailureKind::Body as usize] > 0 { "valid " } else { "" };
    // From 1% on the 99th percentile itself is of a request without a time.
    (missing > 0 && missing * 100 >= all).then(|| {
        format!(
            "{missing} of {all} requests got no {valid}response{}; percentiles cover successes only, and would be higher over all requests. \
             See why they failed; lower the load or raise --timeout.",
            if e.counts.dropped > 0 {
                format!(" ({} never sent: no connection was free in time)", e.counts.dropped)
            } else {
                String::new()
            }
        )
    })
}
