//! `weir man`: manual pages, one per command, from the same definitions as `--help`.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::help;
use weir_command::Messages;
use weir_command::exit;

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:
  weir man ~/.local/share/man/man1
  weir man target/man1";
/// Section of commands in the manual.
const SECTION: &str = "1";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ManArgs {
    /// folder for the pages; created if missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(super) fn run(asked: &ManArgs, messages: &Messages) -> u8 {
    let write = || -> Result<usize, (PathBuf, io::Error)> {
        fs::create_dir_all(&asked.folder).map_err(|error| (asked.folder.clone(), error))?;
        let pages = pages(help::command());
        for page in &pages {
            let file = asked.folder.join(&page.file);
            fs::write(&file, &page.text).map_err(|error| (file, error))?;
        }
        Ok(pages.len())
    };
    match write() {
        Ok(count) => {
            messages.note(&format!("{count} pages written to {}", asked.folder.display()));
            exit::OK
        }
        Err((path, error)) => messages.usage_error(&format!("cannot write {}: {error}", path.display())),
    }
}

/// Manual page of one command.
struct ManPage {
    /// Name of the file: `weir-load.1`.
    file: String,
    /// Page as roff.
    text: String,
}

/// Pages of a command and its visible subcommands.
fn pages(command: Command) -> Vec<ManPage> {
    let mut command = command.disable_help_subcommand(true);
    // Names of subcommands as `weir-load`, and flags of all commands in each.
    command.build();
    let mut found = Vec::new();
    add_pages(&command, "", &mut found);
    found
}

fn add_pages(command: &Command, parent: &str, found: &mut Vec<ManPage>) {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    found.push(ManPage { file: format!("{name}.{SECTION}"), text: page(command, parent) });
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        add_pages(inner, &name, found);
    }
}

/// Page of a command; `parent` is the name of the page above it, empty for the program's.
fn page(command: &Command, parent: &str) -> String {
    let man = Man::new(command.clone()).manual("weir").source(format!("weir {}", env!("CARGO_PKG_VERSION")));
    let has_commands = command.get_subcommands().any(|inner| !inner.is_hide_set());
    let mut bytes = Vec::new();
    // Writing to memory succeeds.
    let _ = man.render_title(&mut bytes);
    let _ = man.render_name_section(&mut bytes);
    let _ = synopsis(command).to_writer(&mut bytes);
    let _ = man.render_description_section(&mut bytes);
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        let _ = man.render_options_section(&mut bytes);
    }
    if has_commands {
        let _ = man.render_subcommands_section(&mut bytes);
    }
    let _ = end(command, parent).to_writer(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Usage line of `--help`: clap's own section lists every flag once more.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    for (index, line) in usage.trim_start_matches("Usage:").lines().enumerate() {
        if index > 0 {
            roff.control("br", []);
        }
        roff.text([bold(line.trim())]);
    }
    roff
}

/// Sections that clap does not have: examples as they are typed, exit codes, other pages.
fn end(command: &Command, parent: &str) -> Roff {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut roff = Roff::new();
    let examples: Vec<&str> =
        help.lines().skip_while(|line| *line != "Examples:").skip(1).take_while(|line| !line.is_empty()).collect();
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
        roff.control("nf", []);
        for line in examples {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    if parent.is_empty() {
        roff.control("SH", ["EXIT STATUS"]);
        for (code, meaning) in exit::MEANINGS {
            roff.control("TP", []);
            roff.text([bold(code.to_string())]);
            roff.text([roman(meaning)]);
        }
    }
    let reference = help.lines().find_map(|line| line.strip_prefix("Reference: "));
    roff.control("SH", ["SEE ALSO"]);
    if !parent.is_empty() {
        roff.text([bold(parent), roman(format!("({SECTION})"))]);
        roff.control("PP", []);
    }
    if let Some(reference) = reference {
        roff.text([roman(format!("Reference: {reference}"))]);
    }
    roff
}
