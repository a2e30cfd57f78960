//! `weir load`: arguments -> a plan, driven, shown and kept.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Command, FromArgMatches};

use super::asking::{RequestArgs, redacted};
use super::driving::AgentArgs;
use super::exit;
use super::interrupt::Interrupt;
use super::messages::Messages;
use super::output::{OutputFile, colors, print};
use crate::agents::{Coordinator, life};
use crate::decide::schedule::{Arrivals, LoadStage};
use crate::decide::words;
use crate::live::bar::{Extent, ProgressBar};
use crate::load::{self, LoadError, LoadPlan, Options};
use crate::measure::Run;
use crate::measure::slo::Slo;
use crate::report::{ReportFormat, csv, jtl, page, render, text};

#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    /// Closed loop: connections that ask all the time [default: 50]. Open loop: the cap on connections [default: 1000]
    #[arg(short, long, value_name = "N", value_parser = words::count, help_heading = CLOSED)]
    connections: Option<u64>,
    /// Stop after this many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = words::count, help_heading = CLOSED)]
    requests: Option<u64>,
    /// Stop after this time; a bare number is seconds [default: 10s, unless -n or --loops bounds the run]
    #[arg(short, long, value_name = "TIME", value_parser = words::seconds, help_heading = CLOSED)]
    duration: Option<Duration>,
    /// Generator threads [default: one per core; in the open loop one per 20,000 requests/s]
    #[arg(short, long, value_name = "N", help_heading = CLOSED)]
    threads: Option<u64>,

    /// Users, each of whom waits for its answer before asking again
    #[arg(long, value_name = "N", value_parser = words::count, help_heading = USERS)]
    users: Option<u64>,
    /// Time over which the users start, evenly
    #[arg(long, value_name = "TIME", value_parser = words::seconds, help_heading = USERS)]
    ramp_up: Option<Duration>,
    /// Requests that each user makes
    #[arg(long, value_name = "N", value_parser = words::count, help_heading = USERS)]
    loops: Option<u64>,
    /// A new connection for each request
    #[arg(long = "fresh", help_heading = USERS)]
    new_connections: bool,

    /// Requests per second that start whether or not answers come; also e.g. 10k, 6000/m
    #[arg(short, long, value_name = "PER_S", value_parser = words::rate, help_heading = OPEN)]
    rate: Option<f64>,
    /// How arrivals are spread: constant or poisson
    #[arg(long, value_name = "KIND", default_value = "constant", value_parser = words::arrivals, help_heading = OPEN)]
    arrivals: Arrivals,
    /// Rates that change, e.g. 0-200/30s,200/1m
    #[arg(long, value_name = "STAGES", value_parser = StagesFlag::read, help_heading = OPEN)]
    stages: Option<StagesFlag>,
    /// Never sleep: sends as close to their time as the machine allows, for a whole core per thread
    #[arg(long, help_heading = OPEN)]
    spin: bool,

    #[command(flatten)]
    request_args: RequestArgs,
    #[command(flatten)]
    agent_args: AgentArgs,

    /// Leave the requests of this first stretch out of the result
    #[arg(long, value_name = "TIME", value_parser = words::seconds, help_heading = RESULT)]
    warmup: Option<Duration>,
    /// Repeats arrivals and choices of bodies
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = RESULT)]
    seed: u64,
    /// An objective, e.g. "p99<200ms", "errors<1%", "rate>1000"; repeatable. Exit code 1 if one fails
    #[arg(long = "slo", value_name = "OBJECTIVE", value_parser = str::parse::<Slo>, help_heading = RESULT)]
    slos: Vec<Slo>,
    /// Exit code 3 if the run is not to be trusted
    #[arg(long, action = ArgAction::SetTrue, help_heading = RESULT)]
    strict: bool,
    /// The form of the report on stdout
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text, help_heading = RESULT)]
    format: ReportFormat,
    /// Keep the run as JSON, for 'weir report'; - is stdout, and the report then goes to stderr
    #[arg(short, long, value_name = "FILE", help_heading = RESULT)]
    out: Option<PathBuf>,
    /// Log each request as JMeter does (CSV)
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    jtl: Option<PathBuf>,
    /// Write the run second by second, as CSV
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    csv: Option<PathBuf>,
    /// Write the run as a page to look at: one file, for any browser
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    html: Option<PathBuf>,
}

