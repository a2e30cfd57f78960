//! Drives loads at a service, one after the other, until it is known how much it can take.
//!
//! What to try next, and what came of it, is decided in [`crate::measure::capacity`]; here loads are driven.
//!
//! - [`find`]: the whole search
//! - `drive`: one load; and a single user, to see how a service answers that has nothing else to do
//! - `sampling`: what the service's processes use meanwhile

mod drive;
mod sampling;

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use self::drive::{Driven, Driver};
use crate::agents;
use crate::decide::Nanos;
use crate::load::{LoadError, Options, PlanError};
use crate::machine::clock::Clock;
use crate::measure::Progress;
use crate::measure::capacity::answer::{Answer, Ended, Growth, Limit, SCHEMA, Tried};
use crate::measure::capacity::search::{Range, Trial};
use crate::measure::capacity::step::Length;
use crate::measure::capacity::usl::{Measured, Usl};
use crate::measure::capacity::{Done, End, Search};
use crate::measure::run::{Manifest, Model};
use crate::measure::slo::{Demand, Slo};

/// What to find out.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is asked, and over which connections; its pace is left open.
    pub options: Options,
    /// What has to hold; at least one, and each with a [`Slo::demand`].
    pub slos: Vec<Slo>,
    /// Closed: how many users. Open: how many requests per second.
    pub model: Model,
    /// Where and how finely to search.
    pub range: Range,
    /// How long a step may last, in seconds.
    pub length: Length,
    /// Seconds at the beginning of a step that are cut off, at least.
    pub settle_s: u64,
    /// How long the search may take.
    pub max_time: Duration,
    /// The service's process, if it runs on this machine.
    pub pid: Option<u32>,
    /// Who drives the loads, if not we ourselves.
    pub agents: Option<agents::Asked>,
}

/// What there is to tell while it goes.
#[derive(Debug)]
pub enum News<'a> {
    /// A load is being tried.
    Trying {
        /// Its number, from 1 on.
        step: usize,
        /// Requests per second, or users.
        load: f64,
        /// How far it is.
        progress: &'a Progress<'a>,
    },
    /// A load has been tried.
    Tried(&'a Tried),
}

/// Who looks on; `false` ends the search.
pub type Watch<'a> = dyn FnMut(&News<'_>) -> bool + 'a;

/// Why a search could not begin.
#[derive(Debug)]
pub enum CapacityError {
    /// What was asked for is no load.
    Plan(PlanError),
    /// The first load could not start.
    Load(LoadError),
    /// An objective that no load is too high for.
    Objective(String),
    /// There is no such process.
    Process(u32),
    /// Not one request of a single user was answered well.
    Broken(String),
    /// An agent was lost in the middle of a load: which, and how.
    Lost(String),
}

impl std::error::Error for CapacityError {}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(e) => e.fmt(f),
            Self::Load(e) => e.fmt(f),
            Self::Lost(why) => f.write_str(why),
            Self::Objective(text) => write!(
                f,
                "--slo: '{text}' is nothing that a load can be too high for; give upper bounds on response times or errors, \
                 e.g. p99<200ms or errors<1%"
            ),
            Self::Process(pid) => write!(f, "--pid: there is no process {pid}"),
            Self::Broken(why) => write!(f, "a single user gets no good answer: {why}"),
        }
    }
}

impl From<PlanError> for CapacityError {
    fn from(e: PlanError) -> Self {
        Self::Plan(e)
    }
}

impl From<LoadError> for CapacityError {
    fn from(e: LoadError) -> Self {
        Self::Load(e)
    }
}

