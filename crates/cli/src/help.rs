//! Command line as its help shows it: commands under headings, the flags of most runs in `-h`, and the page of each
//! command at the end.

mod from;
mod headings;
mod short_help;
mod topics;
mod usual_flags;

use std::ffi::OsString;

use clap::{Command, CommandFactory};
use weir_command::pages;

use super::Cli;

/// Page of each command, relative to [`pages::base`]; a command without an entry has the page of its parent.
const PAGES: [(&str, &str); 36] = [
    ("weir", "README.md"),
    ("weir load", "load.md"),
    ("weir llm", "llm.md"),
    ("weir replay", "replay.md"),
    ("weir run", "cli.md#weir-run"),
    ("weir import", "import.md"),
    ("weir record", "record.md"),
    ("weir capacity", "capacity.md"),
    ("weir compare", "compare.md"),
    ("weir history", "history.md"),
    ("weir trend", "history.md"),
    ("weir ui", "ui.md"),
    ("weir study", "study.md"),
    ("weir report", "cli.md#weir-report"),
    ("weir serve", "serve.md"),
    ("weir serve work", "serve/work.md"),
    ("weir serve ratelimit", "serve/ratelimit.md"),
    ("weir serve functions", "serve/functions.md"),
    ("weir serve shop", "serve/shop.md"),
    ("weir serve grpc", "serve/grpc.md"),
    ("weir serve ws", "serve/ws.md"),
    ("weir serve stream", "serve/stream.md"),
    ("weir serve llm", "serve/llm.md"),
    ("weir serve sleep", "serve/sleep.md"),
    ("weir serve httpbin", "serve/httpbin.md"),
    ("weir gate", "gate.md"),
    ("weir send", "send.md"),
    ("weir send status", "send/store.md"),
    ("weir send list", "send/store.md"),
    ("weir send retry", "send/store.md"),
    ("weir send edit", "send/store.md"),
    ("weir send purge", "send/store.md"),
    ("weir simulate", "simulate.md"),
    ("weir doctor", "doctor.md"),
    ("weir completions", "cli.md#weir-completions"),
    ("weir man", "cli.md#weir-man"),
];

/// Command line of the program.
pub(super) fn command() -> Command {
    let command = with_reference(Cli::command(), "", "", &pages::base());
    headings::with_headings(command.mut_subcommands(without_help_command))
        .mut_subcommands(|inner| short_help::with_exit_codes(with_log_beside_its_format(inner)))
}

/// Gateway whose access log is beside the format of the log; the flag itself is one of all servers.
fn with_log_beside_its_format(command: Command) -> Command {
    match command.get_name() {
        "gate" => command.mut_arg("access_log", |arg| arg.help_heading(super::gate::OBSERVABILITY)),
        _ => command,
    }
}

/// Command without a subcommand `help`, if it runs without any: its first argument may be a file of that name.
fn without_help_command(command: Command) -> Command {
    let runs_alone = command.is_args_conflicts_with_subcommands_set();
    command.disable_help_subcommand(runs_alone)
}

/// Short help, if that is what these arguments ask for, of a command with many flags.
pub(super) fn short_help(args: &[OsString]) -> Option<String> {
    short_help::short_help(command(), args)
}

/// Text that is asked for by `weir help from` or `weir load --help TOPIC`, or why there is none.
pub(super) fn asked_text(args: &[OsString]) -> Option<Result<String, String>> {
    match args {
        [_, help, from] if help == "help" && from == "from" => Some(Ok(from::FROM.to_owned())),
        _ => topics::topic_help(command, args),
    }
}

/// Command with the line `Reference: PAGE` after its examples, and its subcommands likewise.
fn with_reference(command: Command, parent: &str, parent_page: &'static str, docs: &str) -> Command {
    let path = format!("{parent} {}", command.get_name()).trim_start().to_owned();
    let page = PAGES.iter().find(|(known, _)| *known == path).map_or(parent_page, |(_, page)| page);
    let examples = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    command
        .after_help(format!("{examples}Reference: {docs}{page}"))
        .mut_subcommands(|inner| with_reference(inner, &path, page, docs))
}
