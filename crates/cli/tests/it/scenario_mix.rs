//! Mix files, objectives on scenarios and steps, and conditions that end a run early.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use weir_measure::Run;
use weir_testing::{Reply, Server, Weir};

/// Folder with two scenarios and a mix of them.
fn mix(server: &Server, text: &str) -> Weir {
    let folder = Weir::new();
    folder.write("shop.hurl", "# @name list\nGET /items\nHTTP 200\n\n# @name buy\nPOST /orders\n`x`\nHTTP 200\n");
    folder.write("browse.hurl", "GET /browse/{{part}}\nHTTP 200\n");
    folder.write("mix.toml", text.replace("BASE", &server.url("")));
    folder
}

fn run_of(folder: &Weir, args: &[&str]) -> Run {
    let output = folder.run(&[&["load", "-s", "mix.toml", "--format", "json"], args].concat());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}: {}", output.stdout);
    output.json()
}

/// Lines on stderr of a call that ends with code 2.
fn rejected(folder: &Weir, args: &[&str]) -> Vec<String> {
    let output = folder.run(&[&["load", "-s", "mix.toml"], args].concat());
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}: {}", output.stderr);
    output.stderr.lines().map(|line| line.strip_prefix("weir: ").unwrap_or(line).to_owned()).collect()
}

const BY_USERS: &str = r#"
[load]
base_url = "BASE"
loops = 5
[variables]
part = 7
[[scenario]]
file = "shop.hurl"
users = 4
[[scenario]]
file = "browse.hurl"
name = "look"
users = 2
"#;

#[test]
fn users_have_one_scenario_for_the_whole_run() {
    let server = Server::hello();
    let folder = mix(&server, BY_USERS);
    let run = run_of(&folder, &[]);
    let steps: BTreeMap<&str, u64> = run.steps.iter().map(|step| (step.name.as_str(), step.ok)).collect();
    assert_eq!(steps, BTreeMap::from([("shop: list", 20), ("shop: buy", 20), ("look: GET /browse/{{part}}", 10)]));
    assert_eq!(run.iterations.unwrap().ok, 30);
    assert!(server.seen().iter().any(|seen| seen.line() == "GET /browse/7 HTTP/1.1"));
    let more = run_of(&folder, &["--users", "12", "--loops", "1", "--variable", "part=x"]);
    assert_eq!(more.steps.iter().map(|step| step.ok).collect::<Vec<_>>(), [8, 8, 4]);
    assert!(server.seen().iter().any(|seen| seen.line() == "GET /browse/x HTTP/1.1"), "the command line wins");
}

#[test]
fn scenarios_are_chosen_by_weight_or_rate() {
    let server = Server::hello();
    let text = BY_USERS.replace("loops = 5", "requests = 400").replace("[variables]", "connections = 2\n[variables]");
    let folder = mix(&server, &text.replace("users = 4", "weight = 3").replace("users = 2", "weight = 1"));
    let run = run_of(&folder, &[]);
    assert_eq!(run.iterations.as_ref().unwrap().ok, 400);
    assert!((60..=140).contains(&run.steps[2].ok), "{} of 400", run.steps[2].ok);
    let text = BY_USERS.replace("loops = 5", "duration = \"4s\"");
    let folder = mix(&server, &text.replace("users = 4", "rate = \"150/s\"").replace("users = 2", "rate = 50"));
    let run = run_of(&folder, &[]);
    // One that a busy machine began late is still played when the time is over, or did not begin.
    let iterations = run.iterations.as_ref().unwrap();
    assert!((100..=800).contains(&(iterations.total + iterations.unfinished)), "{iterations:?}");
    let share = run.steps[2].ok as f64 / iterations.ok as f64;
    assert!((0.1..0.4).contains(&share), "{share} of {}", iterations.ok);
    let closed = run_of(&folder, &["--users", "2", "--requests", "20"]);
    assert_eq!((closed.iterations.unwrap().total, closed.connections.max), (20, 2));
}

