//! Options of `weir load` as a form, and a form as arguments.

use std::collections::HashSet;

use clap::{Arg, ArgAction, Command};
use serde_json::{Value, json};

use crate::load;
use weir_web::RunForm;

/// Options that the page sets itself, or that are about the terminal and files of the command.
const LEFT_OUT: [&str; 23] = [
    "base",
    "csv",
    "csv-steps",
    "format",
    "help",
    "html",
    "jtl",
    "junit",
    "label",
    "once",
    "out",
    "out-jsonl",
    "save",
    "show-secrets",
    "strict",
    "summary-export",
    "summary-md",
    "tui",
    "until-stdin-ends",
    "verbose",
    "version",
    "web",
    "web-token",
];

/// Options of the form, in the groups of `--help`.
pub(super) fn groups() -> Value {
    let command = load_command();
    let mut groups: Vec<(String, Vec<Value>)> = Vec::new();
    for arg in options(&command) {
        let heading = arg.get_help_heading().unwrap_or("Options").to_owned();
        let at = groups.iter().position(|(known, _)| *known == heading).unwrap_or_else(|| {
            groups.push((heading, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(option(arg));
    }
    groups.into_iter().map(|(name, options)| json!({ "name": name, "options": options })).collect()
}

fn load_command() -> Command {
    let mut command = load::command();
    command.build();
    command
}

fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|arg| arg.get_long().is_some_and(|name| !LEFT_OUT.contains(&name)) && !arg.is_hide_set())
}

fn option(arg: &Arg) -> Value {
    let value = arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
    let least = arg.get_num_args().map_or(1, |range| range.min_values());
    let choices: Vec<String> = match arg.get_action().takes_values() {
        true => arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
        false => Vec::new(),
    };
    json!({
        "name": arg.get_long(),
        "help": arg.get_help().map(|help| form_help(&help.to_string())),
        "value": value,
        "is_switch": !arg.get_action().takes_values(),
        "is_optional": least == 0,
        // A body may have several lines; it is one value.
        "is_repeatable": matches!(arg.get_action(), ArgAction::Append) && arg.get_long() != Some("body"),
        "is_long": arg.get_long() == Some("body"),
        "is_file": value.contains("FILE") || value == "LOG",
        "choices": choices,
    })
}

/// Help of an option on a page, which asks for one value per line and has no exit code.
fn form_help(help: &str) -> String {
    help.replace("; exit with 1 if missed", "").replace(" and exit with 1", "").replace("; repeatable", "")
}

/// Whether an option may stand without its value, which then follows it by an equals sign.
pub(super) fn is_optional_value(name: &str) -> bool {
    let name = name.trim_start_matches("--");
    let command = load_command();
    command
        .get_arguments()
        .any(|arg| arg.get_long() == Some(name) && arg.get_num_args().is_some_and(|range| range.min_values() == 0))
}

/// Arguments of a form after `weir load`.
///
/// # Errors
/// One line with the option that is unknown, or is not one of the form.
pub(super) fn arguments(form: &RunForm) -> Result<Vec<String>, String> {
    let command = load_command();
    let known: HashSet<&str> = options(&command).filter_map(Arg::get_long).collect();
    let mut args = Vec::new();
    if form.url.starts_with('-') {
        return Err(format!("invalid URL '{}'; write e.g. http://localhost:8080/", form.url));
    }
    args.extend((!form.url.is_empty()).then(|| form.url.clone()));
    for (name, value) in &form.options {
        if !known.contains(name.as_str()) {
            return Err(format!("unknown option '{name}' of the form; see 'weir load --help'"));
        }
        if name == "body" && value.as_deref() == Some("@-") {
            return Err("--body @-: a run started here has no stdin; upload a file".to_owned());
        }
        args.push(value.as_ref().map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}")));
    }
    Ok(args)
}

/// Form of the arguments after `weir load`.
///
/// # Errors
/// One line with the invalid argument.
pub(super) fn form_of(args: &[String]) -> Result<RunForm, String> {
    let command = load_command();
    let matches = load::command().try_get_matches_from(args).map_err(|error| crate::one_line(&error, "load"))?;
    let is_given = |id: &str| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
    let values = |id: &str| -> Vec<String> {
        let raw = matches.get_raw(id).into_iter().flatten();
        raw.map(|value| value.to_string_lossy().into_owned()).collect()
    };
    let mut form = RunForm::default();
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        if !is_given(id) {
            continue;
        }
        match arg.get_long() {
            None if id == "url" => form.url = values(id).into_iter().next().unwrap_or_default(),
            None => return Err("script arguments work on the command line only".to_owned()),
            Some("label") => form.label = values(id).into_iter().next().unwrap_or_default(),
            Some(name) if LEFT_OUT.contains(&name) => {}
            Some(name) if !arg.get_action().takes_values() => form.options.push((name.to_owned(), None)),
            Some(name) => {
                let given = values(id);
                form.options.extend(given.is_empty().then(|| (name.to_owned(), None)));
                form.options.extend(given.into_iter().map(|value| (name.to_owned(), Some(value))));
            }
        }
    }
    Ok(form)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_option_of_the_form_is_one_of_the_command() {
        let groups = groups();
        let options: Vec<&Value> =
            groups.as_array().into_iter().flatten().flat_map(|group| group["options"].as_array()).flatten().collect();
        assert!(options.len() > 50, "{}", options.len());
        let of = |name: &str| options.iter().find(|option| option["name"] == name).copied().unwrap_or(&Value::Null);
        assert_eq!((of("spin")["is_switch"].as_bool(), of("rate")["is_switch"].as_bool()), (Some(true), Some(false)));
        assert_eq!(
            [of("header"), of("body"), of("slo")].map(|option| option["is_repeatable"].as_bool()),
            [Some(true), Some(false), Some(true)]
        );
        assert_eq!(
            (of("scenario")["is_file"].as_bool(), of("http2")["is_optional"].as_bool()),
            (Some(true), Some(true))
        );
        assert_eq!(of("out"), &Value::Null);
        let helps = || options.iter().filter_map(|option| option["help"].as_str());
        assert!(helps().all(|help| !help.contains("repeatable") && !help.contains("exit with 1")));
        assert!(of("proto")["help"].as_str().is_some_and(|help| help.ends_with("[default: the server's reflection]")));
        let known = load::flags();
        assert!(
            LEFT_OUT
                .iter()
                .filter(|name| !["help", "version"].contains(name))
                .all(|name| known.iter().any(|flag| flag == name))
        );
        assert!(options.iter().all(|option| known.iter().any(|flag| option["name"] == flag.as_str())));
    }

    #[test]
    fn a_form_becomes_arguments_and_again_a_form() {
        let form = RunForm {
            url: "http://h/x y".to_owned(),
            options: vec![
                ("rate".to_owned(), Some("100".to_owned())),
                ("spin".to_owned(), None),
                ("header".to_owned(), Some("-A: b".to_owned())),
                ("header".to_owned(), Some("C: d".to_owned())),
                ("body".to_owned(), Some("a\nb".to_owned())),
            ],
            label: String::new(),
        };
        let args = arguments(&form).expect("known options");
        assert_eq!(args, ["http://h/x y", "--rate=100", "--spin", "--header=-A: b", "--header=C: d", "--body=a\nb"]);
        let again = form_of(&args).expect("valid arguments");
        let sorted = |form: &RunForm| {
            let mut options = form.options.clone();
            options.sort();
            (form.url.clone(), options)
        };
        assert_eq!(sorted(&again), sorted(&form));
    }

    proptest! {
        /// A form may say anything: what comes out is a URL and options of the form, each of them one argument.
        #[test]
        fn no_form_becomes_another_argument_than_its_options(
            url in "[-a-z:/=]{0,12}",
            options in prop::collection::vec(("(rate|slo|spin|out|web|body|-|)[-=a-z]{0,3}", prop::option::of("[-=@ a-z\n]{0,9}")), 0..5),
        ) {
            let form = RunForm { url: url.clone(), options, label: String::new() };
            let Ok(args) = arguments(&form) else { return Ok(()) };
            let (of_url, rest) = args.split_at(usize::from(!url.is_empty()));
            prop_assert!(of_url.iter().all(|arg| !arg.starts_with('-')));
            prop_assert_eq!(rest.len(), form.options.len());
            for arg in rest {
                let name = arg.strip_prefix("--").and_then(|arg| arg.split('=').next()).unwrap_or_default();
                prop_assert!(["rate", "slo", "spin", "body"].contains(&name), "{}", arg);
            }
        }
    }

    #[test]
    fn what_is_not_in_the_form_is_rejected() {
        let of = |name: &str, value: &str| {
            arguments(&RunForm { options: vec![(name.to_owned(), Some(value.to_owned()))], ..RunForm::default() })
        };
        for name in ["out", "html", "web", "save", "no-such", "", "-x", "until-stdin-ends"] {
            assert!(of(name, "x").is_err_and(|why| why.starts_with("unknown option")), "{name}");
        }
        assert!(of("body", "@-").is_err());
        let url = |url: &str| arguments(&RunForm { url: url.to_owned(), ..RunForm::default() });
        assert!(url("--out=x").is_err() && url("").is_ok_and(|args| args.is_empty()));
    }
}
