//! A single request with templates and checks, given by options instead of a file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};

use weir_testing::{Reply, Server, Weir, load};

/// The one line on stderr of a call that ends with code 2.
fn rejected(args: &[&str]) -> String {
    let output = Weir::new().run(&[&["load"], args].concat());
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}: {}", output.stderr);
    output.one_line().to_owned()
}

#[test]
fn a_template_in_url_header_and_body_is_filled_in_for_each_request() {
    let server = Server::hello();
    let url = server.url("/items/{{id}}?n={{seq}}");
    let flags = ["--variable", "id=a b", "-b", "{\"n\": {{seq}},\n \"x\": \"}}\"}", "-H", "X-Id: {{newUuid}}"];
    let run = load(&url, &[&flags[..], &["-n", "20", "-c", "2", "-m", "PUT", "-H", "X-Same: 1"]].concat());
    assert_eq!((run.requests.ok, run.requests.total), (20, 20));
    assert_eq!((run.target.url.as_str(), run.target.method.as_str()), (url.as_str(), "PUT"));
    assert_eq!(run.iterations.unwrap().total, 20);
    let seen = server.seen();
    let numbers: BTreeSet<usize> = (0..20)
        .filter(|n| {
            let line = format!("PUT /items/a%20b?n={n} HTTP/1.1");
            seen.iter()
                .any(|it| it.line() == line && it.body == format!("{{\"n\": {n},\n \"x\": \"}}}}\"}}").as_bytes())
        })
        .collect();
    assert_eq!(numbers.len(), 20, "each number once: {:?}", seen[0]);
    let ids: BTreeSet<&str> = seen.iter().map(|it| it.header("x-id").unwrap()).collect();
    assert_eq!(ids.len(), 20);
    assert!(seen.iter().all(|it| it.header("x-same") == Some("1") && it.header("content-type").is_none()));
}

#[test]
fn a_request_with_a_check_is_the_request_without_it() {
    let server = Server::hello();
    let url = server.url("/a/../b?x=%2f&y={1}");
    let flags = ["-n", "1", "-c", "1", "-b", "{\"a\": 1}", "-H", "X-A: b", "-H", "Accept:", "-a", "me:pw"];
    load(&url, &flags);
    load(&url, &[&flags[..], &["--check", "status == 200"]].concat());
    let seen = server.seen();
    let head = |index: usize| {
        let lines: BTreeSet<String> = seen[index].head.lines().map(str::to_owned).collect();
        (seen[index].line().to_owned(), lines, seen[index].body.clone())
    };
    assert_eq!(head(0), head(1));
}

