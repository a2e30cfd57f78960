//! `weir serve`, `weir gate` and `weir record`, running.

use std::fs;
use std::io::{BufRead, BufReader, PipeReader, Read, pipe};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::raw::{Answer, Raw};
use super::weir::{Output, Running, Weir, weir_path};

/// A service in a fresh folder. When it is dropped it is told to stop, and has to end in good order.
pub struct Serving {
    pub weir: Weir,
    /// `http://` and the address.
    pub url: String,
    /// HOST:PORT, or unix:PATH
    pub address: String,
    /// The line that says where it listens.
    pub announced: serde_json::Value,
    running: Option<Running>,
    stdout: BufReader<PipeReader>,
}

impl Serving {
    /// `weir serve ARGS...`, from the line on that says where it listens.
    pub fn start(args: &[&str]) -> Self {
        Self::start_in(Weir::new(), args)
    }

    /// The same with words that spaces separate.
    pub fn start_line(line: &str) -> Self {
        Self::start(&line.split(' ').collect::<Vec<_>>())
    }

    /// The same in a folder that has files in it.
    pub fn start_in(weir: Weir, args: &[&str]) -> Self {
        Self::run(weir, &[&["serve"], args].concat())
    }

    /// `weir gate ARGS...`, on a free port if they say none.
    pub fn gate(args: &[&str]) -> Self {
        Self::gate_in(Weir::new(), args)
    }

    /// The same in a folder that has files in it.
    pub fn gate_in(weir: Weir, args: &[&str]) -> Self {
        let listen: &[_] = if args.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        Self::run(weir, &[&["gate"], listen, args].concat())
    }

    /// `weir gate --config gate.toml ARGS...`, on the file's listeners.
    pub fn gate_file(weir: Weir, args: &[&str]) -> Self {
        Self::run(weir, &[&["gate", "--config", "gate.toml"], args].concat())
    }

    /// The address, HOST:PORT or unix:PATH, of one of several listeners.
    pub fn listener(&self, name: &str) -> String {
        let url = self.announced["listeners"][name].as_str().unwrap();
        url.split_once("://").map_or(url, |(_, address)| address).to_owned()
    }

    /// `weir gate ARGS...` on a free port, which reads the file `hosts` of its folder in place of `/etc/hosts`, and
    /// `resolv.conf`, if there is one, in place of `/etc/resolv.conf`.
    pub fn gate_with_hosts(weir: Weir, args: &[&str]) -> Self {
        Self::with_hosts(weir, &[&["gate", "--listen", "127.0.0.1:0"], args].concat())
    }

    /// `weir ARGS...` in the same way.
    pub fn with_hosts(weir: Weir, args: &[&str]) -> Self {
        let command = Self::command_with_hosts(&weir, args);
        Self::of(weir, command)
    }

    /// The command of `weir ARGS...` in the same way.
    pub fn command_with_hosts(weir: &Weir, args: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        let servers =
            if weir.path("resolv.conf").exists() { "mount --bind resolv.conf /etc/resolv.conf && " } else { "" };
        let script = format!("mount --bind hosts /etc/hosts && {servers}exec \"$@\"");
        command.args([&script, "sh"]).arg(weir_path());
        command.args(args).current_dir(weir.path(""));
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// `weir record ARGS...` on a free port; its certificates are in the folder, too.
    pub fn record_in(weir: Weir, args: &[&str]) -> Self {
        let folder: &[_] = if args.contains(&"--upstream") { &[] } else { &["--ca-dir", "ca"] };
        Self::run(weir, &[&["record", "--listen", "127.0.0.1:0"], folder, args].concat())
    }

    fn run(weir: Weir, args: &[&str]) -> Self {
        let command = weir.whole_command(args);
        Self::of(weir, command)
    }

    fn of(weir: Weir, mut command: Command) -> Self {
        let (reader, writer) = pipe().unwrap();
        command.stdout(writer);
        let running = Running::new(&mut command);
        // With it goes our copy of the writer.
        drop(command);
        let mut stdout = BufReader::new(reader);
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let Ok(line) = serde_json::from_str::<serde_json::Value>(&line) else {
            panic!("{line:?} does not say where it listens: {:?}", running.finish());
        };
        let url = line["listening"].as_str().unwrap().to_owned();
        let address = url.split_once("://").map_or(url.as_str(), |(_, address)| address).to_owned();
        Self { weir, url, address, announced: line, running: Some(running), stdout }
    }

    /// A new connection.
    pub fn connect(&self) -> Raw {
        Raw::connect(&self.address)
    }

    /// On a connection of its own.
    pub fn get(&self, path: &str) -> Answer {
        self.connect().get(path)
    }

    /// On a connection of its own.
    pub fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.connect().post(path, body)
    }

    /// Sends bytes on a connection of its own, and gives all that comes until the service closes it.
    pub fn raw(&self, bytes: impl AsRef<[u8]>) -> Vec<u8> {
        let mut connection = self.connect();
        // A service that has seen enough may close before it has all.
        let _ = connection.try_send(bytes);
        connection.rest()
    }

    /// A figure of /metrics, by its name and labels as they stand there: `weir_connections_total`; 0 if it is not
    /// there.
    pub fn metric(&self, name: &str) -> f64 {
        let answer = self.get("/metrics");
        let line = answer.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    pub fn running(&mut self) -> &mut Running {
        self.running.as_mut().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.running.as_ref().unwrap().pid()
    }

    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }

    pub fn signal(&self, signal: Signal) {
        self.running.as_ref().unwrap().signal(signal);
    }

    /// Tells it to stop; it ends when it owes nothing any more.
    pub fn stop(self) -> Output {
        self.signal(Signal::TERM);
        self.finish()
    }

    /// Ctrl-C; and its folder.
    pub fn interrupt(mut self) -> (Output, Weir) {
        self.signal(Signal::INT);
        let weir = std::mem::replace(&mut self.weir, Weir::new());
        (self.finish(), weir)
    }

    /// Waits for its end. The output has what stdout said after the first line.
    pub fn finish(mut self) -> Output {
        let running = self.running.take().unwrap();
        let mut output = running.finish();
        self.stdout.read_to_string(&mut output.stdout).unwrap();
        output
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        if std::thread::panicking() {
            return;
        }
        running.signal(Signal::TERM);
        let output = running.finish();
        assert_eq!(output.code, 0, "{output:?}");
    }
}
