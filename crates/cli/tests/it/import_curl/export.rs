//! `weir import --to curl`: the commands that it writes send what the scenario sends.

use std::process::Command;

use serde_json::{Value, json};
use weir_testing::{Reply, Server, Weir};

use super::requests::{comparable, new_requests};

/// Requests of a recording whose texts have a meaning for curl or a shell.
fn requests(url: &str) -> Vec<Value> {
    let post = |kind: &str, text: &str| {
        json!({"method": "POST", "url": format!("{url}/p"), "headers": [{"name": "Content-Type", "value": kind}],
            "postData": {"mimeType": kind, "text": text}})
    };
    let form = |parameters: Value| {
        json!({"method": "POST", "url": format!("{url}/f"),
            "postData": {"mimeType": "multipart/form-data", "params": parameters}})
    };
    let get = |path: &str, headers: Value| json!({"method": "GET", "url": format!("{url}{path}"), "headers": headers});
    vec![
        form(json!([{"name": "a", "value": "@up.txt"}])),
        form(json!([{"name": "a", "value": "<up.txt"}, {"name": "b", "value": "x;type=text/html"}])),
        form(json!([{"name": "a", "value": "\"q\""}, {"name": "b", "value": "it's \\ a;b,c"}])),
        form(json!([{"name": "a\"b", "value": ""}, {"name": "c", "value": "\r\nd\n"}])),
        form(json!([{"name": "meta", "value": "{}", "contentType": "application/json"}])),
        get("/g[1-3]", json!([])),
        get("/{a,b}?x[]=1&y={z}", json!([])),
        get("/a%20b?c=d%20e+f", json!([])),
        get("/a b?c d", json!([])),
        get("/\u{e4}?q=\u{f6}", json!([])),
        get("/", json!([{"name": "X-Empty", "value": ""}, {"name": "X-At", "value": "@x"}])),
        get("/", json!([{"name": "Cookie", "value": "a=1; b=@x"}])),
        get("/", json!([{"name": "Authorization", "value": "Basic bWU6c2U6Y3JldA=="}])),
        get("/\\\"'$HOME`x`!", json!([])),
        post("text/plain", "@up.txt"),
        post("application/json", "{\"a\": \"$HOME `x` \\\\ ' !\"}"),
        post("application/x-www-form-urlencoded", "a=%40up.txt&b=%3C&c=1+2"),
        post("application/x-www-form-urlencoded", "a=%40up.txt&b=x%20y"),
        post("application/octet-stream", "x"),
        json!({"method": "PUT", "url": format!("{url}/"), "postData": {"mimeType": "", "text": "plain"}}),
        json!({"method": "POST", "url": format!("{url}/")}),
        json!({"method": "DELETE", "url": format!("{url}/x")}),
    ]
}

#[test]
fn a_command_that_is_written_sends_what_the_scenario_sends() {
    if Command::new("curl").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "no curl");
        println!("skipped: no curl");
        return;
    }
    let (weir, server) = (Weir::new(), Server::start(|_| Reply::ok("ok")));
    weir.write("up.txt", "the content of a file");
    let (mut failures, mut seen) = (Vec::new(), 0);
    for request in requests(server.url("").trim_end_matches('/')) {
        let recording = json!({"log": {"version": "1.2", "entries": [{"request": request}]}});
        weir.write("r.har", recording.to_string());
        let played = weir.run(&["run", "r.har"]);
        let of_weir = new_requests(&server, &mut seen);
        let import = weir.run(&["import", "r.har", "--to", "curl"]);
        let variables = weir.run(&["import", "r.har", "-o", "r.hurl", "--force"]);
        let values = std::fs::read_to_string(weir.path("r.env")).unwrap_or_default();
        let mut bash = Command::new("bash");
        bash.args(["-c", &import.stdout]).current_dir(weir.path(".")).env("LC_ALL", "C.UTF-8");
        for line in values.lines().filter(|line| !line.starts_with('#')) {
            bash.envs(line.split_once('='));
        }
        let judge = bash.output().unwrap();
        let of_curl = new_requests(&server, &mut seen);
        if comparable(&of_weir) != comparable(&of_curl) || of_weir.len() != 1 {
            failures.push(format!(
                "{request}\n{}weir: {:?}\ncurl: {:?}\n{}{}{}",
                import.stdout,
                comparable(&of_weir),
                comparable(&of_curl),
                String::from_utf8_lossy(&judge.stderr).lines().last().unwrap_or_default(),
                variables.stderr,
                played.stderr,
            ));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
