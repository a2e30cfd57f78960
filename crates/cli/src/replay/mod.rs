//! `weir replay`: the requests of access logs at their recorded times.
//!
//! - [`ReplayArgs`]: the command line; `log_args`, `load_args`: its parts
//! - `replayed_request`, `replay_feeder`: requests as they are sent, and the thread that reads them ahead
//! - `replay_program`, `replay_shared`: requests as the program of a load

mod load_args;
mod log_args;
mod replay_feeder;
mod replay_program;
mod replay_shared;
mod replayed_request;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use clap::Args;

use self::load_args::ReplayLoadArgs;
use self::log_args::LogArgs;
use self::replay_feeder::{ReplayFeeder, ReplayPace};
use self::replay_program::ReplayProgram;
use self::replay_shared::ReplayShared;
use self::replayed_request::RequestForm;
use super::access_log::LogReader;
use super::exit;
use super::interrupt::Interrupt;
use super::live_session::LiveSession;
use super::load::exit_code;
use super::messages::Messages;
use super::objectives::Objectives;
use super::output::print;
use super::request_args::redacted;
use super::run_files::RunFiles;
use weir_accesslog::RouteTable;
use weir_base::Nanos;
use weir_live::progress_bar::{Extent, ProgressBar};
use weir_load::{self as load, LoadError, LoadPlan, Options};
use weir_machine::lock::lock;
use weir_measure::run_replay::RunReplay;
use weir_measure::{Run, RunProgress};
use weir_report::{ReportFormat, render, replay as replay_report};

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir replay access.log --target http://localhost:8080 --speed 2x\n  \
    weir replay access.log --target http://localhost:8080 --filter 'status<500' --from 10m\n  \
    weir replay access.log --dry-run";

/// Time that the reader of a log has for its end, once the load has ended.
const READER_GRACE: Duration = Duration::from_secs(1);
/// Number of routes with results of their own.
const MAX_ROUTES: usize = 30;
/// Duration of a plan that ends with its log: ten years.
const ENDLESS: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Rates of the sample of a log that the number of threads is chosen by, per second.
const SAMPLE_RATES: (f64, f64) = (1e-3, 1e6);

/// Replay of access logs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    log_args: LogArgs,
    #[command(flatten)]
    load_args: ReplayLoadArgs,
}

pub(super) fn run(asked: &ReplayArgs, args: &[OsString], messages: &Messages) -> u8 {
    match try_run(asked, args, messages) {
        Ok(code) => code,
        Err(why) => {
            messages.errors(&why);
            exit::USAGE
        }
    }
}

