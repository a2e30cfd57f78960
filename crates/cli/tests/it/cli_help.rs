//! `--help` of each command: short texts, examples, and a page that has all of its flags.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use weir_testing::Weir;

/// Each command with its pages, relative to `docs/`; a name that ends with a slash is a folder.
const COMMANDS: [(&[&str], &[&str]); 38] = [
    (&["load"], &["load.md", "history.md", "scripts.md", "agents.md", "scripts/", "load/websocket.md"]),
    (&["capacity"], &["capacity.md", "load.md", "agents.md", "scripts/k6.md"]),
    (&["llm"], &["llm.md", "llm/traces.md", "history.md", "live.md", "outputs.md", "agents.md"]),
    (&["replay"], &["replay.md", "load.md"]),
    (&["compare"], &["compare.md"]),
    (&["history"], &["history.md"]),
    (&["trend"], &["history.md"]),
    (&["ui"], &["ui.md"]),
    (&["study"], &["study.md", "agents.md"]),
    (&["study", "new"], &["study.md"]),
    (&["report"], &["cli.md"]),
    (&["run"], &["cli.md", "scripts/k6.md"]),
    (&["import"], &["import.md"]),
    (&["record"], &["record.md"]),
    (&["serve"], &["serve.md"]),
    (&["serve", "work"], &["serve.md", "serve/work.md"]),
    (&["serve", "ratelimit"], &["serve.md", "serve/ratelimit.md"]),
    (&["serve", "functions"], &["serve.md", "serve/functions.md"]),
    (&["serve", "shop"], &["serve.md", "serve/shop.md"]),
    (&["serve", "stream"], &["serve.md", "serve/stream.md"]),
    (&["serve", "llm"], &["serve.md", "serve/llm.md"]),
    (&["serve", "sleep"], &["serve.md", "serve/sleep.md"]),
    (&["serve", "grpc"], &["serve.md", "serve/grpc.md"]),
    (&["serve", "ws"], &["serve.md", "serve/ws.md"]),
    (&["serve", "httpbin"], &["serve.md", "serve/httpbin.md"]),
    (&["gate"], &["gate.md"]),
    (&["gate", "check"], &["gate.md"]),
    (&["gate", "diff"], &["gate.md"]),
    (&["send"], &["send.md", "send/"]),
    (&["send", "status"], &["send.md", "send/"]),
    (&["send", "list"], &["send.md", "send/"]),
    (&["send", "retry"], &["send.md", "send/"]),
    (&["send", "edit"], &["send.md", "send/"]),
    (&["send", "purge"], &["send.md", "send/"]),
    (&["simulate"], &["simulate.md"]),
    (&["doctor"], &["doctor.md"]),
    (&["completions"], &["cli.md"]),
    (&["man"], &["cli.md"]),
];

fn help(command: &[&str]) -> String {
    let output = Weir::new().run(&[command, &["--help"]].concat());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{command:?}");
    output.stdout
}

