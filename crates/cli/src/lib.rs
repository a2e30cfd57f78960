//! Command line: from arguments to validated options. `main.rs` and the Python package's script both call [`run()`].

mod agent_args;
mod auth_timeout_args;
mod capacity;
mod compare;
mod completions;
mod connection_args;
mod doctor;
mod file_as_url;
mod foreign_flags;
mod form_args;
mod gate;
mod grpc_args;
mod help;
mod history;
mod http2_args;
mod import;
mod k6_flags;
mod live_args;
mod llm;
mod load;
mod log_args;
mod man_pages;
mod out_args;
mod record;
mod replay;
mod report;
mod request_args;
mod run;
mod run_file_args;
mod save_args;
mod scenario_args;
mod send;
mod serve;
mod server_args;
mod service_connection_args;
mod simulate;
mod stream_args;
mod study;
mod ui;
mod usage_error;
mod websocket_args;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};

use weir_command::stdout::print;
use weir_command::{MessageFormat, Messages};
use weir_scripts::PythonHost;

pub use weir_command::exit;

/// Load-test HTTP services; also a test server, a gateway and a job sender
#[derive(Debug, Parser)]
#[command(name = "weir", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
    #[command(flatten)]
    common: CommonArgs,
}

/// Flags of all commands.
#[derive(Debug, Args)]
struct CommonArgs {
    /// print errors only: no progress, no notes
    #[arg(short, long, global = true)]
    quiet: bool,
    /// print messages on stderr in this format
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

impl CommonArgs {
    /// Writer of messages.
    fn messages(&self) -> Messages {
        let format = match self.log_format {
            LogFormat::Text => MessageFormat::Text,
            LogFormat::Json => MessageFormat::Json,
        };
        Messages::new(self.quiet, format)
    }
}

/// Writer for invalid arguments, in the format that they name.
fn for_invalid_args(args: &[OsString]) -> Messages {
    let is_json = args.iter().any(|arg| arg == "--log-format=json")
        || args.windows(2).any(|pair| pair[0] == "--log-format" && pair[1] == "json");
    Messages::new(false, if is_json { MessageFormat::Json } else { MessageFormat::Text })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Measure throughput, response times and errors under a given load
    Load(Box<load::LoadArgs>),
    /// Measure a language model server: token times and tokens per second
    Llm(Box<llm::LlmCommandArgs>),
    /// Replay access logs at their recorded times
    Replay(Box<replay::ReplayArgs>),
    /// Play a scenario once and print each request and response
    Run(Box<run::RunArgs>),
    /// Find the highest load that meets the objectives
    Capacity(Box<capacity::CapacityArgs>),
    /// Turn files of other tools into scenarios
    Import(import::ImportArgs),
    /// Record a scenario through a proxy for browsers and other clients
    Record(Box<record::RecordArgs>),
    /// Compare saved runs, of weir or other tools, with statistics
    Compare(compare::CompareArgs),
    /// Compare variants of a service in repeated, randomized measurements
    Study(study::StudyArgs),
    /// List saved runs
    History(history::HistoryArgs),
    /// Find where saved runs got worse or better
    Trend(history::TrendArgs),
    /// Serve a web page to start loads, watch them and find past ones
    Ui(ui::UiArgs),
    /// Print a saved run in any format
    Report(report::ReportArgs),
    /// Run a test server with fault injection
    Serve(serve::ServeArgs),
    /// Run a gateway: hedging, retries, deadlines, overload protection
    Gate(Box<gate::GateArgs>),
    /// Deliver jobs within rate limits, resumable after a crash
    Send(Box<send::SendArgs>),
    /// Simulate overload protection in virtual time
    Simulate(Box<simulate::SimulateArgs>),
    /// Check what on this machine would distort measurements
    Doctor(doctor::DoctorArgs),
    /// Print a shell completion script
    Completions(completions::CompletionsArgs),
    /// Write manual pages, one per command
    Man(man_pages::ManArgs),
    /// Supervise a program that a study has started
    #[command(name = weir_study::GUARD, hide = true)]
    Guard,
    /// Generate one agent's part of a load
    #[command(name = weir_agents::AGENT_COMMAND, hide = true)]
    Agent,
}

/// Runs the command line (the program's name first) and returns the exit code ([`exit`]).
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    run_with(args, None)
}

/// Runs the command line in a process with a Python interpreter, if it has one; returns the exit code ([`exit`]).
pub fn run_with(args: impl IntoIterator<Item = OsString>, host: Option<&dyn PythonHost>) -> u8 {
    let args = form_args::resolved(args);
    if let Some(text) = help::asked_text(&args) {
        let messages = for_invalid_args(&args);
        let printed = text.and_then(|text| print(&text, false));
        return printed.map_or_else(|reason| messages.usage_error(&reason), |()| exit::OK);
    }
    let cli = match parse(&args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &args, &for_invalid_args(&args)),
    };
    let messages = cli.common.messages();
    let done = match cli.command {
        CliCommand::Load(asked) => load::run(*asked, &args, &messages, host),
        CliCommand::Llm(asked) => llm::run(*asked, &args, &messages),
        CliCommand::Replay(asked) => replay::run(&asked, &args, &messages),
        CliCommand::Run(asked) => run::run(*asked, &args, &messages, host),
        CliCommand::Import(asked) => import::run(&asked, &messages),
        CliCommand::Record(asked) => record::run(*asked, &messages),
        CliCommand::Serve(asked) => serve::run(asked, messages),
        CliCommand::Send(asked) => send::run(&asked, &messages),
        CliCommand::Simulate(asked) => simulate::run(&asked),
        CliCommand::Capacity(asked) => capacity::run(*asked, &args, &messages, host),
        CliCommand::Compare(asked) => compare::run(&asked, &args, &messages),
        CliCommand::Ui(asked) => ui::run(&asked, &args, messages),
        // These have errors of their own, or several.
        CliCommand::Gate(asked) => Ok(gate::run(&asked, &messages)),
        CliCommand::Study(asked) => Ok(study::run(&asked, &args, &messages, host)),
        CliCommand::Guard => Ok(study::guard(&messages)),
        CliCommand::Agent => Ok(weir_scripts::run_agent(&messages, host)),
        CliCommand::History(asked) => Ok(history::run(&asked, &messages)),
        CliCommand::Trend(asked) => Ok(history::run_trend(&asked, &messages)),
        CliCommand::Report(asked) => Ok(report::run(&asked, &messages)),
        CliCommand::Doctor(asked) => Ok(doctor::run(&asked, &messages)),
        CliCommand::Completions(asked) => Ok(completions::run(&asked, &messages)),
        CliCommand::Man(asked) => Ok(man_pages::run(&asked, &messages)),
    };
    messages.exit_code(done)
}

fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let mut matches = help::command().try_get_matches_from(args)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut help::command()))
}

/// Prints help and version on stdout, and an error as one line on stderr.
fn usage(error: &clap::Error, args: &[OsString], messages: &Messages) -> u8 {
    if error.kind() == ErrorKind::DisplayHelp
        && let Some(text) = help::short_help(args)
    {
        return print(&text, false).map_or_else(|reason| messages.usage_error(&reason), |()| exit::OK);
    }
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = error.print();
        return exit::OK;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return exit::USAGE;
    }
    messages.error(&usage_error::message(error, &usage_error::target_command(help::command(), args), args));
    exit::USAGE
}

/// Error in arguments of a command that are not from the command line, as one line.
fn one_line(error: &clap::Error, command: &str) -> String {
    usage_error::message(error, &usage_error::target_command(help::command(), &["weir".into(), command.into()]), &[])
}
