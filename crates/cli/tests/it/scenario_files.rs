//! Files that scenarios name: they are within a folder, whatever leads out of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::symlink;

use weir_testing::{Server, Weir};

const SECRET: &str = "outside-the-root";

/// Folder with `in/` for scenarios, and what they must not reach beside it.
fn folder() -> Weir {
    let folder = Weir::new();
    fs::create_dir_all(folder.path("in/sub")).unwrap();
    folder.write("outside.txt", SECRET);
    folder.write("in/inside.txt", "within");
    symlink(folder.path("outside.txt"), folder.path("in/link.txt")).unwrap();
    symlink(folder.path(""), folder.path("in/sub/out")).unwrap();
    folder
}

fn sent(server: &Server) -> String {
    server.seen().iter().map(|seen| format!("{}{}", seen.head, String::from_utf8_lossy(&seen.body))).collect()
}

#[test]
fn files_of_a_scenario_are_within_its_folder() {
    let folder = folder();
    let server = Server::hello();
    let host = format!("host={}", server.url(""));
    let whole = folder.path("outside.txt").display().to_string();
    for name in ["../outside.txt", "sub/../../outside.txt", "link.txt", "sub/out/outside.txt", &whole, "{{path}}"] {
        let path = format!("path={whole}");
        for (kind, text) in [
            ("body", format!("POST {{{{host}}}}/\nfile,{name};\n")),
            ("part", format!("POST {{{{host}}}}/\n[Multipart]\na: file,{name};\n")),
        ] {
            folder.write("in/x.hurl", text);
            for args in [
                &["load", "-s", "in/x.hurl", "-n", "2", "-c", "1"][..],
                &["load", "-s", "in/x.hurl", "--once"],
                &["run", "in/x.hurl"],
            ] {
                let done = folder.run(&[args, &["--variable", &host, "--variable", &path]].concat());
                assert_eq!(done.code, 2, "{kind} {name}: {}{}", done.stdout, done.stderr);
                let line = if kind == "body" { "x.hurl:2:" } else { "x.hurl:3:" };
                assert!(done.stderr.contains(line) && done.stderr.contains("--file-root"), "{}", done.stderr);
            }
        }
    }
    assert!(!sent(&server).contains(SECRET) && server.seen().is_empty());
    // The operator's word counts, and what is within goes on.
    folder.write("in/x.hurl", "POST {{host}}/\nfile,outside.txt;\n");
    let root = ["run", "in/x.hurl", "--variable", &host, "--file-root", "."];
    assert_eq!(folder.run(&root).code, 0, "{}", folder.run(&root).stderr);
    assert!(sent(&server).contains(SECRET));
    folder.write("in/x.hurl", "POST {{host}}/\nfile,inside.txt;\n");
    let done = folder.run(&["load", "-s", "in/x.hurl", "-n", "2", "-c", "1", "--variable", &host]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(sent(&server).contains("within"));
    let body = format!("@{whole}");
    let given =
        folder.run(&["load", &server.url("/given"), "-n", "1", "-c", "1", "-b", &body, "--check", "status == 200"]);
    assert_eq!(given.code, 0, "{}", given.stderr);
}

#[test]
fn files_of_setups_mixes_and_imports_are_within_their_folder() {
    let folder = folder();
    let server = Server::hello();
    let url = server.url("/x");
    let host = format!("host={}", server.url(""));
    let whole = folder.path("outside.txt").display().to_string();
    folder.write("in/x.hurl", format!("POST {url}\nfile,../outside.txt;\n"));
    folder.write("in/plain.hurl", format!("GET {url}\n"));
    folder.write("mix.toml", "[[scenario]]\nfile = \"in/x.hurl\"\n");
    folder.write(
        "in/a.json",
        format!(
            r#"{{"info": {{"name": "a", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"}},
            "item": [{{"name": "r", "request": {{"method": "POST", "url": "{url}", "body": {{"mode": "file", "file": {{"src": "{whole}"}}}}}}}}]}}"#
        ),
    );
    folder.write("in/a.http", format!("POST {url}\n\n< {whole}\n"));
    folder.write("in/a.txt", format!("curl -d @{whole} {url}\n"));
    for args in [
        &["load", "-s", "in/plain.hurl", "--setup", "in/x.hurl", "-n", "1"][..],
        &["load", "-s", "in/plain.hurl", "--teardown", "in/x.hurl", "-n", "1"],
        &["load", "-s", "mix.toml", "-n", "1"],
        &["load", "-s", "in/x.hurl", "--on", "local", "--agents", "2", "-n", "4", "-c", "2"],
        &["load", "-s", "in/a.json", "-n", "1"],
        &["run", "in/a.json"],
        &["run", "in/a.http"],
        &["run", "in/a.txt"],
    ] {
        let done = folder.run(args);
        assert_eq!(done.code, 2, "{args:?}: {}{}", done.stdout, done.stderr);
        assert!(done.stderr.contains("--file-root"), "{args:?}: {}", done.stderr);
    }
    assert!(server.seen().is_empty(), "{}", sent(&server));
    for file in ["in/a.json", "in/a.http", "in/a.txt"] {
        let done = folder.run(&["import", file]);
        assert!(done.stderr.contains("reads local files: ") && done.stderr.contains("outside.txt"), "{}", done.stderr);
    }
    // A response never chooses a file.
    folder.write(
        "in/y.hurl",
        "GET {{host}}/\nHTTP 200\n[Captures]\nname: header \"X-Name\"\n\nPOST {{host}}/\nfile,{{name}};\n",
    );
    let done = folder.run(&["run", "in/y.hurl", "--variable", &host]);
    assert!(done.code == 2 && done.stderr.contains("y.hurl:7:"), "{}", done.stderr);
}
