//! `weir load`: from arguments to a plan, a run, its report and files.

mod agent_scripts;
mod defaults;
mod exit_code;
mod load_check;
mod lua_script;
mod python_script;
mod rate_from;
mod samplers;
mod script;
mod script_args;
mod search_script;
mod stages_flag;
mod study_scripts;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgAction, Args};

pub(super) use self::agent_scripts::run_agent;
pub(super) use self::defaults::SearchDefaults;
pub(super) use self::exit_code::exit_code;
use self::load_check::parse_flags;
#[cfg(all(feature = "history", feature = "web"))]
pub(super) use self::load_check::{check, command};
pub(super) use self::load_check::{check_flags, flags, parse};
pub(super) use self::lua_script::{LuaLoad, LuaRole};
use self::python_script::PythonFlags;
pub(super) use self::rate_from::RateFromArgs;
pub(super) use self::samplers::samplers;
use self::script::LoadScript;
use self::script_args::ScriptArgs;
pub(super) use self::search_script::SearchScript;
use self::stages_flag::LoadStagesFlag;
pub(super) use self::stages_flag::StagesFlag;
pub(super) use self::study_scripts::StudyScripts;
use super::agent_args::AgentArgs;
use super::exit;
use super::interrupt::Interrupt;
use super::live_session::{LiveArgs, LiveSession, step_names};
use super::messages::Messages;
use super::objectives::Objectives;
use super::output::reserve_stdout;
use super::request_args::{RequestArgs, redacted};
use super::run::{PlayDetail, PlayOutput, play};
use super::run_files::{RunFileArgs, RunFiles};
use crate::python_host::PythonHost;
use weir_agents::Coordinator;
use weir_base::Nanos;
use weir_base::units;
use weir_live::progress_bar::{Extent, ProgressBar};
use weir_load::setup;
use weir_load::{self as load, LoadError, LoadPlan, Options};
use weir_measure::slo::Slo;
use weir_pace::notation;
use weir_pace::schedule::Arrivals;
use weir_report::{ReportFormat, render, text};
use weir_request::secret_mask::SecretMask;

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir load http://localhost:8080/ -c 50 -d 30s\n  \
    weir load http://localhost:8080/ --rate 200 -d 1m --slo \"p99<200ms\" --out run.json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct LoadArgs {
    /// concurrent connections [default: 50]; open loop: maximum [default: 1000]
    #[arg(short, long, value_name = "N", value_parser = units::count, help_heading = CLOSED)]
    connections: Option<u64>,
    /// number of requests
    #[arg(short = 'n', long, value_name = "N", value_parser = units::count, help_heading = CLOSED)]
    requests: Option<u64>,
    /// duration; bare numbers are seconds [default: 10s without -n, --loops]
    #[arg(short, long, value_name = "TIME", value_parser = units::seconds, help_heading = CLOSED)]
    duration: Option<Duration>,
    /// generator threads [default: one per core, or per 20,000 requests/s]
    #[arg(short, long, value_name = "N", help_heading = CLOSED)]
    threads: Option<u64>,

    /// closed-loop users, each with its own connection
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = USERS)]
    users: Option<u64>,
    /// time over which users start, evenly [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = USERS)]
    ramp_up: Option<Duration>,
    /// requests per user [default: unlimited]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = USERS)]
    loops: Option<u64>,

    /// open-loop arrival rate, independent of responses: 500, 10k, 6000/m
    #[arg(short, long, value_name = "RATE", value_parser = units::rate, help_heading = OPEN)]
    rate: Option<f64>,
    /// arrival process: constant, poisson, gamma:BURSTINESS [default: constant]
    #[arg(long, value_name = "KIND", value_parser = notation::arrivals, help_heading = OPEN)]
    arrivals: Option<Arrivals>,
    /// arrival rate over time, e.g. 0-200/30s,200/1m; users: 0-50u/30s
    #[arg(long, value_name = "STAGES", value_parser = LoadStagesFlag::read, help_heading = OPEN)]
    stages: Option<LoadStagesFlag>,
    #[command(flatten)]
    rate_from_args: RateFromArgs,
    /// busy-wait for exact send times; one core per thread
    #[arg(long, help_heading = OPEN)]
    spin: bool,

    #[command(flatten)]
    request_args: RequestArgs,
    #[command(flatten)]
    script_args: ScriptArgs,
    #[command(flatten)]
    python_args: PythonFlags,
    #[command(flatten)]
    agent_args: AgentArgs,
    #[command(flatten)]
    live_args: LiveArgs,

    /// play the scenario once and print each request and response
    #[arg(long, help_heading = RESULT)]
    once: bool,
    /// with --once: all of each request and response
    #[arg(short, long, requires = "once", help_heading = RESULT)]
    verbose: bool,
    /// with --once: credentials and cookies as they are, instead of ***
    #[arg(long, requires = "once", help_heading = RESULT)]
    show_secrets: bool,
    /// initial time excluded from the result [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = RESULT)]
    warmup: Option<Duration>,
    /// seed of all random choices [default: 0]
    #[arg(long, value_name = "N", help_heading = RESULT)]
    seed: Option<u64>,
    /// objective, e.g. "p99<200ms", "errors<1%"; repeatable; exit code 1
    #[arg(long = "slo", value_name = "OBJECTIVE", value_parser = str::parse::<Slo>, help_heading = RESULT)]
    slos: Vec<Slo>,
    /// condition that ends the run with exit code 1, e.g. "errors>20%"
    #[arg(long, value_name = "CONDITION", value_parser = str::parse::<Slo>, help_heading = RESULT)]
    abort: Option<Slo>,
    /// time that --abort looks back [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = RESULT)]
    abort_after: Option<Duration>,
    /// exit code 3 if the run is not trusted
    #[arg(long, action = ArgAction::SetTrue, help_heading = RESULT)]
    strict: bool,
    /// report format on stdout
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text, help_heading = RESULT)]
    format: ReportFormat,
    #[command(flatten)]
    file_args: RunFileArgs,
}

