//! Configurations of several files and with environment variables, through the command.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use weir_testing::{Output, Running, Server, Serving, Weir, until};

const PATIENCE: Duration = Duration::from_secs(20);

fn with_env(weir: &Weir, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command: Command = weir.command(args);
    command.envs(variables.iter().copied());
    Running::new(&mut command).finish()
}

#[test]
fn routes_of_several_files_are_served_and_reloaded() {
    let server = Server::hello();
    let weir = Weir::new();
    std::fs::create_dir(weir.path("routes")).unwrap();
    weir.write("gate.toml", "include = [\"up*.toml\", \"routes/*.toml\"]\n");
    weir.write("upstream.toml", format!("upstreams.backend.urls = [\"{}\"]\n", server.url("")));
    weir.write("routes/a.toml", "[[routes]]\nmatch = { path = \"/a\" }\n");
    let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
    assert_eq!((gate.get("/a").text(), gate.get("/b").status), ("hello", 404));
    gate.weir.write("routes/b.toml", "[[routes]]\nmatch = { path = \"/b\" }\n");
    gate.signal(Signal::HUP);
    until("the other file's route", PATIENCE, || gate.get("/b").status == 200);
    gate.weir.write("routes/c.toml", "[[routes]]\nmatch = { path = \"c\" }\n");
    gate.signal(Signal::HUP);
    let output = gate.stop();
    assert!(output.stderr.contains("routes/c.toml:2:18: routes[0].match.path: "), "{}", output.stderr);
    assert!(output.stderr.ends_with("the old one stays\n"), "{}", output.stderr);
}

#[test]
fn check_and_diff_see_included_files_and_variables() {
    let weir = Weir::new();
    for folder in ["old", "new"] {
        std::fs::create_dir(weir.path(folder)).unwrap();
        weir.write(&format!("{folder}/gate.toml"), "include = [\"${PART:-part}.toml\"]\nworkers = \"${WORKERS:-1}\"\n");
        let path = if folder == "old" { "/a" } else { "/b" };
        weir.write(
            &format!("{folder}/part.toml"),
            format!(
                "upstreams.backend.urls = [\"http://${{HOST_NAME}}\"]\n[[routes]]\nmatch = {{ path = \"{path}\" }}\n"
            ),
        );
    }
    let host = ("HOST_NAME", "127.0.0.1:9");
    let output = with_env(&weir, &["gate", "check", "old/gate.toml"], &[host]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "old/gate.toml: 1 route, 1 upstream, 1 policy: valid\n"));
    let output = with_env(&weir, &["gate", "check", "old/gate.toml"], &[host, ("WORKERS", "many")]);
    assert_eq!(output.code, 2);
    assert_eq!(
        output.stderr,
        "weir: old/gate.toml:2:11: workers: invalid whole number \"${WORKERS:-1}\"; write one from 1 to 256\n"
    );
    let output = with_env(&weir, &["gate", "check", "old/gate.toml"], &[]);
    assert_eq!(
        (output.code, output.one_line()),
        (
            2,
            "old/part.toml:1:27: upstreams.backend.urls[0]: the environment variable HOST_NAME is not set; set it, or \
             give a default: \"${HOST_NAME:-default}\""
        )
    );
    let output = with_env(&weir, &["gate", "check", "old/gate.toml"], &[host, ("PART", "none")]);
    assert!(output.stderr.contains("old/gate.toml:1:12: include[0]: cannot read old/none.toml: "), "{}", output.stderr);
    let output = with_env(&weir, &["gate", "diff", "old/gate.toml", "new/gate.toml"], &[host]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "- route /a: from the next call on\n+ route /b: from the next call on\n")
    );
}

#[test]
fn files_that_an_included_file_names_are_beside_it() {
    let weir = Weir::new();
    std::fs::create_dir(weir.path("part")).unwrap();
    weir.write("gate.toml", "include = [\"part/one.toml\"]\n");
    weir.write("part/order.json", r#"{"type": "object"}"#);
    weir.write(
        "part/one.toml",
        "upstreams.backend.urls = [\"http://127.0.0.1:9\"]\n[[routes]]\nmatch = { path = \"/\" }\n\
         policy = { success = { schema = \"order.json\" } }\n",
    );
    let output = weir.run(&["gate", "check", "gate.toml"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}
