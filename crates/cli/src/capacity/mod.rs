//! `weir capacity`: from arguments to a search for the highest load that meets the objectives.

mod recovery_args;
mod search_args;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

use self::recovery_args::RecoveryArgs;
use self::search_args::SEARCH;
pub(crate) use self::search_args::SearchArgs;
use super::agent_args::AgentArgs;
use super::k6_flags::K6Flags;
use super::load::{SearchDefaults, check_flags, search_script};
use super::out_args::OutArgs;
use super::request_args::{RequestArgs, redacted};
use weir_base::units;
use weir_capacity::{CapacityError, CapacityOptions, SearchScale};
use weir_command::Messages;
use weir_command::exit;
use weir_command::stdout::reserve_stdout;
use weir_command::{Interrupt, exit_on_interrupt};
use weir_load::grpc::{asks_for_schema, for_users};
use weir_load::mix_file::MixFile;
use weir_load::objectives::Objectives;
use weir_load::program::ProgramOptions;
use weir_load::{LoadPlan, Options, setup};
use weir_measure::LoadModel;
use weir_measure::slo::Slo;
use weir_pace::notation;
use weir_pace::schedule::Arrivals;
use weir_scripts::PythonHost;
use weir_session::not_begun;
use weir_session::search::{ResultRules, SearchFeed, SearchOutputs, SearchPaths, conclude, failure, search};

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir capacity http://localhost:8080/ --slo \"p99<200ms\" --slo \"errors<1%\"\n  \
    weir capacity http://localhost:8080/ --slo \"p95<100ms\" --closed\n  \
    weir capacity http://localhost:8080/ --recovery --load 400 --trigger spike:3x,5s";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CapacityArgs {
    /// set an objective to meet, e.g. "p99<200ms", "errors<1%"; repeatable
    #[arg(long = "slo", value_name = "OBJECTIVE", value_parser = str::parse::<Slo>, help_heading = SEARCH)]
    slos: Vec<Slo>,
    /// search over users (closed loop) instead of requests per second
    #[arg(long, help_heading = SEARCH)]
    closed: bool,
    #[command(flatten)]
    search_args: SearchArgs,
    /// exclude at least the first TIME of each load level
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::seconds, help_heading = SEARCH)]
    warmup: Duration,
    /// space arrivals as constant, poisson or gamma:BURSTINESS [default: poisson]
    #[arg(long, value_name = "KIND", value_parser = notation::arrivals, help_heading = SEARCH)]
    arrivals: Option<Arrivals>,
    /// report the CPU use of the service with this process ID
    #[arg(long, value_name = "PID", help_heading = SEARCH)]
    pid: Option<u32>,
    /// seed random arrivals and body choices [default: 0]
    #[arg(long, value_name = "N", help_heading = SEARCH)]
    seed: Option<u64>,
    /// open at most N connections in the open loop [default: 1000]
    #[arg(short, long, value_name = "N", value_parser = units::count, conflicts_with = "closed", help_heading = SEARCH)]
    connections: Option<u64>,
    /// generate load on N threads [default: as needed]
    #[arg(short, long, value_name = "N", help_heading = SEARCH)]
    threads: Option<u64>,

    #[command(flatten)]
    recovery_args: RecoveryArgs,

    #[command(flatten)]
    request_args: RequestArgs,
    #[command(flatten)]
    k6_flags: K6Flags,
    #[command(flatten)]
    agent_args: AgentArgs,

    /// exit with 3 if weir itself is the limit
    #[arg(long, help_heading = RESULT)]
    strict: bool,
    /// print the report in this format
    #[arg(short, long, value_enum, default_value_t = CapacityFormat::Text, help_heading = RESULT)]
    format: CapacityFormat,
    /// write the result to FILE as JSON
    #[arg(short, long, value_name = "FILE", help_heading = RESULT)]
    out: Option<PathBuf>,
    /// write the HTML report to FILE
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    html: Option<PathBuf>,

    #[command(flatten)]
    out_args: OutArgs,
}

const RESULT: &str = "Result";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CapacityFormat {
    /// for a terminal
    Text,
    /// one JSON object
    Json,
}

