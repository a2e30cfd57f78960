//! `weir capacity`: from arguments to a search for the highest load that meets the objectives.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::agent_args::AgentArgs;
use super::exit;
use super::interrupt::Interrupt;
use super::load::{SearchDefaults, SearchScript, check_flags};
use super::messages::Messages;
use super::mix_file::MixFile;
use super::output::{OutputFile, colors, print};
use super::request_args::{RequestArgs, redacted};
use crate::python_host::PythonHost;
use weir_capacity::{self as capacity, CapacityError, CapacityEvent, CapacityOptions};
use weir_decide::base::units;
use weir_decide::load::notation;
use weir_decide::load::schedule::Arrivals;
use weir_live::progress_bar::{Extent, ProgressBar};
use weir_load::{LoadError, LoadPlan, Options, setup};
use weir_measure::LoadModel;
use weir_measure::capacity::report::{Bottleneck, CapacityReport};
use weir_measure::capacity::search::SearchRange;
use weir_measure::capacity::step::StepLength;
use weir_measure::slo::Slo;
use weir_report::capacity as report;
use weir_report::page::render;

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir capacity http://localhost:8080/ --slo \"p99<200ms\" --slo \"errors<1%\"\n  \
    weir capacity http://localhost:8080/ --slo \"p95<100ms\" --closed";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CapacityArgs {
    /// objective, e.g. "p99<200ms", "errors<1%"; repeatable
    #[arg(long = "slo", value_name = "OBJECTIVE", value_parser = str::parse::<Slo>, help_heading = SEARCH)]
    slos: Vec<Slo>,
    /// closed loop: search over users instead of requests per second
    #[arg(long, help_heading = SEARCH)]
    closed: bool,
    /// first load level [default: 100/s, or 1 user]
    #[arg(long, value_name = "LOAD", value_parser = units::rate, help_heading = SEARCH)]
    from: Option<f64>,
    /// highest load level [default: 1,000,000/s, or 10,000 users]
    #[arg(long = "to", value_name = "LOAD", value_parser = units::rate, help_heading = SEARCH)]
    max_load: Option<f64>,
    /// final distance between the bounds
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = units::fraction, help_heading = SEARCH)]
    precision: f64,
    /// maximum time per load level
    #[arg(long = "step-time", value_name = "TIME", default_value = "30s", value_parser = units::seconds, help_heading = SEARCH)]
    step_length: Duration,
    /// maximum search time [default: 30 x --step-time, at least 5m]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = SEARCH)]
    max_time: Option<Duration>,
    /// minimum warm-up excluded from each load level
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::seconds, help_heading = SEARCH)]
    warmup: Duration,
    /// arrival process: constant, poisson, gamma:BURSTINESS [default: poisson]
    #[arg(long, value_name = "KIND", value_parser = notation::arrivals, help_heading = SEARCH)]
    arrivals: Option<Arrivals>,
    /// process ID of the service, to report its CPU use
    #[arg(long, value_name = "PID", help_heading = SEARCH)]
    pid: Option<u32>,
    /// seed of arrivals and body choices [default: 0]
    #[arg(long, value_name = "N", help_heading = SEARCH)]
    seed: Option<u64>,
    /// maximum connections in the open loop [default: 1000]
    #[arg(short, long, value_name = "N", value_parser = units::count, conflicts_with = "closed", help_heading = SEARCH)]
    connections: Option<u64>,
    /// generator threads [default: as needed]
    #[arg(short, long, value_name = "N", help_heading = SEARCH)]
    threads: Option<u64>,

    #[command(flatten)]
    request_args: RequestArgs,
    #[command(flatten)]
    agent_args: AgentArgs,

    /// exit code 3 if weir itself is the limit
    #[arg(long, help_heading = RESULT)]
    strict: bool,
    /// report format on stdout
    #[arg(short, long, value_enum, default_value_t = CapacityFormat::Text, help_heading = RESULT)]
    format: CapacityFormat,
    /// file for the result as JSON
    #[arg(short, long, value_name = "FILE", help_heading = RESULT)]
    out: Option<PathBuf>,
    /// file for the HTML report
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    html: Option<PathBuf>,
}