/// The text of a page, or of all pages in a folder.
fn page(name: &str) -> String {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    if !name.ends_with('/') {
        return std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.is_file()).map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

#[test]
fn the_pages_on_the_command_line_name_every_flag_of_the_help() {
    let common = page("cli.md");
    let mut missing = Vec::new();
    for (command, pages) in COMMANDS {
        let text: String = pages.iter().map(|name| page(name)).chain([common.clone()]).collect();
        let help = help(command);
        // Flags stand before the text, which may name those of other commands.
        let names = help.lines().filter(|line| is_flag(line)).filter_map(|line| line.trim_start().split("  ").next());
        let flags = names.flat_map(|line| line.split([' ', ',', '[', '<'])).filter(|word| word.starts_with("--"));
        missing.extend(
            flags
                .filter(|flag| !text.contains(&format!("`{flag}")))
                .map(|flag| format!("{} {flag}", command.join(" "))),
        );
    }
    assert!(missing.is_empty(), "on no page: {missing:#?}");
}

#[test]
fn every_help_ends_with_examples_and_the_page() {
    let mut wrong = Vec::new();
    for (command, _) in COMMANDS {
        let help = help(command);
        let lines: Vec<&str> = help.trim_end().lines().collect();
        let start = lines.iter().position(|line| *line == "Examples:");
        let Some([_, examples @ .., "", reference]) = start.map(|start| &lines[start..]) else {
            wrong.push(format!("{command:?}: {:?}", lines.last()));
            continue;
        };
        let is_example = |line: &str| line.starts_with("  weir ") && command.iter().all(|word| line.contains(word));
        let address = reference.strip_prefix("Reference: docs/").map(|page| page.split('#').next().unwrap_or(page));
        let is_page = address.is_some_and(|name| !page(name).is_empty());
        let are_examples = examples.len() >= 2 && examples.iter().all(|line| is_example(line));
        if !is_page || !are_examples {
            wrong.push(format!("{command:?}: {:#?}", &lines[lines.len() - 5..]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Fewer than 13 words for a flag, without the default and the possible values, which clap adds or the text has in
/// brackets.
#[test]
fn help_of_a_flag_is_short() {
    let mut long = Vec::new();
    for (command, _) in COMMANDS {
        for entry in entries(&help(command)) {
            let words = entry.split('[').next().unwrap_or_default().split_whitespace().count();
            if words >= 13 {
                long.push(format!("{}: {entry}", command.join(" ")));
            }
        }
    }
    assert!(long.is_empty(), "{long:#?}");
}

/// First words of the texts of flags and commands: verbs, in the imperative.
const VERBS: [&str; 8] = [
    "accept add allow append apply assume begin block break busy-wait change check close compare compress",
    "connect continue count dead-letter delay delete deliver disable disturb double end evaluate exclude exit",
    "expire explain export fail fill find follow forward generate give hedge hold ignore imitate",
    "import include keep label let limit list listen load log look make mask match measure multiply offer",
    "open overwrite pack pass pause ping play present print put queue read record redirect reject remove",
    "repeat replace replay report request requeue require retry run save search seed select send serve",
    "set share show shuffle simulate skip slow space speed spend split stall start stop stream support",
    "take test time trace track trust turn use validate vary wait weight write",
];

fn is_verb(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default().to_lowercase();
    VERBS.iter().flat_map(|line| line.split(' ')).any(|verb| verb == first)
}

#[test]
fn help_of_flags_and_commands_begins_with_a_verb() {
    let mut other = Vec::new();
    for (command, _) in COMMANDS {
        let help = help(command);
        let about = help.lines().next().unwrap_or_default().to_owned();
        let texts = entries(&help).into_iter().chain([about]).filter(|text| !is_verb(text));
        other.extend(texts.map(|text| format!("{}: {text}", command.join(" "))));
    }
    assert!(other.is_empty(), "begins with another word than those of VERBS: {other:#?}");
}

/// Whether a flag begins on this line; the text of one may be wrapped before the name of another.
fn is_flag(line: &str) -> bool {
    let text = line.trim_start();
    text.starts_with('-') && !text.starts_with("- ") && (1..=6).contains(&(line.len() - text.len()))
}

/// The text of each flag: on the line of the flag after two spaces, or indented on the lines below it.
fn entries(help: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_in_flag = false;
    for line in help.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if is_flag(line) {
            is_in_flag = true;
            found.push(text.split_once("  ").map_or("", |(_, words)| words.trim()).to_owned());
        } else if is_in_flag && indent > 6 && !text.starts_with("- ") && !text.starts_with("Possible values:") {
            if let Some(entry) = found.last_mut() {
                entry.push(' ');
                entry.push_str(text);
            }
        } else {
            is_in_flag = false;
        }
    }
    found
}

#[test]
fn the_program_shows_examples_then_its_commands_under_headings() {
    let help = help(&[]);
    let headings =
        ["Examples:", "Measure:", "Judge:", "Scenarios:", "Serve, protect, deliver:", "This machine:", "Help:"];
    let places: Vec<_> = headings.iter().map(|heading| help.lines().position(|line| line == *heading)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {help}");
    for (command, _) in COMMANDS.iter().filter(|(command, _)| command.len() == 1) {
        let rows = help.lines().filter(|line| line.trim_start().split(' ').next() == Some(command[0]));
        assert_eq!(rows.filter(|line| line.starts_with("  ")).count(), 1, "{command:?}: {help}");
    }
    assert!(help.trim_end().ends_with("Reference: docs/README.md"), "{help}");
}

#[test]
fn the_short_help_of_a_command_with_many_flags_is_one_screen() {
    for command in ["load", "llm", "replay", "capacity"] {
        let short = help_about(&[command, "-h"]);
        let flags = entries(&short);
        assert!(flags.len() <= 25 && short.lines().count() <= 45, "{command}: {} flags\n{short}", flags.len());
        assert!(short.lines().all(|line| line.chars().count() <= 80), "{short}");
        assert!(flags.iter().all(|text| is_verb(text)), "{flags:#?}");
        // The last lines name what to type for more, and the page.
        let more = short.lines().find_map(|line| line.split_once("; one group: weir ")).unwrap().1;
        let group = help_about(&more.split(' ').collect::<Vec<_>>());
        assert!(entries(&group).len() > 1 && short.contains(&format!("weir {command} --help;")), "{short}");
        assert!(short.trim_end().ends_with(&format!("Reference: docs/{command}.md")), "{short}");
        assert!(entries(&help(&[command])).len() > 35, "{command}");
        // Wherever -h is.
        assert_eq!(help_about(&[command, "http://localhost:1/", "-h"]), short);
        assert_eq!(help_about(&["help", command]), help(&[command]));
    }
    assert_eq!(help_about(&["serve", "llm", "-h"]), help(&["serve", "llm"]));
}

#[test]
fn one_group_of_the_flags_is_shown_by_its_name() {
    let grpc = help_about(&["load", "--help", "grpc"]);
    assert!(grpc.contains("--protoset") && grpc.contains("gRPC:") && !grpc.contains("--rate"), "{grpc}");
    let closed = help_about(&["load", "--help", "closed"]);
    assert!(closed.contains("--connections") && closed.contains("--loops") && !closed.contains("--proto"), "{closed}");
    assert_eq!(help_about(&["load", "--help", "stream"]), help_about(&["load", "--help", "Streams"]));
    let whole = help_about(&["--help"]);
    let line = whole.lines().find_map(|line| line.trim_start().strip_prefix("weir load --help ")).unwrap();
    let (sample, topics) = line.split_once(" print one group of the options: ").unwrap();
    for topic in topics.split(", ").filter(|topic| *topic != "...").chain([sample.trim()]) {
        help_about(&["load", "--help", topic]);
    }
    // A URL that was there before is no topic.
    assert_eq!(help_about(&["load", "--help", "http://localhost:1/"]), help(&["load"]));
    let unknown = Weir::new().run(&["load", "--help", "coffee"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (2, ""));
    assert!(unknown.stderr.contains("weir load has no help about 'coffee'; choose agents, "), "{}", unknown.stderr);
}

fn help_about(args: &[&str]) -> String {
    let output = Weir::new().run(args);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
    output.stdout
}

/// Commands and flags that the table of other tools' files names exist.
#[test]
fn what_takes_files_of_other_tools_exists() {
    let text = help_about(&["help", "from"]);
    let rows = text.lines().filter(|line| line.starts_with("  "));
    let commands: Vec<&str> = rows.filter_map(|line| line.split_once(" weir ").map(|(_, rest)| rest)).collect();
    assert!(commands.len() >= 16, "{text}");
    for line in commands.iter().filter(|line| !line.starts_with("takes it")) {
        let mut words = line.split(' ');
        let help = help(&[words.next().unwrap()]);
        for flag in words.filter(|word| word.starts_with('-')) {
            let is_flag = |shown: &str| shown.trim_start().split([' ', ',', '[', '<']).any(|word| word == flag);
            assert!(help.lines().filter(|shown| shown.trim_start().starts_with('-')).any(is_flag), "{line}: {flag}");
        }
    }
}