fn try_run(asked: &ReplayArgs, args: &[OsString], messages: &Messages) -> Result<u8, String> {
    let ReplayArgs { log_args, load_args } = asked;
    if load_args.repeats && load_args.duration.is_none() && load_args.requests.is_none() && !log_args.dry_run {
        return Err("--loop has no end; give one with -d or -n".to_owned());
    }
    if load_args.repeats && log_args.reads_stdin() {
        return Err("--loop needs a file; stdin can be read once".to_owned());
    }
    let warmup = Nanos::from(load_args.warmup.unwrap_or_default());
    if load_args.duration.is_some_and(|duration| warmup >= duration.into()) {
        return Err(format!("--warmup: {warmup} is not shorter than the run"));
    }
    let window = load_args.abort_after.map(Nanos::from);
    let objectives = Objectives::of_flags(load_args.slos.clone(), load_args.abort.clone(), window)?;
    let mut reader = LogReader::open(log_args.request(load_args.seed())?)?;
    reader.peek()?;
    if log_args.dry_run {
        return dry_run(asked, reader);
    }
    let live_args = &load_args.live_args;
    let mut files = RunFiles::open(&load_args.file_args, live_args.jsonl(), load_args.strict)?;
    files.ensure_not_arguments(args)?;
    let options = Options { duration: Some(ENDLESS), ..load_args.options(sampled_rate(&reader) * load_args.speed()) };
    let plan = LoadPlan::new(&options).map_err(|error| error.to_string())?;
    let form = request_form(asked, &options, &plan, &reader)?;
    let routes = form.routes.names().to_vec();
    let pace = ReplayPace {
        speed: load_args.speed(),
        repeats: load_args.repeats,
        limit: load_args.requests.unwrap_or(u64::MAX),
        until: load_args.duration.map_or(Nanos::NEVER, Nanos::from),
    };
    let shared = Arc::new(ReplayShared::default());
    let format = reader.format_name().to_owned();
    let ends = !pace.repeats && load_args.requests.is_none();
    let expected = reader.expected_length().filter(|_| ends).map(|time| (time.as_secs_f64() / pace.speed).ceil());
    let (primed, is_primed) = mpsc::channel();
    let (feeder, queues) = ReplayFeeder::new(reader, form, pace, Arc::clone(&shared), (plan.threads, primed));
    let program = ReplayProgram::new(routes.clone(), queues, warmup, Arc::clone(&shared));
    let options = Options { duration: load_args.duration, ..options };
    let plan = plan.replaying(Arc::new(program), &options).map_err(|error| error.to_string())?;
    objectives.check(&plan)?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let interrupt = Arc::new(interrupt);
    let samplers: Vec<_> = routes.into_iter().map(|route| (route, plan.shown_url())).collect();
    let log = files.request_log(&samplers)?;
    let slos: Vec<String> = objectives.slos.iter().map(|placed| placed.slo.to_string()).collect();
    let (plan, mut live) =
        LiveSession::open(live_args, (&options, plan), &slos, &interrupt, (messages, files.jsonl()))?;
    live_args.watch_stdin();
    let (ended, has_ended) = mpsc::channel::<()>();
    let spawned = thread::Builder::new().name("weir-log".into()).spawn(move || {
        feeder.run();
        let _ = ended.send(());
    });
    spawned.map_err(|error| format!("cannot start the thread that reads the log: {error}"))?;
    // The first requests are due at once. A disconnected channel means that the log has ended.
    let _ = is_primed.recv();
    let mut abort = objectives.watch(&plan);
    let end = expected.map_or(Nanos::NEVER, Nanos::from_secs_f64);
    let extent = Extent { until: plan.until.min(end), requests: load_args.requests };
    let mut bar = (!messages.is_quiet() && !live_args.has_tui()).then(|| ProgressBar::new(extent));
    let mut watch = |progress: &RunProgress<'_>| {
        live.update(progress, bar.as_mut(), (&plan, messages));
        if let Some(line) = bar.as_mut().and_then(|bar| bar.update(progress)) {
            messages.note(&line);
        }
        abort.goes_on(progress) && !interrupt.is_requested()
    };
    let command = redacted(args, &plan.mask.clone().with_values(&load_args.secrets()));
    let run = load::run(&plan, &command, &mut watch, log.as_ref());
    live.end_keys();
    if let Some(bar) = bar {
        bar.finish();
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
    let end = plan.end();
    // Its queues end with the plan. A pipe without an end is not waited for; its last lines were not needed.
    drop(plan);
    if has_ended.recv_timeout(READER_GRACE) == Err(RecvTimeoutError::Disconnected) {
        return Err("the thread that reads the log failed".to_owned());
    }
    let replay = RunReplay { files: log_args.names(), format, speed: load_args.speed(), ..replay_of(&shared) };
    describe(&mut run, replay, Nanos(shared.last_ns.load(Ordering::Relaxed)).min(end) - warmup);
    files.finish_log(log, &mut run);
    objectives.judge(&mut run, abort, interrupt.is_requested());
    let shown = files.print(messages, |colors| render(&run, load_args.format, colors));
    let mut written = shown.max(files.write(&run, messages)).max(live.finish(Ok(&run), messages));
    if let Some(why) = lock(&shared.failure).take() {
        messages.error(&format!("{why}; what was read before was sent"));
        written = exit::USAGE;
    }
    Ok(exit_code(&run, load_args.strict, written, messages))
}

