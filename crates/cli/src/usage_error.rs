//! Invalid arguments as one line, with a suggestion.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::foreign_flags::{foreign_flag, one_dash};
use weir_base::nearest::nearest;
use weir_request::secret_mask::MASK;

/// Names of flags in other tools, with weir's names. A suggestion needs weir's name to be a
/// flag of the command.
const FLAG_SYNONYMS: [(&str, &str); 25] = [
    ("concurrency", "connections"),
    ("concurrency", "max-concurrency"),
    ("clients", "connections"),
    ("rps", "rate"),
    ("qps", "rate"),
    ("vus", "users"),
    ("threads-count", "threads"),
    ("iterations", "loops"),
    ("num", "requests"),
    ("count", "requests"),
    ("time", "duration"),
    ("data", "body"),
    ("body-file", "body"),
    ("output", "out"),
    ("json", "format"),
    ("latency", "format"),
    ("disable-keepalive", "no-keepalive"),
    ("ramp", "ramp-up"),
    ("threshold", "slo"),
    ("ca", "cacert"),
    ("user", "auth"),
    ("parallel", "max-concurrency"),
    ("max-requests", "requests"),
    ("retry", "retries"),
    ("keep-alive", "keepalive"),
];

/// Command that the arguments name, by its full name: `weir send list`.
pub(super) fn target_command(mut command: Command, args: &[OsString]) -> Command {
    command.build();
    let mut found = command;
    let mut name = found.get_name().to_owned();
    for arg in args.iter().skip(1).filter_map(|arg| arg.to_str()) {
        if let Some(inner) = found.find_subcommand(arg).cloned() {
            name = format!("{name} {}", inner.get_name());
            found = inner;
        }
    }
    found.bin_name(name)
}

/// Error with a suggestion and the command's help, in one line.
pub(super) fn message(error: &clap::Error, asked: &Command, args: &[OsString]) -> String {
    let text = error.render().to_string();
    let parts: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:")).collect();
    let what = parts.iter().filter(|line| !line.is_empty() && !line.starts_with("tip:"));
    let line = without_value(what.copied().collect::<Vec<_>>().join(" "), error);
    let line = line.trim_start_matches("error: ").trim_end_matches("For more information, try '--help'.").trim_end();
    let name = asked.get_bin_name().unwrap_or("weir");
    if let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && flag.split('=').next() == Some("--on")
    {
        return format!("{line}; agents are for weir load, llm, capacity and study; see '{name} --help'");
    }
    let of_other = || match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if error.kind() == ErrorKind::UnknownArgument => foreign_flag(flag, asked),
        _ => None,
    };
    let foreign = one_dash(args.iter().filter_map(|arg| arg.to_str()), asked).or_else(of_other);
    if let Some(foreign) = foreign {
        return format!("{line}; {foreign}; see '{name} --help'");
    }
    let hint = suggestion(error, asked).map_or_else(String::new, |text| format!("did you mean '{text}'? "));
    format!("{line}; {hint}see '{name} --help'")
}

/// The line without the value of an argument that may be a secret.
fn without_value(line: String, error: &clap::Error) -> String {
    const SECRET_FLAGS: [&str; 7] =
        ["--auth", "--header", "--out-header", "--variable", "--secret", "--key", "--web-token"];
    let (Some(ContextValue::String(flag)), Some(ContextValue::String(value))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    else {
        return line;
    };
    let is_secret = SECRET_FLAGS.iter().any(|known| flag.split([' ', '=']).next() == Some(known));
    if is_secret && !value.is_empty() { line.replace(value.as_str(), MASK) } else { line }
}

/// Suggestion: a flag of this command, a value of the flag, or a command.
fn suggestion(error: &clap::Error, asked: &Command) -> Option<String> {
    let given = |kind: ContextKind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(all) => all.first().cloned(),
        _ => None,
    };
    if error.kind() == ErrorKind::UnknownArgument {
        return suggest_flag(&given(ContextKind::InvalidArg)?, asked);
    }
    given(ContextKind::SuggestedValue).or_else(|| given(ContextKind::SuggestedSubcommand))
}

fn suggest_flag(given: &str, asked: &Command) -> Option<String> {
    let given = given.strip_prefix("--")?.split(['=', ' ']).next()?;
    let known: Vec<&str> =
        asked.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(clap::Arg::get_long).collect();
    let same = |(word, _): &&(&str, &str)| *word == given;
    // A name may have several translations, one per command.
    let foreign = FLAG_SYNONYMS.iter().filter(same).map(|(_, own)| *own).find(|own| known.contains(own));
    let abbreviated = || known.iter().copied().find(|flag| given.len() >= 3 && flag.starts_with(given));
    foreign.or_else(abbreviated).or_else(|| nearest(given, known.iter().copied())).map(|flag| format!("--{flag}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message_of(args: &[&str]) -> String {
        let command = || {
            let load =
                Command::new("load").args(["rate", "requests", "out"].map(|flag| clap::Arg::new(flag).long(flag)));
            let send = Command::new("send").arg(clap::Arg::new("limit").long("limit"));
            Command::new("weir").subcommands([load, send]).disable_help_subcommand(true)
        };
        let error = command().try_get_matches_from(args).expect_err("a mistake");
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        message(&error, &target_command(command(), &args), &args)
    }

    #[test]
    fn a_suggestion_is_a_flag_of_the_same_command_and_the_hint_names_it() {
        for (args, hint) in [
            (["weir", "load", "--rat"], "; did you mean '--rate'? see 'weir load --help'"),
            (["weir", "load", "--requsts"], "; did you mean '--requests'? see 'weir load --help'"),
            (["weir", "load", "--output"], "; did you mean '--out'? see 'weir load --help'"),
            (["weir", "load", "--qps"], "; did you mean '--rate'? see 'weir load --help'"),
            (["weir", "load", "-R"], "found; -R is wrk2's: --rate; see 'weir load --help'"),
            (["weir", "send", "-R"], "found; see 'weir send --help'"),
            (["weir", "load", "--limit"], "found; see 'weir load --help'"),
            (["weir", "send", "--rate"], "found; see 'weir send --help'"),
            (
                ["weir", "send", "--on"],
                "found; agents are for weir load, llm, capacity and study; see 'weir send --help'",
            ),
        ] {
            assert!(message_of(&args).ends_with(hint), "{args:?}: {}", message_of(&args));
        }
        assert!(message_of(&["weir", "lod"]).ends_with("; did you mean 'load'? see 'weir --help'"));
    }
}
