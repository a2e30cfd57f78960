//! Commands in `weir --help`, under headings by situation.

use std::fmt::Write;

use clap::Command;

/// Each visible command of the program, under one heading.
const HEADINGS: [(&str, &[&str]); 5] = [
    ("Measure", &["load", "llm", "replay", "capacity", "run"]),
    ("Judge", &["compare", "study", "history", "trend", "report", "ui"]),
    ("Scenarios", &["import", "record"]),
    ("Serve, protect, deliver", &["serve", "gate", "send", "simulate"]),
    ("This machine", &["doctor", "completions", "man"]),
];

/// Width of the column of names.
const NAME_WIDTH: usize = 13;

const EXAMPLES: &str = "Examples:
  weir serve httpbin --port 8080
  weir load http://localhost:8080/ --rate 200 -d 10s
";

const TOPICS: &str = "  weir help from          find the command for your file: locustfile, k6, wrk, JMX, HAR, ...
  weir help COMMAND       print all options of a command; weir COMMAND -h has the usual ones
  weir load --help grpc   print one group of the options: open, scenario, connection, grpc, ...
";

/// Program with its commands under their headings, and two examples above them.
pub(super) fn with_headings(command: Command) -> Command {
    let mut text = String::new();
    for (heading, names) in HEADINGS {
        let _ = writeln!(text, "{heading}:");
        // Some builds lack a few commands.
        for inner in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:NAME_WIDTH$}{about}", inner.get_name());
        }
        text.push('\n');
    }
    let reference = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{EXAMPLES}\n{text}Help:\n{TOPICS}\nOptions:\n{{options}}\n\n{reference}"
    );
    // Manual pages take the examples from there.
    command.help_template(template).after_help(format!("{EXAMPLES}\n{reference}"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    #[test]
    fn each_visible_command_is_under_one_heading() {
        let command = Cli::command();
        let mut shown: Vec<&str> = HEADINGS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut visible: Vec<&str> =
            command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(Command::get_name).collect();
        shown.sort_unstable();
        visible.sort_unstable();
        assert_eq!(shown, visible);
        assert!(shown.iter().all(|name| name.len() < NAME_WIDTH));
    }
}
