//! `weir import`, and files of other tools in `weir load -s` and `weir run`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use weir_testing::{Reply, Server, Weir};

/// A service with a login that gives a token, and items that need it.
fn shop() -> Server {
    Server::start(|seen| {
        let line = seen.line();
        let has_token = seen.header("authorization").is_some_and(|value| value == "Bearer t-12345678");
        match line.split(' ').nth(1) {
            Some("/login") => Reply::ok("{\"token\": \"t-12345678\"}"),
            _ if has_token => Reply::ok("{\"items\": []}"),
            _ => Reply::raw("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"),
        }
    })
}

fn collection() -> &'static str {
    r#"{"info": {"name": "shop", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
      "item": [
       {"name": "login", "event": [{"listen": "test", "script": {"exec": ["pm.environment.set('token', pm.response.json().token);"]}}],
        "request": {"method": "POST", "url": "{{host}}/login", "body": {"mode": "raw", "raw": "{}", "options": {"raw": {"language": "json"}}}}},
       {"name": "items", "event": [{"listen": "prerequest", "script": {"exec": ["pm.sendRequest('http://h');"]}}],
        "request": {"method": "GET", "url": "{{host}}/items", "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{token}}"}]}}}]}"#
}

#[test]
fn a_collection_is_imported_and_loaded_in_two_commands() {
    let (weir, server) = (Weir::new(), shop());
    weir.write("shop.json", collection());
    weir.write(
        "dev.json",
        format!(
            "{{\"name\": \"dev\", \"values\": [{{\"key\": \"host\", \"value\": \"{}\", \"enabled\": true}}]}}",
            server.url("")
        ),
    );
    let import = weir.run(&["import", "shop.json", "dev.json", "-o", "shop.hurl"]);
    assert_eq!((import.code, import.stdout.as_str()), (0, ""), "{}", import.stderr);
    let expected = "weir: shop.hurl: 2 requests of shop.json, dev.json\n\
        weir: shop.env: 1 variable\n\
        weir: next: weir load -s shop.hurl --variables-file shop.env\n\
        weir: left out: 1 script\n\
        weir:   shop.json:5: script: a script before the request, 1 line: pm.sendRequest('http://h');\n\
        weir: scripts are kept by -o FILE.js, and played by weir run and weir load -s of the collection itself\n";
    assert_eq!(import.stderr, expected);
    let load = weir.run(&[
        "load",
        "-s",
        "shop.hurl",
        "--variables-file",
        "shop.env",
        "-n",
        "10",
        "-c",
        "2",
        "--format",
        "json",
    ]);
    assert_eq!(load.code, 0, "{}", load.stderr);
    let seen: Vec<String> = server.seen().iter().map(|seen| seen.line().to_owned()).collect();
    assert!(seen.len() >= 10 && seen.iter().any(|line| line.starts_with("GET /items")), "{seen:?}");
}

/// The body of the error page has a token, too, so that only the status tells the failure.
#[test]
fn a_step_with_a_capture_fails_at_an_error_page() {
    let (weir, server) = (
        Weir::new(),
        Server::start(|seen| match seen.line().split(' ').nth(1) {
            Some("/login") => Reply::raw("HTTP/1.1 404 Not Found\r\nContent-Length: 14\r\n\r\n{\"token\": \"t\"}"),
            _ => Reply::ok("{}"),
        }),
    );
    weir.write("shop.json", collection());
    let host = format!("host={}", server.url(""));
    assert_eq!(weir.run(&["import", "shop.json", "-o", "shop.hurl"]).code, 0);
    let run = weir.run(&["run", "shop.hurl", "--variable", &host]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stdout.contains("success: status < 400") && run.stdout.contains("404"), "{}", run.stdout);
    assert!(!run.stdout.contains("/items"), "the iteration has ended: {}", run.stdout);
}

