//! Arguments -> a checked config; nothing else. `main.rs` and the Python package's script both call [`run`].

mod asking;
mod capacity;
pub mod compare;
mod driving;
mod gate;
mod interrupt;
mod launcher;
mod life;
mod load;
mod manner;
mod messages;
mod mistake;
mod output;
mod report;
mod send;
pub mod serve;
pub mod simulate;
mod study;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use self::messages::Messages;

/// Exit codes, the same for every command.
pub mod exit {
    /// Done, and all objectives held.
    pub const OK: u8 = 0;
    /// Done, and an objective failed.
    pub const OBJECTIVE: u8 = 1;
    /// Bad usage or set-up; nothing was measured.
    pub const USAGE: u8 = 2;
    /// Not one request succeeded; or the run is not to be trusted, and `--strict` was given; or an agent was lost.
    pub const UNTRUSTED: u8 = 3;
    /// Interrupted; what was measured has been written.
    pub const INTERRUPTED: u8 = 130;
}

/// Find out how much load an HTTP service can take.
#[derive(Debug, Parser)]
#[command(name = "weir", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
    #[command(flatten)]
    common: CommonArgs,
}

/// What every command takes.
#[derive(Debug, Args)]
struct CommonArgs {
    /// No progress, no notes; errors only
    #[arg(short, long, global = true)]
    quiet: bool,
    /// How messages on stderr are written
    #[arg(long, global = true, value_name = "FORM", default_value = "text")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Drive load at a service and see how it behaves
    #[command(visible_alias = "run")]
    Load(Box<load::LoadArgs>),
    /// Start a service that misbehaves on purpose, to try everything else against
    Serve(serve::ServeArgs),
    /// Stand in front of a service, and answer in time whatever it does: hedge, retry, keep deadlines
    Gate(Box<gate::GateArgs>),
    /// Deliver a pile of requests through rate limits, as fast as these allow, and lose none
    Send(Box<send::SendArgs>),
    /// See in virtual time what protection from overload does, for your own figures or scenarios with names
    Simulate(Box<simulate::SimulateArgs>),
    /// Find out which variant is better: start each again and again, drive the same load at it, compare
    Study(study::StudyArgs),
    /// Keep watch over a program that a study has started
    #[command(name = crate::study::GUARD, hide = true)]
    Guard,
    /// Drive a part of a load that several agents drive together
    #[command(name = crate::agents::AGENT_COMMAND, hide = true)]
    Agent,
    /// Find out how much load a service can take and still keep its objectives
    Capacity(Box<capacity::CapacityArgs>),
    /// Hold runs against each other, also those of other tools: is one worse, and is the difference real?
    Compare(compare::CompareArgs),
    /// Show a run that was kept with --out, in any format
    Report(report::ReportArgs),
}

/// Runs the command line (the program's name first) and says how it ended, as an exit code ([`exit`]).
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &args, &Messages::for_invalid_args(&args)),
    };
    let messages = Messages::new(&cli.common);
    match cli.command {
        CliCommand::Load(asked) => load::run(*asked, &args, &messages),
        CliCommand::Serve(asked) => serve::run(asked, &messages),
        CliCommand::Gate(asked) => gate::run(&asked, &messages),
        CliCommand::Send(asked) => send::run(&asked, &messages),
        CliCommand::Simulate(asked) => simulate::run(&asked, &messages),
        CliCommand::Study(asked) => study::run(&asked, &args, &messages),
        CliCommand::Guard => study::guard(&messages),
        CliCommand::Agent => load::run_agent(&messages),
        CliCommand::Capacity(asked) => capacity::run(*asked, &args, &messages),
        CliCommand::Compare(asked) => compare::run(&asked, &args, &messages),
        CliCommand::Report(asked) => report::run(&asked, &messages),
    }
}

/// Help and version go to stdout; what is wrong with the arguments is one line on stderr.
fn usage(error: &clap::Error, args: &[OsString], messages: &Messages) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = error.print();
        return exit::OK;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return exit::USAGE;
    }
    messages.error(&mistake::message(error, &mistake::target_command(Cli::command(), args)));
    exit::USAGE
}

/// What is wrong with arguments of this command that stand elsewhere than on our command line.
fn one_line(error: &clap::Error, command: &str) -> String {
    mistake::message(error, &mistake::target_command(Cli::command(), &["weir".into(), command.into()]))
}