const CLOSED: &str = "Closed loop (ab's and wrk's words)";
const USERS: &str = "Closed loop (JMeter's words)";
const OPEN: &str = "Open loop";
const RESULT: &str = "Result";

/// Stages as one value: clap takes a bare list for a repeatable option.
#[derive(Clone, Debug)]
struct StagesFlag(Vec<LoadStage>);

impl StagesFlag {
    fn read(text: &str) -> Result<Self, String> {
        words::stages(text).map(Self)
    }
}

/// The flags that a load knows, without their dashes.
pub(super) fn flags() -> Vec<String> {
    let command = LoadArgs::augment_args(Command::new("load"));
    command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect()
}

/// Reads the arguments of a load that stand elsewhere than on our command line.
///
/// # Errors
/// What is wrong with them, in one line.
pub(super) fn parse(args: &[String]) -> Result<Options, String> {
    let command = LoadArgs::augment_args(Command::new("load")).no_binary_name(true).disable_help_flag(true);
    let read = command.try_get_matches_from(args).and_then(|matches| LoadArgs::from_arg_matches(&matches));
    read.map(LoadArgs::into_options).map_err(|error| super::one_line(&error, "load"))
}

pub(super) fn run(asked: LoadArgs, args: &[OsString], messages: &Messages) -> u8 {
    match try_run(asked, args, messages) {
        Ok(code) => code,
        Err(why) => {
            messages.error(&why);
            exit::USAGE
        }
    }
}

/// The life of an agent.
pub(super) fn run_agent(messages: &Messages) -> u8 {
    match life::run() {
        Ok(()) => exit::OK,
        Err(error) => {
            messages.error(&format!("this is run by 'weir load --on', not by hand: {error}"));
            exit::USAGE
        }
    }
}

/// All that can go wrong before the run comes back as one line; what goes wrong after it does not lose the run.
fn try_run(asked: LoadArgs, args: &[OsString], messages: &Messages) -> Result<u8, String> {
    if asked.agent_args.has_agents() && asked.jtl.is_some() {
        return Err("--jtl and --on do not go together; agents send what they count, and not each request".to_owned());
    }
    let outputs = LoadOutputs::open(&asked)?;
    let mut asked = asked;
    asked.request_args.read_stdin()?;
    let (format, strict, slos) = (asked.format, asked.strict, asked.slos.clone());
    let command = redacted(args, &asked.request_args.secrets());
    let driving = asked.agent_args.clone();
    let options = asked.into_options();
    let plan = LoadPlan::new(&options).map_err(|e| e.to_string())?;
    let agents = driving.agent_spec(args, Some(plan.connections))?;
    let interrupt = Interrupt::install().map_err(|e| format!("cannot listen for Ctrl-C: {e}"))?;
    let label = plan.target.path.split('?').next().unwrap_or("/");
    let begin = |it: &OutputFile| {
        let file = it.file.try_clone()?;
        Ok(jtl::JtlLog::new(file, !it.is_stdout(), label, &plan.target.url))
    };
    let log = outputs.jtl.as_ref().map(begin).transpose().map_err(|e: io::Error| format!("--jtl: {e}"))?;
    let mut bar = (!messages.is_quiet())
        .then(|| ProgressBar::new(Extent { until: plan.until, requests: plan.expected_requests() }));
    let mut watch = |progress: &crate::measure::RunProgress<'_>| {
        if let Some(line) = bar.as_mut().and_then(|bar| bar.update(progress)) {
            messages.note(&line);
        }
        !interrupt.is_requested()
    };
    // Until the end: what was measured is written before agents are taken leave of.
    let mut crew = None;
    let run = match agents {
        None => load::run(&plan, &command, &mut watch, log.as_ref()),
        Some(asked) => Coordinator::place(&asked, &options, &mut || !interrupt.is_requested())
            .and_then(|placed| crew.insert(placed).run(&options, &plan, &command, &mut watch)),
    };
    if let Some(bar) = bar {
        bar.finish();
    }
    let mut run = match run {
        Ok(run) => run,
        Err(why @ LoadError::Interrupted) => {
            messages.error(&why.to_string());
            return Ok(exit::INTERRUPTED);
        }
        Err(why) => return Err(why.to_string()),
    };
    run.slo = slos.iter().map(|slo| slo.check(&run)).collect();
    if matches!(format, ReportFormat::Ab | ReportFormat::Wrk | ReportFormat::Jmeter) {
        // Other tools' reports have no place for it.
        text::failures(&run).iter().for_each(|words| messages.note(words));
        run.trust.reasons.iter().for_each(|reason| messages.note(&format!("not to be trusted: {reason}")));
    }
    let taken = outputs.uses_stdout();
    let shown = match taken && messages.is_quiet() {
        true => Ok(()),
        false => print(&render(&run, format, colors() && !taken), taken),
    };
    let shown = shown.map_or_else(|why| messages.usage_error(&why), |()| exit::OK);
    let kept = outputs.write(&run, log, messages);
    Ok(exit_code(&run, strict, shown.max(kept), messages))
}