/// Minimum of the default of `--max-time`.
const MIN_DEFAULT_SEARCH_TIME: Duration = Duration::from_secs(300);
const SEARCH: &str = "Search";
const RESULT: &str = "Result";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CapacityFormat {
    /// for a terminal
    Text,
    /// one JSON object
    Json,
}

pub(super) fn run(asked: CapacityArgs, args: &[OsString], messages: &Messages, host: Option<&dyn PythonHost>) -> u8 {
    match try_run(asked, args, messages, host) {
        Ok(code) => code,
        Err(why) => {
            messages.errors(&why);
            exit::USAGE
        }
    }
}

fn try_run(
    mut asked: CapacityArgs,
    args: &[OsString],
    messages: &Messages,
    host: Option<&dyn PythonHost>,
) -> Result<u8, String> {
    let (format, strict) = (asked.format, asked.strict);
    let mut script = SearchScript::open(&mut asked.request_args, &mut asked.agent_args, args, host)?;
    if script.is_python() {
        asked.threads = Some(1);
    }
    let (out, html) = (OutputFile::open(asked.out.as_deref())?, OutputFile::open(asked.html.as_deref())?);
    OutputFile::ensure_distinct(&[("--out", out.as_ref()), ("--html", html.as_ref())])?;
    asked.request_args.read_stdin()?;
    asked.request_args.mix_from_args.check(false)?;
    if let Some(mix) = asked.request_args.read_scenarios(Path::new(""), &check_flags)? {
        asked.add_mix(mix, messages)?;
    }
    if asked.slos.is_empty() {
        return Err("--slo: give an objective of the search, e.g. --slo 'p99<200ms' --slo 'errors<1%'".to_owned());
    }
    let command = redacted(args, &asked.request_args.secrets());
    let agents = asked.agent_args.agent_spec(args, None)?;
    let mut asked = CapacityOptions { agents, ..asked.into_options()? };
    asked.options.script = script.options();
    let interrupt = Interrupt::install().map_err(|e| format!("cannot listen for Ctrl-C: {e}"))?;
    // Mistakes are found before the setup is played.
    LoadPlan::new(&Options { arrivals: Arrivals::default(), ..asked.options.clone() }).map_err(|e| e.to_string())?;
    asked.options = match setup::set_up(&asked.options, &mut || !interrupt.is_requested()) {
        Ok(options) => options,
        Err(why) => return failure(CapacityError::Load(why), messages),
    };
    let mut bar: Option<(usize, ProgressBar)> = None;
    let found = capacity::find(&asked, &command, &mut |event| {
        match event {
            CapacityEvent::StepProgress { step, progress, .. } if !messages.is_quiet() => {
                if bar.as_ref().is_none_or(|(number, _)| number != step) {
                    let seconds = asked.step_length.max_s + asked.warmup_s;
                    finish(&mut bar);
                    let until = Duration::from_secs(seconds).into();
                    bar = Some((*step, ProgressBar::new(Extent { until, requests: None })));
                }
                if let Some(line) = bar.as_mut().and_then(|(_, bar)| bar.update(progress)) {
                    messages.note(&line);
                }
            }
            CapacityEvent::StepProgress { .. } => {}
            CapacityEvent::ScriptReport(report) => script.add_report(report),
            CapacityEvent::StepDone(tried) => {
                finish(&mut bar);
                messages.note(&report::step(asked.model, tried));
            }
        }
        !interrupt.is_requested()
    });
    finish(&mut bar);
    script.end()?;
    // A second Ctrl-C ends the process at once, so that nothing else needs to end the teardown.
    let torn_down = setup::tear_down(&asked.options, &mut || true);
    if let Err(why) = &torn_down {
        messages.error(&why.to_string());
    }
    let answer = match found {
        Ok(answer) => answer,
        Err(why) => return failure(why, messages),
    };
    let taken = [&out, &html].into_iter().flatten().any(OutputFile::is_stdout);
    if !(taken && messages.is_quiet()) {
        let text = match format {
            CapacityFormat::Text => report::render(&answer, colors() && !taken),
            CapacityFormat::Json => answer.to_json(),
        };
        print(&text, taken)?;
    }
    if let Some(output) = out {
        output.write(&answer.to_json())?;
    }
    if let Some(output) = html {
        output.write(&render(&report::page::of_capacity(&answer)))?;
    }
    if let Some(why) = &answer.lost_agent {
        messages.error(why);
    }
    Ok(exit_code(&answer, strict).max(torn_down.map_or(exit::USAGE, |()| exit::OK)))
}