/// Rate of the part of a log that is in the windows, per second.
fn sampled_rate(reader: &LogReader) -> f64 {
    let (count, first, last) =
        reader.waiting().fold((0_u64, i64::MAX, i64::MIN), |(count, first, last), (start, _)| {
            (count + 1, first.min(start), last.max(start))
        });
    let length_s = (last.saturating_sub(first) as f64 / 1e9).max(1.0);
    (count as f64 / length_s).clamp(SAMPLE_RATES.0, SAMPLE_RATES.1)
}

/// Form shared by all requests of the replay, from the command line.
fn request_form(
    asked: &ReplayArgs,
    options: &Options,
    plan: &LoadPlan,
    reader: &LogReader,
) -> Result<RequestForm, String> {
    let mut headers = options.headers.clone();
    let is_given = |name: &str, headers: &[String]| {
        headers.iter().filter_map(|line| line.split_once(':')).any(|(known, _)| known.trim().eq_ignore_ascii_case(name))
    };
    // With those of authentication and connections.
    for (name, value) in plan.script_headers(options).map_err(|error| error.to_string())? {
        if !is_given(&name, &headers) {
            headers.push(format!("{name}: {value}"));
        }
    }
    let path = plan.target.path.split('?').next().unwrap_or_default();
    let sample = reader.waiting().map(|(_, record)| (&*record.method, record.path()));
    Ok(RequestForm {
        host: plan.target.host_header(),
        base: path.trim_end_matches('/').to_owned(),
        headers,
        keep_alive: plan.keep_alive,
        has_recorded_headers: asked.log_args.recorded_headers,
        routes: RouteTable::of(sample, MAX_ROUTES),
    })
}

/// Counts of the log and of the responses.
fn replay_of(shared: &ReplayShared) -> RunReplay {
    let mut replay = lock(&shared.tally).to_replay();
    let unsendable = shared.unsendable.load(Ordering::Relaxed);
    if unsendable > 0 {
        replay.left_out.insert("unsendable".to_owned(), unsendable);
    }
    for ((recorded, received), count) in lock(&shared.classes).iter() {
        if recorded == received {
            replay.same_class += count;
        } else {
            *replay.other_class.entry(format!("{recorded}xx to {received}xx")).or_default() += count;
        }
    }
    replay
}

/// Adds the log to a run, whose arrivals after the warm-up took `length`. An iteration is a request, so that there is
/// no statistics of iterations.
fn describe(run: &mut Run, replay: RunReplay, length: Nanos) {
    run.target.method = String::new();
    run.iterations = None;
    run.scenarios = Vec::new();
    if length > Nanos::ZERO && run.requests.total > 0 {
        run.rate_per_s.offered = run.requests.total as f64 / length.as_secs_f64();
    }
    // Routes that the log has only elsewhere.
    run.steps.retain(|step| step.requests > 0);
    run.replay = Some(replay);
}

/// Reads the whole log, and prints what it has.
fn dry_run(asked: &ReplayArgs, mut reader: LogReader) -> Result<u8, String> {
    while let Some(timed) = reader.next()? {
        reader.count(&timed);
    }
    let format = reader.format_name().to_owned();
    let replay = RunReplay {
        files: asked.log_args.names(),
        format,
        speed: asked.load_args.speed(),
        ..reader.tally().to_replay()
    };
    let text = match asked.load_args.format {
        ReportFormat::Json => {
            serde_json::to_string_pretty(&replay).map_err(|error| format!("cannot write the counts: {error}"))?
        }
        _ => replay_report::of_log(&replay).join("\n"),
    };
    print(&format!("{text}\n"), false)?;
    Ok(exit::OK)
}
