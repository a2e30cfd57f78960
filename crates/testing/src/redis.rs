//! Real Redis server for one test, in a folder of its own, on a Unix socket; and a TCP proxy that simulates network
//! failures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "a test waits for a program that does not report when it is ready")]
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    missing_debug_implementations,
    reason = "each test uses its part of this"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::tied::spawn_tied;

pub struct RedisServer {
    folder: tempfile::TempDir,
    child: Option<Child>,
    args: Vec<String>,
    /// TLS port, if any.
    pub tls_port: u16,
}

/// Timeout of the start on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Attempts to get a free port, which another process may take.
const TRIES: usize = 20;

impl RedisServer {
    /// Server with a sync each second. None without redis-server, which skips the test then.
    pub fn start() -> Option<Self> {
        Self::with(&["--appendonly", "yes", "--appendfsync", "everysec"])
    }

    pub fn with(args: &[&str]) -> Option<Self> {
        let mut server = Self::prepared(args)?;
        server.begin();
        Some(server)
    }

    /// Server that also listens for TLS on a port of 127.0.0.1.
    pub fn with_tls(args: &[&str]) -> Option<Self> {
        for _ in 0..TRIES {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut server = Self::prepared(&[args, &["--tls-port", &port.to_string()]].concat())?;
            server.tls_port = port;
            if server.tries_to_begin() {
                return Some(server);
            }
        }
        panic!("redis-server takes no port for TLS: {args:?}");
    }

    fn prepared(args: &[&str]) -> Option<Self> {
        if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            skip_without_server();
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Some(Self { folder, child: None, args, tls_port: 0 })
    }

    /// Starts the server, also again with its data.
    pub fn begin(&mut self) {
        assert!(self.tries_to_begin(), "redis-server ended by itself: {:?}", self.args);
    }