/// Searches until the limit is known, or `watch` says no.
///
/// # Errors
/// When it cannot begin; what happens later is part of the answer.
pub fn find(asked: &Asked, command: &[String], watch: &mut Watch<'_>) -> Result<Answer, CapacityError> {
    let demand = |slo: &Slo| slo.demand().ok_or_else(|| CapacityError::Objective(slo.to_string()));
    // A service that refuses nearly all of a load does not take it, however fast it does the rest.
    let slos: Vec<Slo> = asked.slos.iter().cloned().chain(Slo::unasked(&asked.slos)).collect();
    let asked = &Asked { slos, ..asked.clone() };
    let demands = asked.slos.iter().map(demand).collect::<Result<Vec<Demand>, _>>()?;
    let (clock, late) = (Clock::starting_in(Nanos::ZERO), Cell::new(false));
    let max_time = Nanos::from(asked.max_time);
    let watch: &mut Watch<'_> = &mut |news| {
        late.set(late.get() || clock.now() >= max_time);
        watch(news) && !late.get()
    };
    let mut driver = Driver::new(asked, &demands, command, watch)?;
    let mut search = Search::new(asked.range);
    let mut found = Found::default();
    found.calm(&driver.calm(watch)?);
    while let Some(trial) = search.next().filter(|_| !found.interrupted && found.broken.is_none()) {
        match driver.drive(trial, found.steps.len() + 1, watch) {
            Ok(driven) if driven.cut_off => found.interrupted = true,
            Ok(driven) => {
                search.told(trial, driven.end, driven.tried.surely.unwrap_or(trial.load));
                found.interrupted = !watch(&News::Tried(&driven.tried));
                let overloaded = driven.end != End::Holds;
                found.take(driven);
                if overloaded && !found.interrupted && search.next().is_some() {
                    match driver.recover(watch) {
                        Ok(true) => {}
                        Ok(false) => found.did_not_recover(trial),
                        Err(why) => found.stopped(&why, format_args!("after {:.0}", trial.load)),
                    }
                }
            }
            Err(why) if found.steps.is_empty() && !is_of_agents(&why) => return Err(why),
            Err(why) => found.stopped(&why, format_args!("at {}", trial.load)),
        }
    }
    // Out of time is no interruption: nobody asked for it but beforehand.
    found.out_of_time = late.get() && found.interrupted;
    found.interrupted &= !late.get();
    Ok(found.answer(asked, &search))
}

/// Whether agents that were there are not any more.
fn is_of_agents(why: &CapacityError) -> bool {
    matches!(why, CapacityError::Lost(_) | CapacityError::Load(LoadError::Agents(_)))
}

/// What has been found out so far.
#[derive(Debug, Default)]
struct Found {
    steps: Vec<Tried>,
    measured: Vec<Measured>,
    manifest: Manifest,
    interrupted: bool,
    /// It took as long as it was allowed to.
    out_of_time: bool,
    /// Why it cannot go on.
    broken: Option<String>,
    /// Why an agent is gone, if one is.
    lost: Option<String>,
}

impl Found {
    /// Why no more loads were tried.
    fn ended(&self, asked: &Asked, search: &Search) -> String {
        let Range { precision, gap, most, .. } = asked.range;
        if self.interrupted {
            return "interrupted".into();
        }
        if self.out_of_time {
            return format!("--max-time of {} was over", Nanos::from(asked.max_time));
        }
        if self.broken.is_some() {
            return "it could not go on".into();
        }
        match search.done() {
            None => "it could not go on".into(),
            Some(Done::Precise) => format!("the bounds are within {} %", precision * 100.0),
            Some(Done::Gap) => format!("the bounds are within {}", unit(asked, gap)),
            Some(Done::Noise) => format!(
                "steps of {} s tell no closer bounds; a longer --step does, or --arrivals constant",
                asked.length.most
            ),
            Some(Done::Least) => "no load that was tried held, and less is not worth a search".into(),
            Some(Done::Most) => format!("{} is the highest load to try (--most)", unit(asked, most)),
        }
    }

    fn calm(&mut self, manifest: &Manifest) {
        self.manifest = manifest.clone();
    }

    fn take(&mut self, driven: Driven) {
        self.measured.push(Measured { users: driven.tried.load, rate_per_s: driven.tried.achieved_per_s });
        self.steps.push(driven.tried);
    }