pub(super) fn run(
    mut asked: CapacityArgs,
    args: &[OsString],
    messages: &Messages,
    host: Option<&dyn PythonHost>,
) -> Result<u8, String> {
    asked.request_args.reject_file("capacity")?;
    let (format, strict) = (asked.format, asked.strict);
    if format == CapacityFormat::Json && host.is_some() {
        reserve_stdout()?;
    }
    let mut script = search_script(&mut asked.request_args, (&mut asked.agent_args, &asked.k6_flags), args, host)?;
    if script.is_python() {
        asked.threads = Some(1);
    }
    let out = asked.out_args.clone().into_options();
    let paths = SearchPaths { out: asked.out.as_deref(), html: asked.html.as_deref(), jsonl: out.jsonl.as_deref() };
    let outputs = SearchOutputs::open(paths, args)?;
    asked.request_args.read_stdin()?;
    asked.request_args.mix_from_args.log_load().check_pattern()?;
    if let Some(mix) = asked.request_args.read_scenarios(Path::new(""), &check_flags)? {
        asked.add_mix(mix, messages)?;
    }
    asked.recovery_args.check(asked.closed, script.options().is_some())?;
    if asked.slos.is_empty() && !asked.recovery_args.has_load() {
        return Err("--slo: give an objective to search for, e.g. --slo 'p99<200ms' --slo 'errors<1%'".to_owned());
    }
    let command = redacted(args, &asked.request_args.secret_mask().with_values(&out.secrets()));
    let agents = asked.agent_args.agent_spec(args, None)?;
    let recovery_args = asked.recovery_args.clone();
    let mut asked = CapacityOptions { agents, ..asked.into_options()? };
    if asked.options.websocket.listens {
        return Err("--listen cannot be used with weir capacity; a connection that listens lasts as long as its load"
            .to_owned());
    }
    asked.recovery = recovery_args.options(&asked)?;
    asked.options.program = script.options().map(ProgramOptions::of_script);
    if script.is_python() {
        asked.options = for_users(asked.options);
    }
    if let Err(why) = script.set_up(&mut asked.options) {
        return not_begun(&why, messages);
    }
    asked.options.program = script.options().map(ProgramOptions::of_script);
    if asks_for_schema(&asked.options) {
        exit_on_interrupt(messages).map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    }
    // Mistakes are found before the setup is played.
    let plan = LoadPlan::new(&Options { arrivals: Arrivals::default(), ..asked.options.clone() });
    let plan = plan.map_err(|e| e.to_string())?;
    let interrupt = Interrupt::install().map_err(|e| format!("cannot listen for Ctrl-C: {e}"))?;
    outputs.ensure_not_inputs()?;
    Objectives::of_flags(asked.slos.clone(), None, None)?.check_streams(&plan)?;
    let model = asked.model;
    let mut feed = SearchFeed::start(&out, (&plan, model), &asked.slos, (outputs.jsonl(), messages))?;
    asked.options = match setup::set_up(&asked.options, &mut || !interrupt.is_requested()) {
        Ok(options) => options,
        Err(why) => return failure(CapacityError::Load(why), messages),
    };
    let report = &mut |report: &str| script.add_report(report);
    let found = search(&asked, &command, (messages, &interrupt), &mut feed, report);
    script.end(&asked.options)?;
    // A second Ctrl-C ends the process at once, so that nothing else needs to end the teardown.
    let torn_down = setup::tear_down(&asked.options, &mut || true);
    if let Err(why) = &torn_down {
        messages.error(&why.to_string());
    }
    let code =
        conclude(found, (feed, outputs), ResultRules { as_json: format == CapacityFormat::Json, strict }, messages)?;
    Ok(code.max(torn_down.map_or(exit::USAGE, |()| exit::OK)))
}

impl CapacityArgs {
    /// Adds what a mix file says, where the command line says nothing; notes what a search does not use.
    fn add_mix(&mut self, mix: MixFile, messages: &Messages) -> Result<(), String> {
        mix.warnings.iter().for_each(|warning| messages.note(&format!("warning: {warning}")));
        let file = SearchDefaults::of_mix(&mix)?;
        let is_unused =
            |key: &String| SearchDefaults::UNUSED_KEYS.contains(&key.as_str()) || self.closed && key == "connections";
        let mut unused: Vec<String> = mix.load_keys().filter(is_unused).collect();
        if !self.closed {
            self.connections = self.connections.or(file.connections);
        }
        self.threads = self.threads.or(file.threads);
        self.seed = self.seed.or(file.seed);
        self.arrivals = self.arrivals.or(file.arrivals);
        self.request_args.add_defaults(file.request_args);
        for objective in mix.slos {
            // Others have no load that is too high for them, or are about a part of the load.
            match objective.slo.criterion() {
                Some(_) => self.slos.push(objective.slo),
                None => unused.push(format!("\"{}\"", objective.slo)),
            }
        }
        unused.extend(mix.abort.map(|_| "abort".to_owned()));
        if !unused.is_empty() {
            messages.note(&format!(
                "the search ignores these entries of the mix file: {}; \
                 its objectives are upper bounds on times or errors of all requests",
                unused.join(", ")
            ));
        }
        Ok(())
    }

    fn into_options(self) -> Result<CapacityOptions, String> {
        let model = if self.closed { LoadModel::Closed } else { LoadModel::Open };
        let options = Options {
            connections: self.connections,
            threads: self.threads,
            arrivals: self.arrivals.unwrap_or(Arrivals::Poisson),
            seed: Some(self.seed.unwrap_or(0)),
            warmup: Some(self.warmup),
            ..self.request_args.into_options()
        };
        let asked = self.search_args.options().of_load(options, (model, SearchScale::REQUESTS), self.slos)?;
        Ok(CapacityOptions { pid: self.pid, ..asked })
    }
}
