//! `weir replay`: the requests of access logs at their recorded times.
//!
//! - [`ReplayArgs`]: the command line; `log_args`, `load_args`: its parts
//!
//! The log, and the load that it becomes, are those of [`weir_replay::load`].

mod load_args;
mod log_args;

use std::ffi::OsString;

use clap::Args;

use self::load_args::ReplayLoadArgs;
use self::log_args::LogArgs;
use super::file_as_url::reject_scenario;
use super::request_args::redacted;
use weir_base::Nanos;
use weir_command::Messages;
use weir_command::exit;
use weir_command::stdout::print;
use weir_load::LoadError;
use weir_load::objectives::Objectives;
use weir_replay::load::{ReplayLoad, ReplayOptions, read_log};
use weir_report::{ReportFormat, render, replay as replay_report};
use weir_session::{LoadSession, SessionLoad};
use weir_terminal::progress_bar::Extent;

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir replay access.log --target http://localhost:8080 --speed 2x\n  \
    weir replay access.log --target http://localhost:8080 --from 10m --to 20m\n  \
    weir replay access.log --dry-run";

/// Replay of access logs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    log_args: LogArgs,
    #[command(flatten)]
    load_args: ReplayLoadArgs,
}

pub(super) fn run(asked: &ReplayArgs, args: &[OsString], messages: &Messages) -> Result<u8, String> {
    let ReplayArgs { log_args, load_args } = asked;
    log_args.files.iter().try_for_each(|file| reject_scenario(file))?;
    let options = ReplayOptions {
        log: log_args.options(),
        has_recorded_headers: log_args.recorded_headers,
        speed: load_args.speed,
        repeats: load_args.repeats,
        load: load_args.options(),
    };
    let window = load_args.abort_after.map(Nanos::from);
    let objectives = Objectives::of_flags(load_args.slos.clone(), load_args.abort.clone(), window)?;
    if log_args.dry_run {
        return dry_run(&options, load_args.format);
    }
    let (load, mut log) = ReplayLoad::open(&options)?;
    let session = load_args.session();
    let mut running = LoadSession::open(&session, args, messages)?;
    objectives.check(&load.plan)?;
    let command = redacted(args, &load.plan.mask.clone().with_values(&session.live.secrets()));
    let url = load.plan.shown_url();
    let samplers = load.routes.into_iter().map(|route| (route, url.clone())).collect();
    let until = load.plan.until.min(load.expected.unwrap_or(Nanos::NEVER));
    let load = SessionLoad {
        options: load.options,
        plan: load.plan,
        objectives,
        command,
        agents: None,
        samplers: Some(samplers),
        extent: Some(Extent { until, requests: options.load.requests }),
    };
    let mut start = || log.start().map_err(LoadError::Program);
    let Some(mut measured) = running.run(load, &mut start)? else { return Ok(exit::INTERRUPTED) };
    let unread = log.finish(&mut measured.run, measured.plan_end)?;
    running.report(&mut measured, |run, colors| render(run, load_args.format, colors));
    if let Some(why) = unread {
        messages.error(&format!("{why}; the requests before it were sent"));
        measured.written = exit::USAGE;
    }
    Ok(running.finish(measured))
}

/// Reads the whole log, and prints what it has.
fn dry_run(asked: &ReplayOptions, format: ReportFormat) -> Result<u8, String> {
    let replay = read_log(asked)?;
    let text = match format {
        ReportFormat::Json => {
            serde_json::to_string_pretty(&replay).map_err(|error| format!("cannot write the counts: {error}"))?
        }
        _ => replay_report::of_log(&replay).join("\n"),
    };
    print(&format!("{text}\n"), false)?;
    Ok(exit::OK)
}
