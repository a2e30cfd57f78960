//! `weir load`: from arguments to a plan, a run, its report and files.

mod defaults;
mod k6_load;
mod load_check;
mod once_script;
mod python_flags;
mod script_args;
mod script_flags;
mod stages_flag;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::{ArgAction, Args};

pub(super) use self::defaults::SearchDefaults;
use self::load_check::parse_flags;
pub(super) use self::load_check::{check, command};
pub(super) use self::load_check::{check_flags, flags, parse};
use self::once_script::once_script;
use self::python_flags::PythonFlags;
use self::script_args::ScriptArgs;
use self::script_flags::load_script;
pub(super) use self::script_flags::search_script;
use self::stages_flag::LoadStagesFlag;
pub(super) use self::stages_flag::StagesFlag;
use super::agent_args::AgentArgs;
use super::k6_flags::{K6Flags, K6ResultFlags};
use super::live_args::{LiveArgs, SpanArgs};
use super::log_args::RateFromArgs;
use super::request_args::{RequestArgs, redacted};
use super::run_file_args::RunFileArgs;
use weir_base::Nanos;
use weir_base::units;
use weir_command::exit;
use weir_command::stdout::reserve_stdout;
use weir_command::{Messages, exit_on_interrupt};
use weir_load::grpc::{asks_for_schema, for_users};
use weir_load::mix_file::MixFile;
use weir_load::objectives::Objectives;
use weir_load::program::{ProgramOptions, is_python};
use weir_load::{LoadPlan, Options};
use weir_measure::Run;
use weir_measure::slo::Slo;
use weir_pace::live_load::LevelKind;
use weir_pace::notation;
use weir_pace::schedule::Arrivals;
use weir_report::{ReportFormat, render, text};
use weir_request::secret_mask::SecretMask;
use weir_scripts::{PythonHost, replace_process};
use weir_session::play::{PlayDetail, PlayOutput, play};
use weir_session::{LoadSession, SessionLoad, SessionOptions, not_begun};

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir load http://localhost:8080/ -c 50 -d 30s\n  \
    weir load http://localhost:8080/ --rate 200 -d 1m --slo \"p99<200ms\"";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct LoadArgs {
    /// open N connections [default: 50]; open loop: at most N [default: 1000, ws: 50]
    #[arg(short, long, value_name = "N", value_parser = units::count, help_heading = CLOSED)]
    connections: Option<u64>,
    /// stop after N requests, or iterations of a scenario
    #[arg(short = 'n', long, value_name = "N", value_parser = units::count, help_heading = CLOSED)]
    requests: Option<u64>,
    /// run for TIME; bare numbers are seconds [default: 10s without -n, --loops]
    #[arg(short, long, value_name = "TIME", value_parser = units::seconds, help_heading = CLOSED)]
    duration: Option<Duration>,
    /// generate load on N threads [default: one per core, or per 20,000 requests/s]
    #[arg(short, long, value_name = "N", help_heading = CLOSED)]
    threads: Option<u64>,

    /// run N users, each with its own connection
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = USERS)]
    users: Option<u64>,
    /// start users evenly over TIME [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = USERS)]
    ramp_up: Option<Duration>,
    /// stop each user after N requests, or iterations [default: unlimited]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = USERS)]
    loops: Option<u64>,

    /// send requests at this rate, independent of responses: 500, 10k, 6000/m
    #[arg(short, long, value_name = "RATE", value_parser = units::rate, help_heading = OPEN)]
    rate: Option<f64>,
    /// space arrivals as constant, poisson or gamma:BURSTINESS [default: constant]
    #[arg(long, value_name = "KIND", value_parser = notation::arrivals, help_heading = OPEN)]
    arrivals: Option<Arrivals>,
    /// change the rate over time, e.g. 0-200/30s,200/1m; users: 0-50u/30s
    #[arg(long, value_name = "STAGES", value_parser = LoadStagesFlag::read, help_heading = OPEN)]
    stages: Option<LoadStagesFlag>,
    #[command(flatten)]
    rate_from_args: RateFromArgs,
    /// busy-wait for exact send times; occupies one core per thread
    #[arg(long, help_heading = OPEN)]
    spin: bool,

    #[command(flatten)]
    request_args: RequestArgs,
    #[command(flatten)]
    script_args: ScriptArgs,
    #[command(flatten)]
    python_args: PythonFlags,
    #[command(flatten)]
    k6_flags: K6Flags,
    #[command(flatten)]
    k6_result_flags: K6ResultFlags,
    #[command(flatten)]
    agent_args: AgentArgs,
    #[command(flatten)]
    live_args: LiveArgs,
    #[command(flatten)]
    span_args: SpanArgs,

    /// play the scenario once and print each request and response
    #[arg(long, help_heading = RESULT)]
    once: bool,
    /// print requests and responses in full, with --once
    #[arg(short, long, requires = "once", help_heading = RESULT)]
    verbose: bool,
    /// print credentials and cookies instead of ***, with --once
    #[arg(long, requires = "once", help_heading = RESULT)]
    show_secrets: bool,
    /// exclude the first TIME from the result [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = RESULT)]
    warmup: Option<Duration>,
    /// seed all random choices [default: 0]
    #[arg(long, value_name = "N", help_heading = RESULT)]
    seed: Option<u64>,
    /// set an objective, e.g. "p99<200ms", "errors<1%"; exit with 1 if missed; repeatable [times: of successes]
    #[arg(long = "slo", value_name = "OBJECTIVE", value_parser = str::parse::<Slo>, help_heading = RESULT)]
    slos: Vec<Slo>,
    /// stop the run and exit with 1 on a condition, e.g. "errors>20%"
    #[arg(long, value_name = "CONDITION", value_parser = str::parse::<Slo>, help_heading = RESULT)]
    abort: Option<Slo>,
    /// evaluate --abort over the last TIME [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = RESULT)]
    abort_after: Option<Duration>,
    /// exit with 3 if the run is not trusted
    #[arg(long, action = ArgAction::SetTrue, help_heading = RESULT)]
    strict: bool,
    /// print the report in this format
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text, help_heading = RESULT)]
    format: ReportFormat,
    #[command(flatten)]
    file_args: RunFileArgs,
}

