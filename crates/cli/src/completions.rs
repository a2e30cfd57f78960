//! `weir completions`: completion scripts of shells.

use clap::{Arg, ArgGroup, Args, Command, Id};
use clap_complete::Shell;

use super::help;
use weir_command::Messages;
use weir_command::exit;
use weir_command::stdout::print;

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:
  weir completions bash > ~/.local/share/bash-completion/completions/weir
  weir completions fish > ~/.config/fish/completions/weir.fish";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompletionsArgs {
    /// shell that reads the script
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

pub(super) fn run(asked: &CompletionsArgs, messages: &Messages) -> u8 {
    let script = script(asked.shell);
    print(&script, false).map_or_else(|why| messages.usage_error(&why), |()| exit::OK)
}

fn script(shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut completed(&help::command()), "weir", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Command with what a completion needs, and without hidden flags and subcommands: clap's generators list those, too.
fn completed(command: &Command) -> Command {
    let shown = command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(completed);
    let args: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    let is_shown = |id: &&Id| args.iter().any(|arg| arg.get_id() == *id);
    // Flags may name a group that they need, or exclude.
    let groups = command.get_groups().map(|group| {
        let members: Vec<Id> = group.get_args().filter(is_shown).cloned().collect();
        ArgGroup::new(group.get_id().clone()).args(members).multiple(true)
    });
    let copy = Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .args(args.iter().copied().cloned())
        .groups(groups)
        .subcommands(shown);
    match command.get_version() {
        Some(version) => copy.version(version.to_owned()).propagate_version(true),
        None => copy,
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_completes_every_visible_command_and_no_hidden_one() {
        let visible = ["load", "capacity", "serve", "completions"];
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for command in visible {
                assert!(script.contains(command), "{shell}: {command}");
            }
            assert!(script.contains("ramp-up"), "{shell}");
            assert!(!script.contains(weir_agents::AGENT_COMMAND), "{shell}");
        }
    }
}
