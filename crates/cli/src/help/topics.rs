//! `weir load --help TOPIC`: the flags under some of a command's headings.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::{Arg, Command};

use super::short_help::exit_codes;
use crate::usage_error::target_command;

/// Words of headings that say nothing.
const FILL_WORDS: [&str; 5] = ["as", "it", "while", "runs", "script"];

/// Help about the topic that follows `--help`, or why there is none; None if no topic is asked for.
pub(crate) fn topic_help(command: impl FnOnce() -> Command, args: &[OsString]) -> Option<Result<String, String>> {
    let at = args.iter().take_while(|arg| *arg != "--").position(|arg| arg == "--help")?;
    let topic = args.get(at + 1)?.to_str()?;
    // A URL or a file was there before --help was added.
    if topic.is_empty() || !topic.chars().all(|c| c.is_ascii_alphanumeric()) {
        return None;
    }
    let command = target_command(command(), args.get(..at)?);
    let headings = headings(&command);
    if headings.is_empty() {
        return None;
    }
    let chosen: Vec<&str> = headings.iter().copied().filter(|heading| is_about(heading, topic)).collect();
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    if chosen.is_empty() {
        let topics: Vec<String> = headings.iter().filter_map(|heading| words(heading).next()).collect();
        let topics: Vec<&str> = BTreeSet::from_iter(topics.iter().map(String::as_str)).into_iter().collect();
        return Some(Err(format!("{name} has no help about '{topic}'; choose {}", topics.join(", "))));
    }
    Some(Ok(rendered(&command, &name, &chosen)))
}

/// Headings of the command's flags, in their order.
fn headings(command: &Command) -> Vec<&str> {
    let mut found = Vec::new();
    for heading in command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_help_heading) {
        if !found.contains(&heading) {
            found.push(heading);
        }
    }
    found
}

/// Words of a heading, in lower case: `closed`, `loop`, `ab`, `wrk`.
fn words(heading: &str) -> impl Iterator<Item = String> {
    let words = heading.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).filter(|word| !FILL_WORDS.contains(&word.as_str()))
}

fn is_about(heading: &str, topic: &str) -> bool {
    let topic = topic.to_ascii_lowercase();
    words(heading).any(|word| word == topic || (topic.len() > 2 && word.starts_with(&topic)))
}

/// Help of the command with the flags of these headings alone.
fn rendered(command: &Command, name: &str, chosen: &[&str]) -> String {
    let is_chosen = |arg: &Arg| arg.get_help_heading().is_some_and(|heading| chosen.contains(&heading));
    let mut shown = Command::new("weir").disable_help_flag(true).help_template("{all-args}");
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && is_chosen(arg)) {
        let heading = arg.get_help_heading().unwrap_or_default().to_owned();
        shown = shown.arg(alone(arg).help_heading(heading));
    }
    let has_exit_codes = ["--slo", "--strict"].iter().all(|flag| {
        let long = flag.trim_start_matches('-');
        shown.get_arguments().any(|arg| arg.get_long() == Some(long))
    });
    let codes = if has_exit_codes { format!("\n{}", exit_codes()) } else { String::new() };
    format!("{}{codes}\nAll options: {name} --help\n", shown.render_help())
}

/// The flag without what it needs or excludes: those are not there.
fn alone(arg: &Arg) -> Arg {
    let mut shown = Arg::new(arg.get_id().clone()).action(arg.get_action().clone());
    if let Some(long) = arg.get_long() {
        shown = shown.long(long.to_owned());
    }
    if let Some(short) = arg.get_short() {
        shown = shown.short(short);
    }
    if let Some(names) = arg.get_value_names() {
        shown = shown.value_names(names.to_vec());
    }
    if let Some(range) = arg.get_num_args() {
        shown = shown.num_args(range);
    }
    shown
        .require_equals(arg.is_require_equals_set())
        .hide_default_value(arg.is_hide_default_value_set())
        .default_values(arg.get_default_values().to_vec())
        .help(arg.get_help().cloned().unwrap_or_default())
        .value_parser(arg.get_value_parser().clone())
}
