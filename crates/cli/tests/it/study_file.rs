//! Errors in a study file: line and column, and a remedy; the schema rejects the same files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::Value;
use weir_testing::{Output, Weir};

const FINE: &str = r#"question = "Which?"
[variants.a]
command = ["weir", "serve", "work", "--port", "{port}"]
[variants.b]
command = "b {port} {n}"
ready = { line = "listening" }
environment = { N = "{n}" }
[loads.main]
url = "http://127.0.0.1:{port}/"
rate = "{n}"
duration = "1s"
[sweep]
n = [1, 2]
"#;

fn check(text: &str) -> Output {
    let weir = Weir::new();
    weir.write("s.toml", text);
    weir.run(&["study", "s.toml", "--check"])
}

fn schema() -> jsonschema::Validator {
    let text = include_str!("../../../../docs/schema/study.schema.json");
    jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
}

fn as_json(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap()
}

#[test]
fn a_valid_file_is_summed_up() {
    let output = check(FINE);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "s.toml: 2 variants x 2 points x 10 rounds: 40 measurements: fine\n"),
        "{output:?}"
    );
    assert!(schema().is_valid(&as_json(FINE)));
    assert!(schema().is_valid(&as_json(include_str!("../../../../crates/lab/study/src/file/example.toml"))));
}

#[test]
fn thresholds_of_a_mix_file_are_named_as_not_used() {
    let weir = Weir::new();
    weir.write("one.hurl", "GET /\nHTTP 200\n");
    weir.write(
        "mix.toml",
        "[[scenario]]\nfile = \"one.hurl\"\n[thresholds]\n\"p99\" = \"< 300ms\"\nabort = { when = \"errors > 20%\" }\n",
    );
    let load = "url = \"http://127.0.0.1:{port}\"\nscenario = \"mix.toml\"";
    weir.write("s.toml", FINE.replace("url = \"http://127.0.0.1:{port}/\"", load));
    let output = weir.run(&["study", "s.toml", "--check"]);
    assert_eq!(output.code, 0, "{output:?}");
    let warning = "the mix file's thresholds are not used: \"p99 < 300ms\", abort";
    assert_eq!(output.stderr.matches(warning).count(), 1, "once for all variants and points: {output:?}");
}

#[test]
fn the_studies_of_the_repository_are_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let entries = |path: &std::path::Path| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries(folder.as_ref()).filter(|path| path.is_dir());
    let files =
        folders.flat_map(|folder| entries(&folder)).filter(|path| path.extension().is_some_and(|it| it == "toml"));
    for path in files {
        for form in [["--check", "--quiet"], ["--check", "--quick"]] {
            let output = Weir::new().run(&[["study", path.to_str().unwrap()], form].concat());
            assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{path:?}");
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(schema().is_valid(&as_json(&text)), "{path:?}");
    }
}

#[test]
fn errors_have_a_position_and_a_remedy() {
    for (right, wrong, place, words) in [
        ("[sweep]", "[sweeep]", "12:2", "did you mean \"sweep\"?"),
        ("n = [1, 2]", "n = []", "13:5", "no values"),
        ("n = [1, 2]", "n = [1, 1]", "13:9", "duplicate value 1"),
        ("n = [1, 2]", "port = [1, 2]", "13:8", "{port} is reserved"),
        ("rate = \"{n}\"", "rate = \"{m}\"", "10:8", "unknown placeholder {m}"),
        ("rate = \"{n}\"", "rat = 5", "10:7", "did you mean \"rate\"?"),
        ("rate = \"{n}\"", "rate = \"fast\"", "10:8", "fast"),
        ("rate = \"{n}\"", "users = 0", "10:9", "--users"),
        ("rate = \"{n}\"", "format = \"json\"", "10:10", "the study sets it"),
        ("n = [1, 2]", "n = [0, 2]", "10:8", "invalid rate 0"),
        ("url = \"http://127.0.0.1:{port}/\"", "url = \"http://\"", "9:7", "URL"),
        ("url = \"http://127.0.0.1:{port}/\"\n", "", "8:1", "a load without url"),
        ("command = \"b {port} {n}\"", "command = []", "5:11", "the command is empty"),
        ("command = \"b {port} {n}\"\n", "", "4:1", "no command"),
        ("command = \"b {port} {n}\"", "command = 5", "5:11", "string"),
        ("{ line = \"listening\" }", "\"soon\"", "6:9", "readiness check"),
        ("{ line = \"listening\" }", "{ lin = \"x\" }", "6:11", "did you mean \"line\"?"),
        ("question = \"Which?\"", "repeats = 0", "1:11", "write one from 1 to"),
        ("question = \"Which?\"", "min_effect = \"3\"", "1:14", "write e.g. \"3%\""),
        ("question = \"Which?\"", "limits = { memory = 5 }", "1:21", "size"),
        ("question = \"Which?\"", "limits = { cpus = 0 }", "1:19", "from 1"),
        ("question = \"Which?\"", "timeouts = { ready = \"5\" }", "1:22", "time"),
        ("[variants.b]", "[variants.\"b/c\"]", "4:11", "name"),
        ("environment = { N = \"{n}\" }", "folder = \"no-such\"", "7:10", "folder \"no-such\" does not exist"),
        ("environment = { N = \"{n}\" }", "kind = \"client\"", "6:9", "a client has no readiness check"),
        ("environment = { N = \"{n}\" }", "values = { n = 1 }", "7:16", "{n} is already defined"),
        ("[sweep]", "[values]\nn = 1\n[sweep]", "13:5", "{n} is already defined"),
        ("[sweep]", "[services.a]\ncommand = \"x\"\n[sweep]", "12:11", "a variant has it, too"),
        ("question", "question = \"a\"\nquestion", "2:1", "TOML"),
        ("rate = \"{n}\"", "rate = 1\nwhen = { m = [1] }", "11:14", "unknown parameter of the sweep"),
        ("rate = \"{n}\"", "rate = 1\nwhen = { n = [1, 3] }", "11:18", "not among the parameter's values"),
        ("rate = \"{n}\"", "rate = 1\nwhen = { n = 2 }", "1:1", "no load is applied at n=1"),
        ("question = \"Which?\"", "quick = 1", "1:9", "table"),
        ("[sweep]", "[quick]\nrepeats = 0\n[sweep]", "13:11", "write one from 1 to"),
        ("[sweep]", "[quick]\nrepeat = 1\n[sweep]", "13:1", "did you mean \"repeats\"?"),
    ] {
        assert!(FINE.contains(right), "{right}");
        let output = check(&FINE.replacen(right, wrong, 1));
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{wrong}: {output:?}");
        let line = output.stderr.lines().find(|line| line.contains(words));
        let line = line.unwrap_or_else(|| panic!("{wrong}: {words}: {}", output.stderr));
        assert!(line.starts_with(&format!("weir: s.toml:{place}: ")), "{wrong}: {place}: {line}");
    }
}

