//! Flags of most runs: `-h` of a command with many flags has these alone, `--help` has all.

use clap::{Arg, Command};
use weir_command::exit;

/// Flags in `-h` of each command that hides others there, separated by spaces.
const USUAL_FLAGS: [(&str, &str); 4] = [
    (
        "load",
        "connections requests duration users ramp-up rate stages scenario data think check method header \
         body auth timeout insecure web tui warmup slo format out html junit",
    ),
    (
        "llm",
        "model api api-key-env header timeout dataset input-tokens output-tokens trace concurrency rate \
         stages sweep capacity num-prompts duration warmup goodput slo tokenizer web tui format out html",
    ),
    (
        "replay",
        "log-pattern from to filter unsafe recorded-headers dry-run target header timeout speed requests \
         duration warmup insecure slo format out html web tui",
    ),
    (
        "capacity",
        "slo closed from to precision step-time max-time warmup pid scenario data think check method \
         header body auth timeout insecure format out html",
    ),
];

/// Exit codes in `-h` of runs.
const EXIT_CODES: &str =
    "Exit codes: 0 done, 1 an objective is missed, 2 bad usage, 3 no success; --strict: 3 if not trusted\n";

/// Each exit code with its meaning, as lines of help.
pub(super) fn exit_codes() -> String {
    let lines = exit::MEANINGS.iter().map(|(code, meaning)| format!("  {code:<4} {meaning}\n"));
    lines.fold("Exit codes:\n".to_owned(), |all, line| all + &line)
}

/// Command whose `-h` has the flags of most runs alone, if it has many.
pub(super) fn with_usual_flags(command: Command) -> Command {
    let Some((name, usual)) = USUAL_FLAGS.iter().find(|(name, _)| *name == command.get_name()) else { return command };
    let is_named = |long: &str| usual.split(' ').any(|flag| flag == long);
    let is_usual = |arg: &Arg| arg.is_positional() || arg.get_long().is_some_and(is_named);
    let all = command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional()).count();
    let more =
        format!("All {all} options: weir {name} --help; one group: weir {name} --help TOPIC, e.g. connection, outputs");
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (examples, reference) = examples.split_once("\n\n").unwrap_or((&examples, ""));
    // A search has a meaning of its own for --strict.
    let is_run = *name != "capacity";
    let (codes, all_codes) = if is_run { (EXIT_CODES, exit_codes() + "\n") } else { ("", String::new()) };
    let short = format!("{examples}\n\n{codes}{more}\n{reference}");
    let long = format!("{all_codes}{examples}\n\n{reference}");
    command
        .mut_args(|arg| if is_usual(&arg) { arg } else { arg.hide_short_help(true) })
        .after_help(short)
        .after_long_help(long)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    #[test]
    fn the_usual_flags_exist_and_are_25_at_most() {
        let command = Cli::command();
        for (name, usual) in USUAL_FLAGS {
            let inner = command.find_subcommand(name).expect("a command");
            let is_missing = |flag: &&str| !inner.get_arguments().any(|arg| arg.get_long() == Some(*flag));
            let missing: Vec<_> = usual.split(' ').filter(is_missing).collect();
            assert!(missing.is_empty() && usual.split(' ').count() <= 25, "{name}: {missing:?}");
        }
    }
}