#[test]
fn a_load_takes_a_file_of_another_tool_directly() {
    let (weir, server) = (Weir::new(), shop());
    weir.write(
        "shop.http",
        "### login\nPOST {{host}}/login\n\n{}\n\n> {%\nclient.global.set(\"token\", response.body.token);\nsign();\n%}\n\n\
         ### items\nGET {{host}}/items\nAuthorization: Bearer {{token}}\n",
    );
    let host = format!("host={}", server.url(""));
    let load = weir.run(&["load", "-s", "shop.http", "--variable", &host, "-n", "4", "-c", "1", "--format", "json"]);
    assert_eq!(load.code, 0, "{}", load.stderr);
    assert!(load.stderr.contains("shop.http: left out: 1 script; see 'weir import shop.http'"), "{}", load.stderr);
    let run: serde_json::Value = serde_json::from_str(&load.stdout).unwrap();
    assert_eq!(run["requests"]["failed"], 0, "{run:#}");
    let played = weir.run(&["run", "shop.http", "--variable", &host]);
    assert_eq!(played.code, 0, "{}", played.stderr);
    assert!(played.stdout.ends_with("passed: 2 steps, 2 requests, 1 check\n"), "{}", played.stdout);
}

#[test]
fn users_and_data_of_a_plan_are_those_of_the_load() {
    let (weir, server) = (Weir::new(), Server::start(|_| Reply::ok("{}")));
    let address = server.url("");
    let (host, port) = address.trim_start_matches("http://").split_once(':').unwrap();
    weir.write("users.csv", "ada\ngrace\n");
    weir.write(
        "plan.jmx",
        format!(
            "<jmeterTestPlan><hashTree><TestPlan/><hashTree><ThreadGroup testname=\"buyers\">\
             <stringProp name=\"ThreadGroup.num_threads\">2</stringProp>\
             <elementProp name=\"ThreadGroup.main_controller\"><stringProp name=\"LoopController.loops\">1</stringProp></elementProp>\
             </ThreadGroup><hashTree><CSVDataSet><stringProp name=\"filename\">users.csv</stringProp>\
             <stringProp name=\"variableNames\">user</stringProp><boolProp name=\"recycle\">true</boolProp></CSVDataSet><hashTree/>\
             <HTTPSamplerProxy testname=\"hello\"><stringProp name=\"HTTPSampler.domain\">{host}</stringProp>\
             <stringProp name=\"HTTPSampler.port\">{port}</stringProp><stringProp name=\"HTTPSampler.path\">/${{user}}</stringProp>\
             </HTTPSamplerProxy><hashTree/></hashTree></hashTree></hashTree></jmeterTestPlan>"
        ),
    );
    let lines = |server: &Server| {
        let mut lines: Vec<String> = server.seen().iter().map(|seen| seen.line().to_owned()).collect();
        lines.sort();
        lines
    };
    let load = weir.run(&["load", "-s", "plan.jmx", "-t", "1", "--format", "json"]);
    assert_eq!(load.code, 0, "{}", load.stderr);
    assert_eq!(lines(&server), ["GET /ada HTTP/1.1", "GET /grace HTTP/1.1"]);
    let import = weir.run(&["import", "plan.jmx", "-o", "out.hurl"]);
    assert_eq!(import.code, 0, "{}", import.stderr);
    assert_eq!(fs::read_to_string(weir.path("out.csv")).unwrap(), "user\nada\ngrace\n");
    let mix = "[load]\nusers = 2\nloops = 1\n\n[[scenario]]\nfile = \"out.hurl\"\ndata = { file = \"out.csv\", order = \"circular\" }\n\
        continue_on_error = true\nkeep_cookies = true\n";
    assert_eq!(
        fs::read_to_string(weir.path("out.toml")).unwrap().replace("keep_cookies = true\n", ""),
        mix.replace("keep_cookies = true\n", "")
    );
    let again = weir.run(&["load", "-s", "out.toml", "--format", "json"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(lines(&server).len(), 4);
}

#[test]
fn secrets_are_in_a_private_file_whose_values_stay() {
    let weir = Weir::new();
    weir.write("c.sh", "curl $HOST/items -H 'Authorization: Bearer top-secret'");
    let import = weir.run(&["import", "c.sh", "-o", "c.hurl"]);
    assert_eq!(import.code, 0, "{}", import.stderr);
    assert!(!fs::read_to_string(weir.path("c.hurl")).unwrap().contains("top-secret"));
    let file = weir.path("c.env");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\nHOST=\n") || text.contains("HOST=\n"), "{text}");
    assert!(text.contains("bearer_token=top-secret\n"), "{text}");
    fs::write(&file, text.replace("HOST=\n", "HOST=http://localhost:1\n")).unwrap();
    let again = weir.run(&["import", "c.sh", "-o", "c.hurl"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("c.hurl is there already; add --force"), "{}", again.stderr);
    let again = weir.run(&["import", "c.sh", "-o", "c.hurl", "--force"]);
    assert!(again.stderr.contains("c.env: 2 variables\n"), "{}", again.stderr);
    assert!(fs::read_to_string(&file).unwrap().contains("HOST=http://localhost:1\n"));
    let printed = weir.run(&["import", "c.sh"]);
    assert!(printed.stdout.contains("Bearer {{bearer_token}}") && !printed.stdout.contains("top-secret"));
    let json = weir.run(&["import", "c.sh", "--to", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["variables"][0]["secret"], true);
    assert!(!json.to_string().contains("top-secret"), "{json:#}");
}

#[test]
fn a_file_that_is_missing_is_an_omission() {
    let weir = Weir::new();
    weir.write("here.bin", "x");
    weir.write("c.sh", "curl http://h/a -T here.bin\ncurl http://h/b --data-binary @gone.bin");
    let import = weir.run(&["import", "c.sh"]);
    assert_eq!(
        import.stdout,
        "PUT http://h/a\nfile,here.bin;\n\n# left out: the file gone.bin, which is not there\nPOST http://h/b\nContent-Type: application/x-www-form-urlencoded\n"
    );
    assert!(import.stderr.contains("c.sh:2: missing file: the file gone.bin, which is not there"), "{}", import.stderr);
}

#[test]
fn a_folder_of_bruno_is_one_scenario_in_its_own_order() {
    let weir = Weir::new();
    let request = |name: &str, seq: u32| {
        format!("meta {{\n  name: {name}\n  seq: {seq}\n}}\n\nget {{\n  url: {{{{host}}}}/{name}\n}}\n")
    };
    fs::create_dir_all(weir.path("api/environments")).unwrap();
    weir.write("api/b.bru", request("first", 1));
    weir.write("api/a.bru", request("second", 2));
    weir.write("api/environments/dev.bru", "vars {\n  host: http://h\n}\n");
    let import = weir.run(&["import", "api", "--to", "curl"]);
    assert_eq!(
        import.stdout,
        "# first\ncurl \"${host}\"'/first' \\\n  -L\n\n# second\ncurl \"${host}\"'/second' \\\n  -L\n"
    );
}

#[test]
fn bad_files_have_their_line_and_what_is_expected() {
    let weir = Weir::new();
    weir.write("bad.har", "{\"log\": {\n\"entries\": [}");
    weir.write("bad.jmx", "<jmeterTestPlan>\n<hashTree>\n</jmeterTestPlan>");
    weir.write("bad.yaml", "openapi: 3.0.0\npaths: [1\n");
    weir.write("none.txt", "hello\n");
    weir.write("insomnia.json", "{\"_type\": \"export\", \"__export_format\": 4, \"resources\": []}");
    weir.write("empty.bru", "get {\n  url: x\n");
    weir.write("shop.js", "import http from 'k6/http';\nexport default () => http.get('http://localhost:8080');\n");
    for (file, expected) in [
        ("bad.har", "weir: bad.har:2: expected a JSON value, found '}'\n"),
        ("bad.jmx", "weir: bad.jmx:3: expected XML of a test plan, found "),
        ("bad.yaml", "weir: bad.yaml:3: expected YAML, found "),
        (
            "none.txt",
            "weir: none.txt:1: expected a file of a known kind (curl, har, postman, openapi, http, jmx, bruno; other tools export HAR or OpenAPI), found 'hello'\n",
        ),
        (
            "insomnia.json",
            "weir: insomnia.json:1: expected a file of a known kind (curl, har, postman, openapi, http, jmx, bruno; other tools export HAR or OpenAPI), found '{",
        ),
        (
            "shop.js",
            "weir: shop.js:1: expected a file to import; this is a script of k6, which runs as it is: weir load -s shop.js, found 'import ",
        ),
        ("empty.bru", "weir: empty.bru:1: expected the end of the block get, found the end of the file\n"),
        ("gone.har", "weir: cannot read 'gone.har': No such file or directory\n"),
    ] {
        let import = weir.run(&["import", file]);
        assert_eq!((import.code, import.stdout.as_str()), (2, ""), "{file}");
        assert!(import.stderr.starts_with(expected), "{file}: {}", import.stderr);
        assert_eq!(import.stderr.lines().count(), 1, "{}", import.stderr);
    }
    let load = weir.run(&["load", "-s", "bad.har"]);
    assert_eq!(load.code, 2);
}