/// Exit code of a search without a result.
fn failure(why: CapacityError, messages: &Messages) -> Result<u8, String> {
    match why {
        why @ CapacityError::Load(LoadError::Interrupted) => {
            messages.error(&why.to_string());
            Ok(exit::INTERRUPTED)
        }
        CapacityError::AgentLost(why) => {
            messages.error(&why);
            Ok(exit::UNTRUSTED)
        }
        why => Err(why.to_string()),
    }
}

fn finish(bar: &mut Option<(usize, ProgressBar)>) {
    if let Some((_, bar)) = bar.take() {
        bar.finish();
    }
}

fn exit_code(answer: &CapacityReport, strict: bool) -> u8 {
    match answer {
        answer if answer.interrupted => exit::INTERRUPTED,
        answer if answer.lost_agent.is_some() => exit::UNTRUSTED,
        answer if strict && answer.limited_by == Bottleneck::Generator => exit::UNTRUSTED,
        answer if answer.passes.is_none() => exit::OBJECTIVE,
        _ => exit::OK,
    }
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
                "not used by a search, of the mix file: {}; objectives are upper bounds on times or errors of all requests",
                unused.join(", ")
            ));
        }
        Ok(())
    }

    fn into_options(self) -> Result<CapacityOptions, String> {
        let (start, least, most) = if self.closed { (1.0, 1.0, 10_000.0) } else { (100.0, 0.1, 1e6) };
        let (start, most) = (self.from.unwrap_or(start), self.max_load.unwrap_or(most));
        if !(start >= least && start <= most && most <= 1e8) {
            return Err(format!("--from: {start} is out of range; give {least} to {most}, the value of --to"));
        }
        if !(0.005..=1.0).contains(&self.precision) {
            return Err(format!("--precision: {} is out of range; give 0.5% to 100%", self.precision));
        }
        if !(3..=3600).contains(&self.step_length.as_secs()) {
            return Err("--step-time: give 3s to 1h; shorter steps have no outcome".into());
        }
        if self.max_time.is_some_and(|time| time.is_zero()) {
            return Err("--max-time: invalid time 0; write e.g. 10m".into());
        }
        if self.warmup.as_secs() > 600 {
            return Err("--warmup: give 10m at most".into());
        }
        let length = StepLength { min_s: 3, max_s: self.step_length.as_secs() };
        Ok(CapacityOptions {
            options: Options {
                connections: self.connections,
                threads: self.threads,
                arrivals: self.arrivals.unwrap_or(Arrivals::Poisson),
                seed: Some(self.seed.unwrap_or(0)),
                ..self.request_args.into_options()
            },
            slos: self.slos,
            model: if self.closed { LoadModel::Closed } else { LoadModel::Open },
            range: SearchRange {
                start,
                min_load: least,
                max_load: most,
                precision: self.precision,
                integer: self.closed,
                min_gap: 1.0,
                step_s: self.step_length.as_secs_f64(),
            },
            max_time: self.max_time.unwrap_or_else(|| (self.step_length * 30).max(MIN_DEFAULT_SEARCH_TIME)),
            step_length: length,
            warmup_s: self.warmup.as_secs_f64().ceil() as u64,
            pid: self.pid,
            agents: None,
        })
    }
}
