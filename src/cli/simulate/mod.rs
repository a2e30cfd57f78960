//! `weir simulate`: arguments -> worlds and limiters, run beside each other, shown.

mod own;

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use clap::{Args, Parser, ValueEnum};

use self::own::CustomScenarioArgs;
use super::exit;
use super::interrupt::Interrupt;
use super::messages::Messages;
use crate::machine;
use crate::simulate::{
    LimiterComparison, Scenario, SimulatedLimiter, SimulationReport, run as simulate, scenario, text,
};

/// What `weir simulate` takes.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// A world with a name, or all of them; --list says which there are. Repeatable [default: all, unless figures of your
    /// own make one]
    #[arg(long = "scenario", value_name = "NAME|all", value_delimiter = ',', value_parser = ScenarioNames::read)]
    scenarios: Vec<ScenarioNames>,
    /// What limits the calls: auto (weir's own), static, static:N, aimd, vegas, gradient2, envoy, codel, none, or all of
    /// them. Repeatable: beside each other
    #[arg(long = "limit", value_name = "LIMIT|all", value_delimiter = ',', default_value = "auto", value_parser = LimiterList::read)]
    limiters: Vec<LimiterList>,
    /// Repeats all dice [default: each scenario's own, which is 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Say which scenarios there are, and end
    #[arg(long)]
    list: bool,
    /// The form of the report on stdout
    #[arg(short, long, value_enum, default_value_t = SimulateFormat::Text)]
    format: SimulateFormat,
    #[command(flatten)]
    custom: CustomScenarioArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SimulateFormat {
    Text,
    Json,
}

/// How often it is asked whether to go on.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// One, or all.
#[derive(Clone, Debug)]
struct ScenarioNames(Vec<&'static str>);

impl ScenarioNames {
    fn read(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self(scenario::names().collect()));
        }
        let wrong = || {
            let names: Vec<&str> = scenario::names().collect();
            format!("'{text}' is no scenario; choose {} or all", names.join(", "))
        };
        scenario::names().find(|name| *name == text).map(|name| Self(vec![name])).ok_or_else(wrong)
    }
}

/// One, or all.
#[derive(Clone, Debug)]
struct LimiterList(Vec<SimulatedLimiter>);

impl LimiterList {
    fn read(text: &str) -> Result<Self, String> {
        if text == "all" {
            Ok(Self(SimulatedLimiter::ALL.to_vec()))
        } else {
            Ok(Self(vec![SimulatedLimiter::read(text)?]))
        }
    }
}

/// Worlds and limiters; each is to run with each.
#[derive(Debug)]
pub struct SimulationPlan {
    scenarios: Vec<Scenario>,
    limiters: Vec<SimulatedLimiter>,
}

impl SimulateArgs {
    /// What is to run.
    ///
    /// # Errors
    /// Which value makes no sense, in one line.
    pub fn plan(&self) -> Result<SimulationPlan, String> {
        let mut worlds = match self.custom.scenario()? {
            Some(_) if !self.scenarios.is_empty() => {
                let why = "--scenario does not go with figures of your own; --limit, --seed and --format go with both";
                return Err(why.to_owned());
            }
            Some(own) => vec![own],
            None if self.scenarios.is_empty() => scenario::names().filter_map(scenario::by_name).collect(),
            None => self.scenarios.iter().flat_map(|some| &some.0).filter_map(|name| scenario::by_name(name)).collect(),
        };
        if let Some(seed) = self.seed {
            worlds.iter_mut().for_each(|world| world.seed = seed);
        }
        Ok(SimulationPlan {
            scenarios: worlds,
            limiters: self.limiters.iter().flat_map(|some| some.0.clone()).collect(),
        })
    }
}

impl SimulationPlan {
    /// Runs each world with each limiter, several at a time. `go_on` is asked many times a second; once it says no, no
    /// other is begun, and those that are done come back.
    pub fn run(&self, go_on: &mut dyn FnMut() -> bool) -> LimiterComparison {
        let jobs: Vec<(&Scenario, &SimulatedLimiter)> =
            self.scenarios.iter().flat_map(|world| self.limiters.iter().map(move |limiter| (world, limiter))).collect();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = |tell: &Sender<(usize, SimulationReport)>| {
            while !stop.load(Relaxed) {
                let at = next.fetch_add(1, Relaxed);
                let Some((world, limiter)) = jobs.get(at) else { break };
                // The other end is there for as long as this one.
                let _ = tell.send((at, simulate(world, limiter)));
            }
        };
        let mut done = Vec::new();
        thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            for _ in 0..(machine::cores() as usize).min(jobs.len()) {
                let tell = tell.clone();
                let work = &work;
                scope.spawn(move || work(&tell));
            }
            drop(tell);
            loop {
                match told.recv_timeout(POLL_INTERVAL) {
                    Ok(one) => done.push(one),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if !go_on() {
                    stop.store(true, Relaxed);
                }
            }
        });
        done.sort_by_key(|(at, _)| *at);
        LimiterComparison::new(done.into_iter().map(|(_, report)| report).collect())
    }
}

/// Reads the arguments that stand after `weir simulate`.
///
/// # Errors
/// What is wrong with them, in one line.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<SimulateArgs, String> {
    #[derive(Parser)]
    #[command(name = "weir simulate", no_binary_name = true, disable_help_flag = true)]
    struct SimulateCommand {
        #[command(flatten)]
        simulate: SimulateArgs,
    }
    SimulateCommand::try_parse_from(args)
        .map(|alone| alone.simulate)
        .map_err(|error| super::one_line(&error, "simulate"))
}

pub(super) fn run(asked: &SimulateArgs, messages: &Messages) -> u8 {
    match try_run(asked) {
        Ok(code) => code,
        Err(why) => {
            messages.error(&why);
            exit::USAGE
        }
    }
}

fn try_run(asked: &SimulateArgs) -> Result<u8, String> {
    if asked.list {
        let about = |name| format!("{name:16}{}\n", scenario::description(name).unwrap_or_default());
        return write(&scenario::names().map(about).collect::<String>()).map(|()| exit::OK);
    }
    let plan = asked.plan()?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let all = plan.run(&mut || !interrupt.is_requested());
    let shown = match asked.format {
        SimulateFormat::Text => text::render(&all),
        SimulateFormat::Json => json(&all)?,
    };
    write(&shown)?;
    Ok(if interrupt.is_requested() { exit::INTERRUPTED } else { exit::OK })
}

/// As `docs/simulation.schema.json` describes it.
///
/// # Errors
/// None that a comparison can cause.
pub fn json(all: &LimiterComparison) -> Result<String, String> {
    serde_json::to_string(all).map(|json| json + "\n").map_err(|error| error.to_string())
}

/// A reader that has gone away (`| head`) is no fault.
fn write(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write the report to stdout: {error}"))
        }
        _ => Ok(()),
    }
}