#[test]
fn a_failed_check_is_a_failed_request() {
    let server =
        Server::start(|seen| Reply::ok(if seen.number % 4 == 0 { r#"{"ok": false}"# } else { r#"{"ok": true}"# }));
    let checks =
        ["--check", "status == 200", "--check", "jsonpath \"$.ok\" == true", "--check", "body contains \"ok\""];
    let run = load(&server.url("/"), &[&checks[..], &["-n", "40", "-c", "1"]].concat());
    assert_eq!((run.requests.ok, run.requests.failed), (30, 10));
    assert_eq!(run.failures, BTreeMap::from([("check".to_owned(), 10)]));
    let checks: Vec<_> = run.steps[0].checks.iter().map(|check| (check.text.as_str(), check.failed)).collect();
    assert_eq!(checks, [("status == 200", 0), ("jsonpath \"$.ok\" == true", 10), ("body contains \"ok\"", 0)]);
}

#[test]
fn success_is_what_the_user_says() {
    let server = Server::start(|seen| if seen.number % 2 == 0 { Reply::ok("x") } else { Reply::status(404, "none") });
    let ok = |success: &str| load(&server.url("/"), &["-n", "10", "-c", "1", "--success", success]).requests.ok;
    assert_eq!(ok("status < 500"), 10);
    assert_eq!(ok("status == 404"), 5);
    assert_eq!(ok("body == \"x\""), 5);
    let folder = Weir::new();
    folder.write(
        "a.hurl",
        format!("# @success status in\nGET {0}\n\n# @success status == 404\nGET {0}\n", server.url("/"))
            .replace(" in", " < 500"),
    );
    let output = folder.run(&["load", "-s", "a.hurl", "-n", "5", "-c", "1", "--format", "json"]);
    let run = output.json();
    assert_eq!(
        (run.steps[0].failed, run.steps[1].checks[0].text.as_str()),
        (0, "success: status == 404"),
        "{output:?}"
    );
}

#[test]
fn bodies_are_chosen_by_their_weights() {
    let server = Server::hello();
    let bodies = ["-b", "a{{seq}}", "-b", "b{{seq}}", "--weights", "1,3", "-n", "400", "-c", "2"];
    let run = load(&server.url("/x"), &bodies);
    let of_first = server.seen().iter().filter(|seen| seen.body.starts_with(b"a")).count();
    assert!((60..=140).contains(&of_first), "{of_first} of 400");
    let names: Vec<&str> = run.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["body 1: POST /x", "body 2: POST /x"]);
}

#[test]
fn templates_and_checks_work_at_a_rate_and_without_keep_alive() {
    let server = Server::hello();
    let run = load(&server.url("/{{seq}}"), &["-r", "200", "-d", "1s", "--no-keepalive", "--check", "status == 200"]);
    // On a busy machine the end of the run may come before the turn of the last ones.
    let due = run.requests.total + run.iterations.as_ref().unwrap().unfinished;
    assert_eq!((due, run.requests.ok, run.connections.opened), (200, run.requests.total, run.requests.total));
    let stages = load(&server.url("/{{seq}}"), &["--stages", "100/500ms,50/500ms"]);
    assert_eq!(stages.requests.ok + stages.iterations.as_ref().unwrap().unfinished, 75);
}

#[test]
fn a_mistake_is_named_by_its_option() {
    let url = "http://127.0.0.1:9/";
    for (args, expected) in [
        (
            vec![url, "--check", "status = 200"],
            "--check 'status = 200': expected a filter or a predicate, found '='; did you mean '=='?",
        ),
        (
            vec![url, "--check", "status == {{code}}"],
            "--check 'status == {{code}}': expected a variable that is defined before, found 'code'; capture it",
        ),
        (vec![url, "--success", "status"], "--success 'status': expected a filter or a predicate, found the end"),
        (
            vec![url, "-b", "{{sequ}}"],
            "-b '{{sequ}}': expected a variable that is defined before, found 'sequ'; did you mean 'seq'?; --no-template sends {{ as it is",
        ),
        (
            vec![url, "-b", "{{#if}}"],
            "-b '{{#if}}': expected a variable or a function, found '#'; --no-template sends {{ as it is",
        ),
        (
            vec![url, "-H", "X: {{newUUID}}"],
            "-H 'X: {{newUUID}}': expected a variable that is defined before, found 'newUUID'; did you mean 'newUuid'?",
        ),
        (
            vec!["http://127.0.0.1:9/{{x}}"],
            "URL 'http://127.0.0.1:9/{{x}}': expected a variable that is defined before, found 'x'; ",
        ),
        (
            vec![url, "-m", "m-search", "--check", "status == 200"],
            "--method: 'm-search': a request with templates or checks has a method of capital letters",
        ),
        (
            vec![url, "--pipeline", "2", "--check", "status == 200"],
            "--pipeline cannot be used with scenarios, templates and checks",
        ),
    ] {
        let line = rejected(&args);
        assert!(line.starts_with(expected), "{args:?}:\n{line}\n{expected}");
    }
}

#[test]
fn braces_are_text_where_the_user_says_so() {
    let server = Server::hello();
    load(&server.url("/"), &["-n", "1", "-b", "{{#if}}", "--no-template"]);
    load(&server.url("/"), &["-n", "1", "-b", "{{#if}}", "--no-template", "--check", "status == 200"]);
    assert!(server.seen().iter().all(|seen| seen.body == b"{{#if}}"));
}

/// Study of a service that works and one that says 200 to everything, and has a quicker answer.
const STUDY: &str = r#"
repeats = 2
timeouts = { warmup = "0s", ready = "10s", stop = "2s" }
[variants.good]
command = ["weir", "serve", "work", "--port", "{port}", "--delay", "10ms", "--mix", "good=1"]
[variants.liar]
command = ["weir", "serve", "work", "--port", "{port}", "--delay", "1ms", "--mix", "garbage=1"]
[loads.work]
REQUEST
connections = 2
duration = "300ms"
"#;

/// Mean successes per second of the two variants.
fn successes(request: &str) -> [f64; 2] {
    let folder = Weir::new();
    folder.write("work.hurl", "GET /api/work\nHTTP 200\n[Asserts]\njsonpath \"$.time\" exists\n");
    folder.write("study.toml", STUDY.replace("REQUEST", request));
    let output = folder.run(&["study", "study.toml", "--format", "json", "--quiet"]);
    let found: serde_json::Value =
        serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
    ["good", "liar"].map(|variant| {
        let cells = found["measurements"].as_array().unwrap().iter().filter(|cell| cell["variant"] == variant);
        let rates: Vec<f64> = cells.map(|cell| cell["loads"][0]["rate_per_s"].as_f64().unwrap_or(0.0)).collect();
        assert_eq!(rates.len(), 2, "{found:#}");
        rates.iter().sum::<f64>() / 2.0
    })
}

#[test]
fn a_service_that_says_200_to_everything_loses_a_study_that_checks() {
    let url = "url = \"http://127.0.0.1:{port}/api/work\"";
    let [good, liar] = successes(url);
    assert!(good > 0.0 && liar > 0.0, "without a check the liar's responses count: {liar} {good}");
    let [good, liar] = successes(&format!("{url}\ncheck = ['jsonpath \"$.time\" exists', \"status == 200\"]"));
    assert!(good > 0.0 && liar == 0.0, "{good} {liar}");
    let [good, liar] = successes("scenario = \"work.hurl\"\nurl = \"http://127.0.0.1:{port}\"");
    assert!(good > 0.0 && liar == 0.0, "{good} {liar}");
}

#[test]
fn capacity_and_compare_count_failed_checks_as_failures() {
    let server = Server::start(|seen| Reply::ok(if seen.head.contains("liar") { "no" } else { "yes" }));
    let (liar, good) = (server.url("/liar"), server.url("/good"));
    let check = ["--check", "body == \"yes\""];
    let search =
        ["--slo", "p99<1s", "--from", "20", "--to", "20", "--step-time", "3s", "--max-time", "6s", "--format", "json"];
    let output = Weir::new().run(&[&["capacity", &liar], &check[..], &search[..]].concat());
    let why = "no request of a single user succeeds: check: body == \"yes\": expected == \"yes\", found \"no\": no";
    assert_eq!((output.code, output.one_line()), (2, why));
    let folder = Weir::new();
    folder.write("two.hurl", "GET /good\nHTTP 200\n\nGET /good\nHTTP 200\n");
    let url = server.url("");
    let output = folder.run(&[&["capacity", &url, "-s", "two.hurl"], &search[..]].concat());
    let found: serde_json::Value =
        serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
    assert_eq!((&found["iterations"], &found["model"]), (&true.into(), &"open".into()));
    let step = &found["steps"][0];
    let (load, responses) = (step["load"].as_f64().unwrap(), step["achieved_per_s"].as_f64().unwrap());
    assert!(responses > 1.3 * load, "two requests for each iteration: {step}");
    for (url, name) in [(&liar, "liar.json"), (&good, "good.json")] {
        folder.run(&[&["load", url, "-n", "200", "-c", "2", "--out", name], &check[..]].concat());
    }
    let output = folder.run(&["compare", "good.json", "liar.json"]);
    assert!(output.stdout.contains("errors"), "{output:?}");
}
