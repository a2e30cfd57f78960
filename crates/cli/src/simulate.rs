//! Arguments of `weir simulate`: scenarios and limiters, run in parallel and printed.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};

use weir_command::Interrupt;
use weir_command::Messages;
use weir_command::exit;
use weir_machine as machine;
use weir_simulate::{LimiterComparison, Scenario, SimulatedLimiter, SimulationReport, run as simulate, scenario, text};

/// Arguments of `weir simulate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir simulate --scenario flash-crowd
  weir simulate --scenario step-up,ramp --limiter auto,none

Reference: docs/simulate.md")]
pub struct SimulateArgs {
    /// scenario; repeatable; see --list [default: all]
    #[arg(long = "scenario", value_name = "NAME|all", value_delimiter = ',', value_parser = ScenarioNames::read)]
    scenarios: Vec<ScenarioNames>,
    #[arg(
        long = "limiter",
        value_name = "LIMITER|all",
        value_delimiter = ',',
        default_value = "auto",
        value_parser = LimiterList::read,
        help = "auto, static[:N], aimd, vegas, gradient2, envoy, codel, none; repeatable"
    )]
    limiters: Vec<LimiterList>,
    /// seed of all random choices [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// list of scenarios
    #[arg(long)]
    list: bool,
    /// report format on stdout
    #[arg(short, long, value_enum, default_value_t = SimulateFormat::Text)]
    format: SimulateFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SimulateFormat {
    Text,
    Json,
}

/// Interval at which an interrupt is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Value of `--scenario`: one name, or all.
#[derive(Clone, Debug)]
struct ScenarioNames(Vec<&'static str>);

impl ScenarioNames {
    fn read(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self(scenario::names().collect()));
        }
        let error = || {
            let names: Vec<&str> = scenario::names().collect();
            format!("unknown scenario '{text}'; choose {} or all", names.join(", "))
        };
        scenario::names().find(|name| *name == text).map(|name| Self(vec![name])).ok_or_else(error)
    }
}

/// Value of `--limiter`: one limiter, or all.
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

/// Scenarios and limiters of a simulation; each scenario runs with each limiter.
#[derive(Debug)]
pub struct SimulationPlan {
    scenarios: Vec<Scenario>,
    limiters: Vec<SimulatedLimiter>,
}

impl SimulationPlan {
    /// Plan of scenarios and limiters by name; `all` is each of them, and no scenario is all. Without a seed each scenario
    /// has its own.
    ///
    /// # Errors
    /// First unknown name, in one line.
    pub fn new(scenarios: &[String], limiters: &[String], seed: Option<u64>) -> Result<Self, String> {
        let scenarios: Result<Vec<_>, _> = scenarios.iter().map(|name| ScenarioNames::read(name)).collect();
        let limiters: Result<Vec<_>, _> = limiters.iter().map(|name| LimiterList::read(name)).collect();
        Ok(Self::of(&scenarios?, &limiters?, seed))
    }

    fn of(named: &[ScenarioNames], limiters: &[LimiterList], seed: Option<u64>) -> Self {
        let all = ScenarioNames(scenario::names().collect());
        let named = if named.is_empty() { std::slice::from_ref(&all) } else { named };
        let mut scenarios: Vec<Scenario> =
            named.iter().flat_map(|some| &some.0).filter_map(|name| scenario::by_name(name)).collect();
        if let Some(seed) = seed {
            scenarios.iter_mut().for_each(|scenario| scenario.seed = seed);
        }
        Self { scenarios, limiters: limiters.iter().flat_map(|some| some.0.clone()).collect() }
    }

    /// Runs each scenario with each limiter, one per core at a time. Once `go_on`, which is called 20 times per second,
    /// returns false, no further run starts, and the completed ones are returned.
    pub fn run(&self, go_on: &mut dyn FnMut() -> bool) -> LimiterComparison {
        let jobs: Vec<(&Scenario, &SimulatedLimiter)> = self
            .scenarios
            .iter()
            .flat_map(|scenario| self.limiters.iter().map(move |limiter| (scenario, limiter)))
            .collect();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let worker = |reports: &Sender<(usize, SimulationReport)>| {
            while !stop.load(Relaxed) {
                let at = next.fetch_add(1, Relaxed);
                let Some((scenario, limiter)) = jobs.get(at) else { break };
                // The receiver outlives all senders.
                let _ = reports.send((at, simulate(scenario, limiter)));
            }
        };
        let mut done = Vec::new();
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..(machine::cores() as usize).min(jobs.len()) {
                let (worker, sender) = (&worker, sender.clone());
                scope.spawn(move || worker(&sender));
            }
            drop(sender);
            loop {
                match receiver.recv_timeout(POLL_INTERVAL) {
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

pub(super) fn run(args: &SimulateArgs, messages: &Messages) -> u8 {
    match try_run(args) {
        Ok(code) => code,
        Err(reason) => {
            messages.error(&reason);
            exit::USAGE
        }
    }
}

fn try_run(args: &SimulateArgs) -> Result<u8, String> {
    if args.list {
        let line = |name| format!("{name:16}{}\n", scenario::description(name).unwrap_or_default());
        return write(&scenario::names().map(line).collect::<String>()).map(|()| exit::OK);
    }
    let plan = SimulationPlan::of(&args.scenarios, &args.limiters, args.seed);
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let comparison = plan.run(&mut || !interrupt.is_requested());
    let report = match args.format {
        SimulateFormat::Text => text::render(&comparison),
        SimulateFormat::Json => json(&comparison)?,
    };
    write(&report)?;
    Ok(if interrupt.is_requested() { exit::INTERRUPTED } else { exit::OK })
}

/// Comparison as JSON, described by `docs/schema/simulation.schema.json`.
///
/// # Errors
/// Never for a comparison.
pub fn json(comparison: &LimiterComparison) -> Result<String, String> {
    serde_json::to_string(comparison).map(|json| json + "\n").map_err(|error| error.to_string())
}

/// Writes to stdout; a closed pipe (`| head`) is not an error.
fn write(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write the report to stdout: {error}"))
        }
        _ => Ok(()),
    }
}