fn exit_code(run: &Run, strict: bool, written: u8, messages: &Messages) -> u8 {
    if run.interrupted {
        return exit::INTERRUPTED;
    }
    if written != exit::OK {
        return written;
    }
    if let Some(why) = run.failed_agent() {
        messages.error(why);
        return exit::UNTRUSTED;
    }
    if run.requests.ok == 0 {
        let first = run.target.failure_details.iter().next();
        let why = match first {
            Some((kind, words)) => format!("{kind}: {words}"),
            None if run.requests.total == 0 => "none was sent".to_owned(),
            None => run.failed_by_kind(),
        };
        messages.error(&format!("not one of {} requests succeeded; {why}", run.requests.total));
        return exit::UNTRUSTED;
    }
    if strict && !run.trust.ok {
        return exit::UNTRUSTED;
    }
    if run.slo.iter().all(|held| held.ok) { exit::OK } else { exit::OBJECTIVE }
}

/// The files to write.
struct LoadOutputs {
    json: Option<OutputFile>,
    csv: Option<OutputFile>,
    html: Option<OutputFile>,
    jtl: Option<OutputFile>,
}

impl LoadOutputs {
    fn open(asked: &LoadArgs) -> Result<Self, String> {
        let open = |path: &Option<PathBuf>| OutputFile::open(path.as_deref());
        let all =
            Self { json: open(&asked.out)?, csv: open(&asked.csv)?, html: open(&asked.html)?, jtl: open(&asked.jtl)? };
        OutputFile::ensure_distinct(&all.by_flag())?;
        Ok(all)
    }

    fn by_flag(&self) -> [(&'static str, Option<&OutputFile>); 4] {
        let Self { json, csv, html, jtl } = self;
        [("--out", json.as_ref()), ("--csv", csv.as_ref()), ("--html", html.as_ref()), ("--jtl", jtl.as_ref())]
    }

    /// Whether one of them is stdout.
    fn uses_stdout(&self) -> bool {
        self.by_flag().iter().any(|(_, output)| output.is_some_and(OutputFile::is_stdout))
    }

    /// Writes all files; one that fails does not keep the others from being written.
    fn write(self, run: &Run, log: Option<jtl::JtlLog>, messages: &Messages) -> u8 {
        let done = [
            self.json.map(|output| output.write(&run.to_json())),
            self.csv.map(|output| output.write(&csv::series(run))),
            self.html.map(|output| output.write(&page::render(&page::of_run(run)))),
            self.jtl.zip(log).map(|(output, log)| output.finish(log.finish())),
        ];
        let mut code = exit::OK;
        for why in done.into_iter().flatten().filter_map(Result::err) {
            messages.error(&why);
            code = exit::USAGE;
        }
        code
    }
}

impl LoadArgs {
    fn into_options(self) -> Options {
        Options {
            connections: self.connections,
            threads: self.threads,
            requests: self.requests,
            duration: self.duration,
            users: self.users,
            ramp_up: self.ramp_up,
            loops: self.loops,
            fresh: self.new_connections,
            rate: self.rate,
            arrivals: self.arrivals,
            stages: self.stages.map(|s| s.0).unwrap_or_default(),
            warmup: self.warmup,
            seed: Some(self.seed),
            spin: self.spin,
            ..self.request_args.into_options()
        }
    }
}
