//! SIGUSR2: a new process takes the place of a running gateway.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs::File;
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weir_testing::{Gate, Raw, Reply, Running, Server, Weir, load, running_in, spawn_tied, until};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway and the processes that take its place, of which the first alone is this test's.
struct Generations {
    weir: Weir,
    first: Child,
}

impl Generations {
    /// A gateway of `gate.toml`, whose output is in files.
    fn start(config: &str, args: &[&str], environment: &[(&str, &Path)]) -> Self {
        let weir = Weir::new();
        weir.write("gate.toml", config);
        let mut command = weir.command(&[&["gate", "--config", "gate.toml"], args].concat());
        command.envs(environment.iter().copied());
        command.stdout(File::create(weir.path("stdout")).unwrap()).stderr(File::create(weir.path("stderr")).unwrap());
        let first = spawn_tied(command.stdin(Stdio::null())).unwrap();
        let generations = Self { weir, first };
        until("the first process", PATIENCE, || generations.announced().len() == 1);
        generations
    }

    /// Where each process has said that it listens.
    fn announced(&self) -> Vec<Value> {
        self.weir.read("stdout").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn url(&self) -> String {
        self.announced()[0]["listening"].as_str().unwrap().to_owned()
    }

    fn address(&self) -> String {
        self.url().trim_start_matches("http://").to_owned()
    }

    fn get(&self, path: &str) -> u16 {
        Raw::connect(&self.address()).get(path).status
    }

    /// Process IDs, of which the last one is that of the process that accepts connections.
    fn pids(&self) -> Vec<Pid> {
        let notes = self.weir.read("stderr");
        let later =
            notes.lines().filter_map(|line| line.strip_prefix("weir: process ")?.split(' ').next()?.parse().ok());
        std::iter::once(self.first.id().cast_signed()).chain(later).filter_map(Pid::from_raw).collect()
    }

    /// Processes that have not ended.
    fn running(&self) -> Vec<Pid> {
        running_in(&self.weir.path(""))
    }

    fn signal(&self, signal: Signal) {
        kill_process(*self.pids().last().unwrap(), signal).unwrap();
    }

    /// Has a new process take the place of the last one.
    fn replace(&self) {
        let count = self.pids().len();
        self.signal(Signal::USR2);
        until("the next process", PATIENCE, || self.pids().len() == count + 1);
    }

    /// Ends the last process, which this one has not started, and waits for the end of all.
    fn stop(self) {
        self.stop_and_check(|| {});
    }

    /// The same, and then checks what they have left.
    fn stop_and_check(mut self, check: impl FnOnce()) {
        self.signal(Signal::TERM);
        assert_eq!(self.first.wait().unwrap().code(), Some(0), "{}", self.weir.read("stderr"));
        until("the end of all processes", PATIENCE, || self.running().is_empty());
        check();
    }
}

/// A gateway on a free port.
fn to(url: &str, path: &str) -> String {
    format!(
        "listen = \"127.0.0.1:0\"\nupstreams.backend.urls = [\"{url}\"]\n[[routes]]\nmatch = {{ path = \"{path}\" }}\n"
    )
}

#[test]
fn a_new_process_takes_the_place_without_dropping_a_call() {
    let held = Gate::default();
    let server = Server::start({
        let held = held.clone();
        move |seen| {
            if seen.line().contains("/held") {
                Reply::nothing().wait_for(&held).send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nheld")
            } else {
                Reply::ok("fast")
            }
        }
    });
    let gate = Generations::start(&to(&server.url(""), "/{*rest}"), &["--grace", "1h"], &[]);
    let (mut idle, mut busy) = (Raw::connect(&gate.address()), Raw::connect(&gate.address()));
    let mut balancer = Raw::connect(&gate.address());
    assert_eq!(balancer.get("/healthz").status, 200);
    assert_eq!(idle.get("/a").header("connection"), None);
    busy.send("GET /held HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the held call", PATIENCE, || server.requests() == 2);
    // The new process reads the file as it is now.
    gate.weir.write("gate.toml", to(&server.url(""), "/new"));
    gate.replace();
    assert_eq!(gate.announced()[1]["listening"], gate.url(), "the port is kept");
    until("the new process alone", PATIENCE, || gate.get("/a") == 404);
    assert_eq!(gate.get("/new"), 200);
    let last = idle.get("/a");
    assert_eq!((last.text(), last.header("connection")), ("fast", Some("close")), "the old process serves it");
    assert!(idle.rest().is_empty());
    let check = balancer.get("/healthz");
    assert_eq!((check.status, check.header("connection")), (200, Some("close")), "the service is not about to stop");
    held.open();
    let last = busy.answer();
    assert_eq!((last.text(), last.header("connection")), ("held", Some("close")));
    gate.stop();
}

#[test]
fn no_call_fails_while_processes_change_under_load() {
    let server = Server::hello();
    for workers in ["1", "2"] {
        let gate = Generations::start(&to(&server.url(""), "/{*rest}"), &["--workers", workers], &[]);
        let url = gate.url();
        let run = std::thread::scope(|scope| {
            let load = scope.spawn(|| load(&url, &["-r", "500", "-c", "20", "-d", "3s"]));
            for _ in 0..3 {
                gate.replace();
            }
            load.join().unwrap()
        });
        assert_eq!((run.requests.failed, run.requests.ok >= 1400), (0, true), "{workers}: {:?}", run.failures);
        gate.stop();
    }
}

#[test]
fn a_new_process_that_does_not_start_changes_nothing() {
    let server = Server::hello();
    let gate = Generations::start(&to(&server.url(""), "/a"), &[], &[]);
    gate.weir.write("gate.toml", "upstreams = 1");
    gate.signal(Signal::USR2);
    let says = |what: &str| gate.weir.read("stderr").contains(what);
    until("the error", PATIENCE, || {
        says("SIGUSR2: the new process ended before it accepted connections; this process goes on")
    });
    assert!(says("weir: gate.toml:1:"), "{}", gate.weir.read("stderr"));
    assert_eq!((gate.get("/a"), gate.announced().len()), (200, 1));
    // And may be tried again.
    gate.weir.write("gate.toml", to(&server.url(""), "/b"));
    gate.replace();
    until("the new process alone", PATIENCE, || gate.get("/b") == 200 && gate.get("/a") == 404);
    gate.stop();
}

#[test]
fn listeners_keep_their_sockets_and_new_ones_are_opened() {
    let server = Server::hello();
    let config = |more: &str| {
        format!(
            "admin = \"127.0.0.1:0\"\nupstreams.backend.urls = [\"{}\"]\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n\
             [[listeners]]\nname = \"local\"\naddress = \"unix:gate.sock\"\n{more}",
            server.url("")
        )
    };
    let tcp = |name: &str, address: &str| format!("[[listeners]]\nname = \"{name}\"\naddress = \"{address}\"\n");
    let (first, second) = (tcp("first", "127.0.0.1:0"), tcp("second", "localhost:0"));
    let gate = Generations::start(&config(&first), &[], &[]);
    let path = gate.weir.path("gate.sock");
    let old = gate.announced()[0]["listeners"]["first"].as_str().unwrap().to_owned();
    gate.weir.write("gate.toml", config(&second));
    gate.replace();
    let new = gate.announced()[1].clone();
    assert_eq!(new["admin"], gate.announced()[0]["admin"]);
    until("the end of the old process", PATIENCE, || gate.running().len() == 1);
    // Nobody accepts what the new process has no listener for, so nobody waits there.
    assert!(TcpStream::connect(old.trim_start_matches("http://")).is_err());
    let added = new["listeners"]["second"].as_str().unwrap().trim_start_matches("http://").to_owned();
    assert_eq!(Raw::connect(&added).get("/a").text(), "hello");
    assert_eq!(Raw::unix(&path).get("/a").text(), "hello");
    let admin = new["admin"].as_str().unwrap().trim_start_matches("http://").to_owned();
    let mut client = Raw::connect(&admin);
    client.send("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().text(), "ready\n");
    gate.stop_and_check(|| assert!(!path.exists(), "the last process removes its socket"));
}

#[test]
fn systemd_learns_of_each_state_and_process() {
    let server = Server::hello();
    let folder = Weir::new();
    let path = folder.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = || {
        let mut text = [0; 100];
        let length = socket.recv(&mut text).unwrap();
        String::from_utf8(text[..length].to_vec()).unwrap()
    };
    let gate = Generations::start(&to(&server.url(""), "/a"), &[], &[("NOTIFY_SOCKET", &path)]);
    assert_eq!(next(), "READY=1");
    gate.replace();
    assert_eq!(next(), "READY=1");
    assert_eq!(next(), format!("MAINPID={}", gate.pids()[1].as_raw_nonzero()));
    gate.stop();
    assert_eq!(next(), "STOPPING=1");
}

#[test]
fn a_variable_that_is_not_for_this_process_is_ignored_or_one_line() {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("gate.toml", to(&server.url(""), "/a"));
    let mut command = weir.command(&["gate", "--config", "gate.toml"]);
    let output = Running::new(command.env("WEIR_HANDOVER", "7").stdout(Stdio::piped())).finish();
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    assert!(output.one_line().starts_with("WEIR_HANDOVER: "), "{output:?}");
    let note = serde_json::json!({"parent": 1, "ready": 1, "sockets": {"127.0.0.1:0": [0]}}).to_string();
    let note = Path::new(&note).to_owned();
    Generations::start(&to(&server.url(""), "/a"), &[], &[("WEIR_HANDOVER", &note)]).stop();
}