const CLOSED: &str = "Closed loop (as ab, wrk)";
const USERS: &str = "Closed loop (as JMeter)";
const OPEN: &str = "Open loop";
const RESULT: &str = "Result";

/// Errors before the run are returned as one line; errors after it are logged and do not lose the run.
pub(super) fn run(
    mut asked: LoadArgs,
    args: &[OsString],
    messages: &Messages,
    host: Option<&dyn PythonHost>,
) -> Result<u8, String> {
    asked.request_args.reject_file("load")?;
    if asked.once {
        asked.check_once()?;
        let script = once_script(&mut asked)?;
        if script.as_ref().is_some_and(|script| is_python(&script.path)) && host.is_none() {
            return Err(replace_process(args));
        }
        asked.drop_flags_of_a_load(args, messages);
        if let Some(script) = script {
            return asked.play_once(&script, messages, host);
        }
    }
    asked.read_rate(messages)?;
    let is_read = asked.format == ReportFormat::Json || asked.file_args.clone().into_options().has_stdout();
    if is_read && host.is_some() {
        reserve_stdout()?;
    }
    let mut script = load_script(&mut asked, args, host)?;
    if is_read && script.is_any() {
        reserve_stdout()?;
    }
    let session = SessionOptions {
        files: asked.file_args.clone().into_options(),
        live: asked.live_args.clone().into_options(asked.span_args.trace),
        strict: asked.strict,
    };
    if asked.agent_args.has_agents() && session.files.jtl.is_some() {
        return Err("--jtl and --on cannot be combined; agents report counts, not each request".to_owned());
    }
    let mut running = LoadSession::open(&session, args, messages)?;
    asked.request_args.read_stdin()?;
    let once = asked.once.then(|| asked.play_output());
    let mix = asked.request_args.read_scenarios(Path::new(""), &check_flags)?;
    if let Some(mix) = &mix {
        mix.warnings.iter().for_each(|warning| messages.note(&format!("warning: {warning}")));
    }
    let objectives = asked.objectives(mix.as_ref())?;
    asked.add_mix(mix)?;
    let format = asked.format;
    let mask = asked.request_args.secret_mask().with_values(&session.live.secrets());
    let command = redacted(&asked.live_args.own_args(args), &mask);
    let agent_args = asked.agent_args.clone();
    let has_traces = session.live.trace.is_some();
    if agent_args.has_agents() && has_traces {
        return Err("--trace and --on cannot be combined; agents report counts, not each request".to_owned());
    }
    let traces_requests = has_traces && !script.is_any();
    let options = Options {
        program: script.for_agents().map(ProgramOptions::of_script),
        traces_requests,
        ..asked.into_options()
    };
    let mut options = if script.is_python() { for_users(options) } else { options };
    if let Err(why) = script.apply(&mut options) {
        return not_begun(&why, messages);
    }
    if let Some(output) = once {
        return play(&options, &output, messages);
    }
    if session.files.csv_steps.is_some() && options.scenarios.is_empty() && !script.has_steps() {
        return Err("--csv-steps needs a scenario; name one with -s FILE".to_owned());
    }
    if asks_for_schema(&options) {
        exit_on_interrupt(messages).map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    }
    let plan = LoadPlan::new(&options).map_err(|e| e.to_string())?;
    let plan = script.prepare(&options, plan)?;
    plan.warnings().iter().for_each(|warning| messages.note(&format!("warning: {warning}")));
    objectives.check(&plan)?;
    let agents = agent_args.agent_spec(args, Some(plan.connections))?;
    let load = SessionLoad { options, plan, objectives, command, agents, samplers: None, extent: None };
    let run_options = load.options.clone();
    let Some(mut measured) = running.run(load, &mut || script.begin(&run_options))? else {
        return Ok(exit::INTERRUPTED);
    };
    script.complete(&run_options, &mut measured.run, &measured.script_reports, messages);
    running.report(&mut measured, |run, colors| {
        note_findings(run, format, messages);
        render(run, format, colors)
    });
    let of_script = script.done(&measured.run, &measured.script_reports, messages);
    let code = running.finish(measured);
    if let Some(own) = of_script.filter(|own| script.is_python() && *own != code) {
        messages.note(&format!("exit code {own}, set by the file (environment.process_exit_code)"));
    }
    Ok(of_script.unwrap_or(code))
}