#[test]
fn a_quick_study_is_the_file_with_the_overrides_of_quick_or_shortened() {
    let weir = Weir::new();
    let contents = |text: &str, flag: &str| {
        weir.write("s.toml", text);
        let output = weir.run(&["study", "s.toml", "--check", flag]);
        assert_eq!(output.code, 0, "{output:?}");
        output.stdout
    };
    let shortened = contents(FINE, "--quick");
    assert!(shortened.contains("2 variants x 2 points x 3 rounds"), "{shortened}");
    let own = format!("{FINE}[quick]\nrepeats = 4\nsweep.n = [1, 2, 3, 4, 5]\nvariants.b.environment.M = \"1\"\n");
    let (whole, quick) = (contents(&own, "--quiet"), contents(&own, "--quick"));
    assert!(whole.contains("2 variants x 2 points x 10 rounds"), "{whole}");
    assert!(quick.contains("2 variants x 5 points x 4 rounds"), "{quick}");
    assert!(schema().is_valid(&as_json(&own)));
}

#[test]
fn a_file_without_variants_or_loads_is_rejected() {
    let output = check("question = \"?\"\n");
    assert!(output.stderr.contains("no variant"), "{output:?}");
    let output = check("[variants.a]\ncommand = \"x\"\n");
    assert!(output.stderr.contains("no load"), "{output:?}");
    let output = Weir::new().run(&["study", "nothing.toml"]);
    assert!(output.code == 2 && output.one_line().contains("nothing.toml"), "{output:?}");
}

#[test]
fn the_schema_rejects_what_the_reader_rejects() {
    let schema = schema();
    for (right, wrong) in [
        ("[sweep]", "[sweeep]"),
        ("n = [1, 2]", "n = []"),
        ("command = \"b {port} {n}\"", "command = []"),
        ("command = \"b {port} {n}\"", "command = 5"),
        ("command = \"b {port} {n}\"\n", ""),
        ("{ line = \"listening\" }", "\"soon\""),
        ("question = \"Which?\"", "repeats = 0"),
        ("question = \"Which?\"", "limits = { memory = 5 }"),
        ("question = \"Which?\"", "timeouts = { ready = \"5\" }"),
        ("url = \"http://127.0.0.1:{port}/\"\n", ""),
        ("rate = \"{n}\"", "rat = 5"),
        ("environment = { N = \"{n}\" }", "kind = \"server\""),
    ] {
        assert!(!schema.is_valid(&as_json(&FINE.replacen(right, wrong, 1))), "{wrong}");
    }
}

/// A load takes the flags of `weir load`; the schema has all of them.
#[test]
fn the_schema_has_the_flags_of_a_load() {
    let help = Weir::new().run(&["load", "--help"]).stdout;
    // The text of a flag is further to the right, and may begin with the name of another.
    let lines =
        help.lines().filter_map(|line| line.strip_prefix("  ")).map(|line| line.strip_prefix("    ").unwrap_or(line));
    let lines = lines.filter(|line| line.starts_with('-') && !line.starts_with("- "));
    // A value that may be left out stands behind the flag: `--http2[=<only>]`.
    let flags = lines.filter_map(|line| line.split_once("--")?.1.split([' ', '[']).next());
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/schema/study.schema.json")).unwrap();
    let known = schema["$defs"]["load"]["properties"].as_object().unwrap();
    // Flags of the study itself, and of all commands.
    const OTHERS: [&str; 4] = ["help", "version", "quiet", "log-format"];
    for flag in flags.filter(|flag| !OTHERS.contains(flag)) {
        let is_allowed = !weir_study::DISALLOWED_FLAGS.contains(&flag);
        assert_eq!(known.contains_key(&flag.replace('-', "_")), is_allowed, "{flag}");
    }
}