    fn did_not_recover(&mut self, trial: Trial) {
        self.broken = Some(format!("after {:.0} it did not recover within 30 s, with nothing to do", trial.load));
    }

    fn stopped(&mut self, why: &CapacityError, place: fmt::Arguments<'_>) {
        if let CapacityError::Load(LoadError::Interrupted) = why {
            self.interrupted = true;
            return;
        }
        self.lost = is_of_agents(why).then(|| why.to_string());
        self.broken = Some(format!("{place} it could not go on: {why}"));
    }

    fn answer(self, asked: &Asked, search: &Search) -> Answer {
        let bracket = search.bracket();
        let last = |is: &dyn Fn(&Tried) -> bool| self.steps.iter().rev().find(|tried| is(tried)).cloned();
        let holds = bracket.holds.and_then(|holds| last(&|tried| tried.surely == Some(holds)));
        let is_over = |tried: &Tried| matches!(tried.end, Ended::Fails | Ended::Generator);
        let fails = bracket.fails.and_then(|fails| last(&|tried| tried.load == fails && is_over(tried)));
        let limit = match fails.as_ref().filter(|_| self.lost.is_none()).map(|tried| tried.end) {
            Some(Ended::Generator) => Limit::Generator,
            Some(_) => Limit::Service,
            None if self.lost.is_some() => Limit::Generator,
            None => Limit::None,
        };
        let why = match (&self.broken, &fails) {
            (Some(why), _) => why.clone(),
            (None, Some(tried)) => tried.why.clone().unwrap_or_default(),
            (None, None) if self.interrupted => "interrupted before a load failed".into(),
            (None, None) if self.out_of_time => "no load failed before --max-time was over".into(),
            (None, None) if search.done() == Some(Done::Least) => {
                "too few requests to tell anything within a step; give a longer --step".into()
            }
            (None, None) => "the highest load that was to be tried holds; raise --most".into(),
        };
        let both = [&holds, &fails].into_iter().flatten().map(|tried| tried.sure);
        let sure = if holds.is_some() || fails.is_some() { both.product() } else { 0.0 };
        let saturated = fails.as_ref().and_then(|tried| saturated(tried, self.manifest.cores));
        let closed = asked.model == Model::Closed;
        let usl = closed.then(|| Usl::fit(&self.measured).map(Growth::of)).flatten();
        let ended = self.ended(asked, search);
        Answer {
            weir: env!("CARGO_PKG_VERSION").into(),
            schema: SCHEMA,
            model: asked.model,
            url: asked.options.url.clone(),
            objectives: asked.slos.iter().map(Slo::to_string).collect(),
            holds: bracket.holds,
            fails: bracket.fails,
            sure,
            limit,
            why,
            saturated,
            usl,
            ended,
            interrupted: self.interrupted,
            lost: self.lost,
            manifest: self.manifest,
            steps: self.steps,
        }
    }
}

/// A gap or a load as people write it.
fn unit(asked: &Asked, load: f64) -> String {
    match asked.model {
        Model::Open => format!("{load}/s"),
        Model::Closed if load == 1.0 => "1 user".into(),
        Model::Closed => format!("{load} users"),
    }
}

/// What of the service's machine was used up at a load, if something was.
fn saturated(tried: &Tried, cores: u64) -> Option<String> {
    let (used, own) = (tried.service_cores?, tried.generator_share);
    let busy = tried.machine_share.unwrap_or(0.0) * cores as f64;
    Some(if busy > 0.9 * cores as f64 {
        let others = (busy - used - own).max(0.0);
        format!("all {cores} cores: the service used {used:.2}, weir's busiest thread {own:.2}, others {others:.2}")
    } else if used > 0.9 && (used - used.round()).abs() < 0.1 {
        format!("CPU: the service used {used:.2} of {cores} cores, as many as it has threads that work, it seems")
    } else {
        format!("no CPU: the service used {used:.2} of {cores} cores, so it waited for something else")
    })
}