/// Prints what the reports of other tools have no field for: failures, and reasons not to trust the run.
fn note_findings(run: &Run, format: ReportFormat, messages: &Messages) {
    if matches!(format, ReportFormat::Ab | ReportFormat::Wrk | ReportFormat::Jmeter | ReportFormat::K6) {
        text::failures(run).into_iter().chain(text::scenario_failures(run)).for_each(|words| messages.note(&words));
        run.trust.reasons.iter().for_each(|reason| messages.note(&format!("not trusted: {reason}")));
    }
}

impl LoadArgs {
    /// Objectives of the flags, and of a mix file.
    fn objectives(&self, mix: Option<&MixFile>) -> Result<Objectives, String> {
        let window = self.abort_after.map(Nanos::from);
        let mut objectives = Objectives::of_flags(self.slos.clone(), self.abort.clone(), window)?;
        if let Some(mix) = mix {
            objectives.slos.extend(mix.slos.iter().cloned());
            objectives.abort = objectives.abort.or_else(|| mix.abort.clone());
        }
        Ok(objectives)
    }

    /// Takes the rate of a log as stages, if one is given.
    ///
    /// # Errors
    /// One line, if the log cannot be read or has no request.
    fn read_rate(&mut self, messages: &Messages) -> Result<(), String> {
        let logs = self.rate_from_args.log_load(&self.request_args.mix_from_args);
        if let Some(rate) = logs.rate(self.duration)? {
            messages.note(&rate.summary);
            (self.stages, self.duration) = (Some(LoadStagesFlag(LevelKind::Rate, rate.stages)), None);
        }
        Ok(())
    }

    /// Output of a single iteration.
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