const CLOSED: &str = "Closed loop (as ab, wrk)";
const USERS: &str = "Closed loop (as JMeter)";
const OPEN: &str = "Open loop";
const RESULT: &str = "Result";

pub(super) fn run(asked: LoadArgs, args: &[OsString], messages: &Messages, host: Option<&dyn PythonHost>) -> u8 {
    match try_run(asked, args, messages, host) {
        Ok(code) => code,
        Err(why) => {
            messages.errors(&why);
            exit::USAGE
        }
    }
}

/// Errors before the run are returned as one line; errors after it are logged and do not lose the run.
fn try_run(
    mut asked: LoadArgs,
    args: &[OsString],
    messages: &Messages,
    host: Option<&dyn PythonHost>,
) -> Result<u8, String> {
    asked.read_rate(messages)?;
    let is_read = asked.format == ReportFormat::Json || asked.file_args.has_stdout();
    if is_read && host.is_some() {
        reserve_stdout()?;
    }
    let mut script = LoadScript::open(&mut asked, args, host)?;
    if is_read && script.is_any() {
        reserve_stdout()?;
    }
    if asked.agent_args.has_agents() && asked.file_args.jtl.is_some() {
        return Err("--jtl and --on do not go together; agents send counts, and not each request".to_owned());
    }
    let mut files = RunFiles::open(&asked.file_args, asked.live_args.jsonl(), asked.strict)?;
    files.ensure_not_arguments(args)?;
    let has_step_table = asked.file_args.csv_steps.is_some();
    asked.request_args.read_stdin()?;
    let once = asked.once.then(|| asked.play_output());
    let mix = asked.request_args.read_scenarios(Path::new(""), &check_flags)?;
    if let Some(mix) = &mix {
        mix.warnings.iter().for_each(|warning| messages.note(&format!("warning: {warning}")));
    }
    let window = asked.abort_after.map(Nanos::from);
    let mut objectives = Objectives::of_flags(asked.slos.clone(), asked.abort.clone(), window)?;
    if let Some(mix) = &mix {
        objectives.slos.extend(mix.slos.iter().cloned());
        objectives.abort = objectives.abort.or_else(|| mix.abort.clone());
    }
    asked.add_mix(mix)?;
    let (format, strict) = (asked.format, asked.strict);
    let command = redacted(
        &asked.live_args.own_args(args),
        &asked.request_args.secret_mask().with_values(&asked.live_args.secrets()),
    );
    let (driving, live_args) = (asked.agent_args.clone(), asked.live_args.clone());
    let traces_requests = live_args.has_traces() && !script.is_any();
    if driving.has_agents() && live_args.has_traces() {
        return Err("--trace and --on do not go together; agents send counts, and not each request".to_owned());
    }
    let options = Options { script: script.for_agents(), traces_requests, ..asked.into_options() };
    if let Some(output) = once {
        return play(&options, &output, messages);
    }
    if has_step_table && options.scenarios.is_empty() && !script.is_python() {
        return Err("--csv-steps needs a scenario; name one with -s FILE".to_owned());
    }
    let plan = LoadPlan::new(&options).map_err(|e| e.to_string())?;
    let plan = script.prepare(&options, plan)?;
    if let Some(mix) = &plan.scenarios {
        mix.warnings.iter().for_each(|warning| messages.note(&format!("warning: {warning}")));
    }
    objectives.check(&plan)?;
    let mut abort = objectives.watch(&plan);
    let agents = driving.agent_spec(args, Some(plan.connections))?;
    let interrupt = Interrupt::install().map_err(|e| format!("cannot listen for Ctrl-C: {e}"))?;
    live_args.watch_stdin();
    let options = match setup::set_up(&options, &mut || !interrupt.is_requested()) {
        Ok(options) => options,
        Err(why @ LoadError::Interrupted) => {
            messages.error(&why.to_string());
            return Ok(exit::INTERRUPTED);
        }
        Err(why) => return Err(why.to_string()),
    };
    // With what the setups have captured; without any it is the same again.
    let plan = if plan.has_setup() { LoadPlan::new(&options).map_err(|e| e.to_string())? } else { plan };
    let log = files.request_log(&samplers(&plan))?;
    let interrupt = Arc::new(interrupt);
    let slos: Vec<String> = objectives.slos.iter().map(|placed| placed.slo.to_string()).collect();
    let (plan, mut live) =
        LiveSession::open(&live_args, (&options, plan), &slos, &interrupt, (messages, files.jsonl()))?;
    let mut bar = (!messages.is_quiet() && !live_args.has_tui()).then(|| {
        ProgressBar::of_steps(Extent { until: plan.until, requests: plan.expected_requests() }, &step_names(&plan))
    });
    let mut watch = |progress: &weir_measure::RunProgress<'_>| {
        live.update(progress, bar.as_mut(), (&plan, messages));
        if let Some(line) = bar.as_mut().and_then(|bar| bar.update(progress)) {
            messages.note(&line);
        }
        abort.goes_on(progress) && !interrupt.is_requested()
    };
    // Dropped at the end, after the result has been written: ending agents may take seconds.
    let mut crew = None;
    let run = match agents {
        None => load::run(&plan, &command, &mut watch, log.as_ref()),
        Some(asked) => Coordinator::place(&asked, &options, &mut || !interrupt.is_requested())
            .and_then(|placed| crew.insert(placed).run(&options, &plan, &command, &mut watch)),
    };
    let reports = crew.as_mut().map(Coordinator::take_script_reports).unwrap_or_default();
    live.end_keys();
    if let Some(bar) = bar {
        bar.finish();
    }
    // A second Ctrl-C ends the process at once, so that nothing else needs to end the teardown.
    let torn_down = setup::tear_down(&options, &mut || true);
    if let Err(why) = &torn_down {
        messages.error(&why.to_string());
    }
    let mut run = match run {
        Ok(run) => run,
        Err(why @ LoadError::Interrupted) => {
            messages.error(&why.to_string());
            return Ok(exit::INTERRUPTED);
        }
        Err(why) => {
            live.finish(Err(&why.to_string()), messages);
            return Err(why.to_string());
        }
    };
    files.finish_log(log, &mut run);
    objectives.judge(&mut run, abort, interrupt.is_requested());
    if matches!(format, ReportFormat::Ab | ReportFormat::Wrk | ReportFormat::Jmeter) {
        // Reports of other tools have no field for these.
        text::failures(&run).into_iter().chain(text::scenario_failures(&run)).for_each(|words| messages.note(&words));
        run.trust.reasons.iter().for_each(|reason| messages.note(&format!("not trusted: {reason}")));
    }
    let shown = files.print(messages, |colors| render(&run, format, colors));
    let of_script = script.done(&run, &reports, messages);
    let kept = files.write(&run, messages);
    let ended = torn_down.map_or(exit::USAGE, |()| exit::OK);
    let live_code = live.finish(Ok(&run), messages);
    let code = exit_code(&run, strict, shown.max(kept).max(ended).max(live_code), messages);
    if let Some(own) = of_script.filter(|own| *own != code) {
        messages.note(&format!("exit code {own}, set by the file (environment.process_exit_code)"));
    }
    Ok(of_script.unwrap_or(code))
}

impl LoadArgs {
    /// Parts of a single iteration that are printed.
    fn play_output(&self) -> PlayOutput {
        PlayOutput {
            detail: if self.verbose { PlayDetail::Full } else { PlayDetail::Short },
            is_json: self.format == ReportFormat::Json,
            mask: if self.show_secrets { SecretMask::off() } else { SecretMask::default() },
        }
    }

    fn into_options(self) -> Options {
        let [stages, user_stages] = self.stages.map(LoadStagesFlag::by_kind).unwrap_or_default();
        Options {
            connections: self.connections,
            threads: self.threads,
            requests: self.requests,
            duration: self.duration,
            users: self.users,
            ramp_up: self.ramp_up,
            loops: self.loops,
            rate: self.rate,
            arrivals: self.arrivals.unwrap_or_default(),
            stages,
            user_stages,
            warmup: self.warmup,
            seed: Some(self.seed.unwrap_or(0)),
            spin: self.spin,
            ..self.request_args.into_options()
        }
    }
}