#[test]
fn all_mistakes_of_a_mix_file_are_found_at_once() {
    let server = Server::hello();
    let folder = mix(
        &server,
        "[load]\nusrs = 5\nduration = \"fast\"\n\
         [[scenario]]\nfile = \"shp.hurl\"\nweigth = 3\n\
         [[scenario]]\nfile = \"shop.hurl\"\nusers = 2\nthink = \"soon\"\n\
         [[scenario]]\nfile = \"shop.hurl\"\nrate = 2\ndata = { file = \"none.csv\", order = \"any\" }\n\
         [thresholds]\n\"p98\" = \"300\"\nabort = { when = \"checks < 1%\" }\n",
    );
    let lines = rejected(&folder, &[]);
    let expected = [
        "mix.toml:2:8: load.usrs: unknown key; did you mean \"users\"?",
        "mix.toml:3:12: load.duration: invalid value 'fast' for '--duration <TIME>': invalid time 'fast'; write e.g. 10",
        "mix.toml:5:8: scenario[0].file: cannot read the scenario 'shp.hurl': No such file or directory",
        "mix.toml:6:1: scenario[0].weigth: unknown key; did you mean \"weight\"?",
        "mix.toml:10:9: scenario[1].think: invalid think time 'soon'",
        "mix.toml:11:1: scenario[2]: a second scenario with the name \"shop\"; give it another one, name = \"...\"",
        "mix.toml:11:1: scenario[2]: rate here, and users before; give all scenarios weight, users or rate",
        "mix.toml:14:8: scenario[2].data: cannot read the data 'none.csv': No such file or directory",
        "mix.toml:14:37: scenario[2].data.order: unknown value \"any\"; choose \"circular\", \"unique\", \"random\" or",
        "mix.toml:16:9: thresholds.p98: no < or > in it; expected e.g. p99<200ms",
        "mix.toml:17:18: thresholds.abort.when: 'checks < 1%' is known at the end of a run only; write a condition on",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}\n{expected}");
    }
}

#[test]
fn mistakes_of_all_files_of_a_mix_are_found_at_once() {
    let server = Server::hello();
    let folder = mix(&server, BY_USERS);
    folder.write("shop.hurl", "GET /items\nHTTP 200\n[Asserts]\nstatus = 200\n");
    folder.write("browse.hurl", "GET /browse/{{prt}}\n");
    let lines = rejected(&folder, &[]).join("\n");
    assert!(lines.contains("shop.hurl:4:8: expected a filter or a predicate, found '='"), "{lines}");
    assert!(lines.contains("browse.hurl:1:15: expected a variable that is defined before, found 'prt'"), "{lines}");
}

