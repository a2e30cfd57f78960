//! Command line with the page of each command at the end of its `--help`.

use clap::{Command, CommandFactory};

use super::Cli;

/// Base of the addresses of pages, with a final slash.
const DOCS: &str = "docs/";

/// Page of each command, relative to [`DOCS`]; a command without an entry has the page of its parent.
const PAGES: [(&str, &str); 34] = [
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
    with_reference(Cli::command(), "", "")
}

/// Command with the line `Reference: PAGE` after its examples, unless they have one, and its subcommands likewise.
fn with_reference(command: Command, parent: &str, parent_page: &'static str) -> Command {
    let path = format!("{parent} {}", command.get_name()).trim_start().to_owned();
    let page = PAGES.iter().find(|(known, _)| *known == path).map_or(parent_page, |(_, page)| page);
    let examples = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    let command = match examples.contains("Reference: ") {
        true => command,
        false => command.after_help(format!("{examples}Reference: {DOCS}{page}")),
    };
    command.mut_subcommands(|inner| with_reference(inner, &path, page))
}