    /// Whether the server runs.
    fn tries_to_begin(&mut self) -> bool {
        let _ = std::fs::remove_file(self.socket());
        let mut command = Command::new("redis-server");
        command
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .arg(self.socket())
            .arg("--dir")
            .arg(self.folder.path());
        command.args(&self.args).stdout(Stdio::null());
        let child = self.child.insert(spawn_tied(&mut command).unwrap());
        let id = child.id();
        let begun = Instant::now();
        while !self.try_say(&["PING"]).is_ok_and(|said| said.starts_with("+PONG")) {
            let ended = self.child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some());
            if ended {
                return false;
            }
            assert!(begun.elapsed() < TIMEOUT, "redis-server does not begin: {id}");
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    /// Snapshot of its data; it must have no append-only file.
    pub fn snapshot(&self) -> Vec<u8> {
        assert!(self.say(&["SAVE"]).starts_with("+OK"), "it keeps nothing");
        std::fs::read(self.folder().join("dump.rdb")).unwrap()
    }

    /// Replaces the server by another one with the data of a snapshot.
    pub fn fail_over(&mut self, snapshot: &[u8]) {
        self.kill();
        std::fs::write(self.folder().join("dump.rdb"), snapshot).unwrap();
        self.begin();
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Address with this query.
    pub fn url(&self, asked: &str) -> String {
        let end = if asked.is_empty() { String::new() } else { format!("?{asked}") };
        format!("redis+unix://{}{end}", self.socket().display())
    }

    /// Process ID.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Kills the server, as a power cut except for unsynced writes.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends a command, as `redis-cli` does; returns the raw reply.
    pub fn say(&self, words: &[&str]) -> String {
        self.try_say(words).unwrap()
    }

    /// Field of a hash; empty without it.
    pub fn field(&self, key: &str, field: &str) -> String {
        self.say(&["HGET", key, field]).lines().nth(1).unwrap_or_default().to_owned()
    }

    /// The same as a number.
    pub fn number(&self, key: &str, field: &str) -> i64 {
        self.field(key, field).parse().unwrap_or(0)
    }

    /// Members of a set.
    pub fn members(&self, key: &str) -> Vec<String> {
        let said = self.say(&["SMEMBERS", key]);
        said.lines().filter(|line| !line.starts_with(['*', '$'])).map(str::to_owned).collect()
    }

    fn try_say(&self, words: &[&str]) -> std::io::Result<String> {
        let mut socket = UnixStream::connect(self.socket())?;
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            text += &format!("${}\r\n{word}\r\n", word.len());
        }
        text += "*1\r\n$4\r\nQUIT\r\n";
        socket.write_all(text.as_bytes())?;
        let mut said = Vec::new();
        socket.read_to_end(&mut said)?;
        let said = String::from_utf8_lossy(&said);
        // The last reply is to QUIT.
        Ok(said.strip_suffix("+OK\r\n").unwrap_or(&said).to_owned())
    }
}

/// Skips a test on a machine without redis-server: prints a line that the test harness does not capture. In continuous
/// integration (`CI` is set) the test fails instead.
fn skip_without_server() {
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!is_ci, "no redis-server; install redis-server (CI is set, so its tests must not be skipped)");
    let thread = std::thread::current();
    let _ = writeln!(std::io::stderr(), "skipped: no redis-server ({})", thread.name().unwrap_or("a test"));
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Proxy between a store and its server.
pub struct Proxy {
    address: SocketAddr,
    manner: Arc<Mutex<Manner>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Passes everything.
    Pass,
    /// Delays each piece of the server's replies, between these bounds.
    Slow(Duration, Duration),
    /// Passes requests, and loses replies and the connection.
    Mute,
    /// Passes nothing, without an error.
    Hang,
    /// Closes connections.
    Cut,
}

impl Proxy {
    pub fn start(server: &RedisServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let manner = Arc::new(Mutex::new(Manner::Pass));
        let (of_server, shared) = (server.socket(), Arc::clone(&manner));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let manner = Arc::clone(&shared);
                let Ok(server) = UnixStream::connect(&of_server) else { continue };
                if *manner.lock().unwrap() == Manner::Cut {
                    continue;
                }
                let _ = client.set_nodelay(true);
                let (back_from, back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let of_back = Arc::clone(&manner);
                std::thread::spawn(move || pipe(back_from, back_to, &of_back, true));
                std::thread::spawn(move || pipe(client, server, &manner, false));
            }
        });
        Self { address, manner }
    }

    pub fn set(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    /// `HOST:PORT`
    pub fn place(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self, asked: &str) -> String {
        format!("redis://{}?{asked}", self.place())
    }
}

/// One direction of a connection.
trait End: Read + Write {
    fn looks_every(&self, time: Duration);
    fn close(&self);
}

impl End for TcpStream {
    fn looks_every(&self, time: Duration) {
        let _ = self.set_read_timeout(Some(time));
    }

    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl End for UnixStream {
    fn looks_every(&self, time: Duration) {
        let _ = self.set_read_timeout(Some(time));
    }

    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

fn pipe(mut from: impl End, mut to: impl End, manner: &Mutex<Manner>, is_back: bool) {
    from.looks_every(Duration::from_millis(20));
    let mut buffer = vec![0; 1 << 16];
    let mut pieces = 0;
    loop {
        let read = from.read(&mut buffer);
        let manner_now = *manner.lock().unwrap();
        match (manner_now, read) {
            (Manner::Cut, _) | (_, Ok(0)) => break,
            (Manner::Hang, Ok(_)) => {}
            (Manner::Mute, Ok(_)) if is_back => break,
            (_, Ok(length)) => {
                if let (Manner::Slow(least, most), true) = (manner_now, is_back) {
                    // All modes in between, in a mixed order.
                    pieces += 1;
                    std::thread::sleep(least + (most - least) * (pieces * 7 % 11) / 10);
                }
                if to.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
            // A read with a timeout is interrupted when this process was stopped for a while.
            (_, Err(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            (_, Err(_)) => break,
        }
    }
    from.close();
    to.close();
}