#[test]
fn objectives_are_about_scenarios_steps_iterations_and_checks() {
    let server =
        Server::start(|seen| if seen.line().starts_with("POST") { Reply::status(500, "no") } else { Reply::ok("yes") });
    let folder = mix(
        &server,
        &format!(
            "{BY_USERS}[thresholds]\n\"look: response_ms p99\" = \"< 10s\"\n\"shop: errors\" = \"< 10%\"\n\
             \"shop: list: errors\" = \"< 1%\"\n\"iterations: time p95\" = \"< 60s\"\n\"iterations: errors\" = \"< 1%\"\n\
             \"checks\" = \"> 99.5%\"\n"
        ),
    );
    let output = folder.run(&["load", "-s", "mix.toml", "--format", "json", "--slo", "rate > 1"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    let run = output.json();
    let held: Vec<_> = run.slo.iter().map(|held| (held.objective.as_str(), held.ok)).collect();
    let expected = [
        ("rate > 1", true),
        ("look: response_ms p99 < 10s", true),
        ("shop: errors < 10%", false),
        ("shop: list: errors < 1%", true),
        ("iterations: time p95 < 60s", true),
        ("iterations: errors < 1%", false),
        ("checks > 99.5%", false),
    ];
    assert_eq!(held, expected);
    assert_eq!(run.slo[2].measured, "shop: errors 50% (20 of 40)");
    assert_eq!(run.slo[6].measured, "checks 60% (30 of 50)");
    assert!(run.slo[4].measured.starts_with("p95 iteration time "), "{}", run.slo[4].measured);
    let lines = rejected(&folder, &["--slo", "shp: p99 < 1s"]);
    assert_eq!(lines, ["--slo 'shp: p99 < 1s': unknown scenario or step 'shp'; did you mean \"shop\"?"]);
    let plain = Weir::new().run(&["load", &server.url("/"), "--slo", "checks > 1%"]);
    assert_eq!((plain.code, plain.one_line()), (2, "--slo 'checks > 1%': the load has no scenario and no --check"));
}

#[test]
fn a_condition_ends_the_run_early_and_says_why() {
    let server = Server::start(|_| Reply::status(503, "busy"));
    let flags = ["load", &server.url("/"), "-r", "50", "-d", "60s", "--abort", "errors > 20%", "--abort-after", "2s"];
    let output = Weir::new().run(&[&flags[..], &["--format", "json"]].concat());
    let run = output.json();
    let why = run.aborted.clone().unwrap();
    assert_eq!((output.code, run.interrupted), (1, false), "{}", output.stderr);
    assert!(why.starts_with("errors > 20%: errors 100% (") && why.ends_with("in the last 2s"), "{why}");
    assert!(output.stderr.contains(&format!("aborted: {why}")) && run.duration_s < 30.0, "{}", output.stderr);
    let text = Weir::new().run(&flags).stdout;
    assert!(text.contains("\naborted: errors > 20%: errors 100% ("), "{text}");
    let late = Weir::new().run(&["load", &server.url("/"), "-n", "1", "--abort-after", "1s"]);
    assert_eq!((late.code, late.one_line()), (2, "--abort-after needs --abort, e.g. --abort 'errors>20%'"));
}

#[test]
fn a_mix_file_may_end_the_run_too() {
    let server = Server::start(|_| Reply::status(500, "no"));
    let text = format!("{BY_USERS}[thresholds]\nabort = {{ when = \"errors > 50%\", after = \"1s\" }}\n");
    let folder = mix(&server, &text.replace("loops = 5", "duration = \"60s\""));
    let output = folder.run(&["load", "-s", "mix.toml", "--format", "json"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.json().aborted.is_some());
}

#[test]
fn unknown_names_in_thresholds_are_found_at_once_with_their_places() {
    let server = Server::hello();
    let thresholds = "[thresholds]\n\"shp: p99\" = \"< 1s\"\n\"p99\" = \"< 1s\"\n\"shop: bye: errors\" = \"< 1%\"\n";
    let folder = mix(&server, &format!("{BY_USERS}{thresholds}"));
    let lines = rejected(&folder, &[]);
    let expected = [
        "mix.toml:15:14: thresholds.\"shp: p99\": unknown scenario or step 'shp'; did you mean \"shop\"?",
        "mix.toml:17:23: thresholds.\"shop: bye: errors\": unknown scenario or step 'shop: bye'; did you mean \"shop: buy\"?",
    ];
    assert_eq!(lines, expected);
    assert!(server.seen().is_empty());
}

#[test]
fn a_user_keeps_its_cookies_over_all_scenarios_of_a_mix() {
    let server = Server::start(|seen| match seen.line().contains("/login") {
        true => Reply::raw("HTTP/1.1 200 OK\r\nset-cookie: session=s1; Path=/\r\ncontent-length: 2\r\n\r\nin"),
        false => Reply::ok("seen"),
    });
    let folder = Weir::new();
    folder.write("in.hurl", "GET /login\n");
    folder.write("look.hurl", "GET /look\n");
    let text = "[load]\nbase_url = \"BASE\"\nconnections = 1\nrequests = 40\n[[scenario]]\nfile = \"in.hurl\"\nKEEP\n\
                [[scenario]]\nfile = \"look.hurl\"\nKEEP\n";
    let text = text.replace("BASE", &server.url(""));
    folder.write("mix.toml", text.replace("KEEP", "keep_cookies = true"));
    run_of(&folder, &[]);
    let looks_after_login = || {
        let seen = server.seen();
        let after = seen.into_iter().skip_while(|seen| !seen.line().contains("/login"));
        let looks: Vec<bool> = after
            .filter(|seen| seen.line().contains("/look"))
            .map(|seen| seen.head.to_ascii_lowercase().contains("cookie: session=s1"))
            .collect();
        looks
    };
    let looks = looks_after_login();
    assert!(looks.len() > 5 && looks.iter().all(|has_cookie| *has_cookie), "{looks:?}");
    folder.write("mix.toml", text.replace("KEEP", ""));
    run_of(&folder, &[]);
    assert!(looks_after_login()[looks.len()..].iter().all(|has_cookie| !has_cookie), "a new jar for each iteration");
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn all_iterations_of_rates_are_played_or_cut_off_by_the_end() {
        let server = Server::hello();
        let text = BY_USERS.replace("loops = 5", "duration = \"1s\"");
        let folder = mix(&server, &text.replace("users = 4", "rate = \"150/s\"").replace("users = 2", "rate = 50"));
        let iterations = run_of(&folder, &[]).iterations.unwrap();
        assert_eq!(iterations.total + iterations.unfinished, 200);
    }
}
