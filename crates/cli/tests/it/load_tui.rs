//! The full-screen view, in a terminal of `script` (util-linux).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use weir_testing::{Reply, Server, Weir, spawn_tied, until, weir_path};

/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command in a terminal of 80 columns and 24 rows.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    output: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn start(weir: &Weir, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
        let line = format!("stty rows 24 cols 80; exec '{}' {}", weir_path().display(), quoted.join(" "));
        let mut command = Command::new("script");
        command.args(["-qfec", &line, "/dev/null"]).current_dir(weir.path("")).env_remove("NO_COLOR");
        command.env("TERM", "xterm-256color").envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = spawn_tied(&mut command).unwrap();
        let output: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (mut from, to) = (child.stdout.take().unwrap(), Arc::clone(&output));
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                to.lock().unwrap().extend(&buffer[..n]);
            }
        });
        Self { keys: child.stdin.take().unwrap(), child, output }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }

    fn wait_for(&self, text: &str) {
        until(text, PATIENCE, || self.text().contains(text));
    }

    /// The view as text, by the key for it.
    fn copy(&mut self) -> String {
        let copies = |text: &str| text.matches("c goes back").count();
        let before = copies(&self.text());
        self.press("c");
        until("the copy", PATIENCE, || copies(&self.text()) > before);
        // With the end of the line, and without what comes when it goes back.
        until("all of it", PATIENCE, || self.text().trim_end().ends_with("goes back to the screen"));
        let text = self.text();
        self.press("c");
        text.rsplit("\u{1b}[?25h").next().unwrap().to_owned()
    }

    fn finish(mut self) -> (Option<i32>, String) {
        let mut code = None;
        until("the end", PATIENCE, || {
            code = self.child.try_wait().unwrap().map(|status| status.code());
            code.is_some()
        });
        // The view has the word, too.
        let is_reported =
            |text: &str| text.rsplit("\u{1b}[?1049l").next().is_some_and(|rest| rest.contains("response"));
        until("the end of the output", PATIENCE, || is_reported(&self.text()));
        let text = self.text();
        // Its response would come among the keys.
        assert!(!text.contains("\u{1b}[6n"), "the terminal is asked for its cursor");
        (code.unwrap(), text)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_view_is_copied_changed_and_left() {
    let server = Server::start(|seen| if seen.number % 5 == 4 { Reply::status(503, "") } else { Reply::ok("hello") });
    let weir = Weir::new();
    let mut terminal =
        Terminal::start(&weir, &["load", &server.url("/items"), "--rate", "50", "-d", "10m", "--tui"], &[]);
    server.wait_for("requests", |counts| counts.requests > 60);
    let copy = terminal.copy();
    // The copy may be of a moment with few responses, of which less than a fifth have failed.
    for part in ["GET http://127.0.0.1", "50/s set", "of 600s", "failed (", "throughput", "status 503", "p95"] {
        assert!(copy.contains(part), "{part}\n{copy}");
    }
    assert!(copy.lines().all(|line| line.trim_end().chars().count() <= 80), "{copy}");
    terminal.press("+");
    assert!(terminal.copy().contains("55/s set"));
    terminal.press(" ");
    assert!(terminal.copy().contains("PAUSED"));
    terminal.press("q");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    let (screen, report) = text.rsplit_once("\u{1b}[?1049l").unwrap();
    assert!(screen.contains("\u{1b}[?1049h") && screen.contains("\u{1b}[38;5;1;"), "failures are red");
    assert!(report.contains("requests") && report.contains("changed 3 times"), "{report}");
}

#[test]
fn without_colors_there_are_none_and_steps_have_rows() {
    // Not as many as it can take: the view would wait for the processor, too.
    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(20)));
    let weir = Weir::new();
    let url = server.url("");
    weir.write("visit.hurl", format!("# @name one\nGET {url}/1\nHTTP 404\n\n# @name two\nGET {url}/2\nHTTP 200\n"));
    let flags = ["load", "-s", "visit.hurl", "--users", "2", "-d", "10m", "--continue-on-error", "--tui"];
    let mut terminal = Terminal::start(&weir, &flags, &[("NO_COLOR", "1")]);
    server.wait_for("requests", |counts| counts.requests > 10);
    terminal.wait_for("\u{1b}[?1049h");
    let has_sample = |copy: &str| copy.contains(" one ") && copy.contains(" two ") && copy.contains("one: ");
    until("steps and the first failure", PATIENCE, || has_sample(&terminal.copy()));
    terminal.press("q");
    let (code, text) = terminal.finish();
    // No iteration has succeeded.
    assert_eq!(code, Some(3), "{text}");
    let screen = text.rsplit_once("\u{1b}[?1049l").unwrap().0;
    assert!(!screen.contains("\u{1b}[38;"), "{screen:?}");
}

#[test]
fn without_a_terminal_it_is_one_line() {
    let weir = Weir::new();
    let output = weir.run(&["load", "http://127.0.0.1:1/", "-n", "1", "--tui"]);
    assert!(output.code == 2 && output.one_line().starts_with("--tui needs a terminal"), "{output:?}");
}

/// Ctrl-Z in the view gives the terminal back before the process stops, and takes it again when it goes on.
#[test]
fn the_terminal_is_given_back_while_the_process_is_stopped() {
    let (server, weir) = (Server::hello(), Weir::new());
    let mut terminal = Terminal::start(&weir, &["load", &server.url("/"), "--rate", "20", "-d", "10m", "--tui"], &[]);
    server.wait_for("requests", |counts| counts.requests > 20);
    let count = |terminal: &Terminal, what: &str| terminal.text().matches(what).count();
    let (enter, leave) = ("\u{1b}[?1049h", "\u{1b}[?1049l");
    assert_eq!((count(&terminal, enter), count(&terminal, leave)), (1, 0));
    let load = child_of(terminal.child.id());
    terminal.press("\u{1a}");
    // What makes the terminal stops as well, a moment later.
    let processes = [terminal.child.id(), load];
    until("the stop", PATIENCE, || processes.iter().all(|pid| state_of(*pid) == Some('T')));
    let processes = processes.map(|pid| pid.to_string());
    assert!(Command::new("kill").arg("-CONT").args(processes).status().unwrap().success());
    until("the screen", PATIENCE, || count(&terminal, enter) == 2);
    assert_eq!(count(&terminal, leave), 1);
    let before = server.counts().requests;
    server.wait_for("further requests", |counts| counts.requests > before + 20);
    // Keys are read as before.
    terminal.press("q");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
}

/// The only child of a process.
fn child_of(pid: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().next().unwrap().parse().unwrap()
}

/// State of a process, as `/proc` has it.
fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}
