//! `-h` of a command with many flags: the usual ones, a line each, on one screen of 80 columns.

use std::ffi::OsString;
use std::fmt::Write;

use clap::{Arg, Command};
use weir_command::exit;

use super::usual_flags::{FlagGroup, SHORT_HELPS, ShortHelp};
use crate::usage_error::target_command;

/// Examples that are shown.
const EXAMPLES: usize = 2;
/// Exit codes of a run. A search has a meaning of its own for 1.
const EXIT_CODES: &str = "Exit codes: 0 done, 1 an objective is missed, 2 bad usage, 3 no success\n";

/// Each exit code with its meaning, as lines of help.
pub(super) fn exit_codes() -> String {
    let lines = exit::MEANINGS.iter().map(|(code, meaning)| format!("  {code:<4} {meaning}\n"));
    lines.fold("Exit codes:\n".to_owned(), |all, line| all + &line)
}

/// Command with the exit codes in its help, if it is one of the runs.
pub(super) fn with_exit_codes(command: Command) -> Command {
    let name = command.get_name();
    if name == "capacity" || !SHORT_HELPS.iter().any(|help| help.command == name) {
        return command;
    }
    let rest = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    command.after_help(format!("{}\n{rest}", exit_codes()))
}

/// Short help, if these arguments, which ask for help, are for that of a command with many flags.
pub(super) fn short_help(command: Command, args: &[OsString]) -> Option<String> {
    let is_long = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--help");
    let is_short = !is_long && args.get(1).is_some_and(|arg| arg != "help");
    let command = target_command(command, args);
    // `weir serve llm` is another command than `weir llm`.
    let name = command.get_bin_name()?.strip_prefix("weir ")?;
    let help = SHORT_HELPS.iter().find(|help| is_short && help.command == name)?;
    Some(rendered(&command, help))
}

fn rendered(command: &Command, help: &ShortHelp) -> String {
    let name = help.command;
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let (argument, what) = help.argument;
    let mut text = format!("{about}\n\nUsage: weir {name} {}\n  {argument}  {what}\n\n", help.usage);
    for group in &help.groups {
        add_group(&mut text, command, group);
    }
    let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples = end.lines().skip_while(|line| *line != "Examples:").take(1 + EXAMPLES);
    examples.for_each(|line| {
        let _ = writeln!(text, "{line}");
    });
    let all = command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional()).count();
    let codes = if name == "capacity" { "" } else { EXIT_CODES };
    let reference = end.lines().last().unwrap_or_default();
    let topic = help.topic;
    let _ = write!(
        text,
        "\n{codes}All {all} options: weir {name} --help; one group: weir {name} --help {topic}\n{reference}\n"
    );
    text
}

fn add_group(text: &mut String, command: &Command, (heading, flags): &FlagGroup) {
    let find = |flag: &str| command.get_arguments().find(|arg| arg.get_long() == Some(flag));
    let rows: Vec<(String, &str)> =
        flags.iter().filter_map(|(flag, what)| find(flag).map(|arg| (spelling(arg), *what))).collect();
    let width = rows.iter().map(|(spelling, _)| spelling.len()).max().unwrap_or_default();
    let _ = writeln!(text, "{heading}:");
    for (spelling, what) in rows {
        let _ = writeln!(text, "  {spelling:width$}  {what}");
    }
    text.push('\n');
}

/// `-c, --connections <N>`, or with space where a flag has no letter.
fn spelling(arg: &Arg) -> String {
    let letter = arg.get_short().map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
    format!("{letter}{arg}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn commands() -> Vec<(Command, &'static ShortHelp)> {
        let mut command = super::super::command();
        command.build();
        SHORT_HELPS
            .iter()
            .map(|help| (command.find_subcommand(help.command).expect("a command").clone(), help))
            .collect()
    }

    #[test]
    fn the_usual_flags_exist_once_and_are_25_at_most() {
        for (command, help) in commands() {
            let flags: Vec<&str> =
                help.groups.iter().flat_map(|(_, flags)| flags.iter()).map(|(flag, _)| *flag).collect();
            let is_missing = |flag: &&str| !command.get_arguments().any(|arg| arg.get_long() == Some(*flag));
            let missing: Vec<_> = flags.iter().copied().filter(is_missing).collect();
            assert!(missing.is_empty() && flags.len() <= 25, "{}: {missing:?}, {}", help.command, flags.len());
            assert_eq!(flags.iter().collect::<BTreeSet<_>>().len(), flags.len(), "{}", help.command);
        }
    }

    #[test]
    fn the_short_help_is_one_screen_of_80_columns() {
        for (command, help) in commands() {
            let text = rendered(&command, help);
            // An installed page has a path of any length.
            let wide: Vec<&str> =
                text.lines().filter(|line| line.chars().count() > 80 && !line.starts_with("Reference: ")).collect();
            assert!(wide.is_empty(), "{}: {wide:#?}", help.command);
            assert!(text.lines().count() <= 45, "{}: {} lines", help.command, text.lines().count());
        }
    }

    /// A default in a short text is that of the flag: clap's, or the one in the flag's own help.
    #[test]
    fn short_texts_have_the_defaults_of_the_flags() {
        for (command, help) in commands() {
            for (flag, text) in help.groups.iter().flat_map(|(_, flags)| flags.iter()) {
                let Some((_, default)) = text.split_once("[default: ") else { continue };
                let arg = command.get_arguments().find(|arg| arg.get_long() == Some(*flag)).expect("a flag");
                let own = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let own = own.split_once("[default: ").map_or("", |(_, text)| text).to_owned();
                let of_clap: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
                let default = default.trim_end_matches(']');
                let first = default.split([';', ' ']).next().unwrap_or(default);
                let is_same = of_clap.iter().any(|value| value == default) || own.starts_with(first);
                assert!(is_same, "{} --{flag}: {text} | {own} {of_clap:?}", help.command);
            }
        }
    }
}
