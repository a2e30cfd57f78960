//! `weir import` of curl's command lines, judged by bash and curl: both send the same, or what differs is listed.

mod export;
mod requests;

use std::process::Command;

use weir_testing::{Reply, Server, Weir};

use self::requests::{comparable, new_requests};

/// Commands, each below a line with `=` (the same) or `~` (listed) and its title.
const COMMANDS: &str = include_str!("commands.txt");

/// Files that commands name.
fn write_files(weir: &Weir) {
    weir.write("note.txt", "one\r\ntwo\n\"three\" + 4\n");
    weir.write("flat.txt", "b=2");
    weir.write("pairs.txt", "b=2\n");
    weir.write("data.json", "{\"a\": [1,\n 2]}\n");
    weir.write("a.png", b"\x89PNG\r\n\x1a\n\xff\0");
    weir.write("a b.txt", "spaced\n");
    weir.write("headers.txt", "X-One: 1\r\n# no\nX-Two: 2\n");
}

fn cases() -> Vec<(bool, &'static str, String)> {
    let mut cases: Vec<(bool, &str, String)> = Vec::new();
    for line in COMMANDS.lines() {
        match (line.strip_prefix("= "), line.strip_prefix("~ "), cases.last_mut()) {
            (Some(title), ..) => cases.push((true, title, String::new())),
            (_, Some(title), _) => cases.push((false, title, String::new())),
            (None, None, Some((.., text))) => text.push_str(&format!("{line}\n")),
            (None, None, None) => {}
        }
    }
    cases
}

#[test]
fn a_command_sends_what_curl_sends_or_lists_what_differs() {
    if Command::new("curl").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "no curl");
        println!("skipped: no curl");
        return;
    }
    let (weir, server) = (Weir::new(), Server::start(|_| Reply::ok("ok")));
    write_files(&weir);
    let mut failures = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 110, "{}", cases.len());
    for (number, (is_equal, title, text)) in cases.into_iter().enumerate() {
        let text = text.replace("URL", server.url("").trim_end_matches('/'));
        let script = format!("c{number}.sh");
        weir.write(&script, &text);
        let mut seen = 0;
        new_requests(&server, &mut seen);
        let mut bash = Command::new("bash");
        bash.arg(&script).current_dir(weir.path(".")).env("LC_ALL", "C.UTF-8").env_remove("PAGE");
        let judge = bash.output().unwrap();
        let of_curl = new_requests(&server, &mut seen);
        let (scenario, variables) = (format!("c{number}.hurl"), format!("c{number}.env"));
        let import = weir.run(&["import", &script, "-o", &scenario]);
        let mut args = vec!["run", &scenario];
        if weir.path(&variables).exists() {
            args.extend(["--variables-file", &variables]);
        }
        if import.code == 0 {
            weir.run(&args);
        }
        let of_weir = new_requests(&server, &mut seen);
        let is_listed = import.stderr.contains("left out") || import.code != 0;
        let is_same = comparable(&of_curl) == comparable(&of_weir);
        if !(is_same && !(is_equal && is_listed && !title.contains("ampersand"))) && (is_equal || !is_listed) {
            failures.push(format!(
                "{title}\n{text}curl: {:?}\n{}\nweir: {:?}\n{}{}\n",
                comparable(&of_curl),
                String::from_utf8_lossy(&judge.stderr).lines().last().unwrap_or_default(),
                comparable(&of_weir),
                import.stderr,
                std::fs::read_to_string(weir.path(&scenario)).unwrap_or_default(),
            ));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
