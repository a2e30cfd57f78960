//! A Redis server for one test: a real one, in a folder of its own, on a socket of the file system.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "a test waits for a program that tells nobody when it is ready")]
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    missing_debug_implementations,
    reason = "each test uses its part of this"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub struct RedisServer {
    folder: tempfile::TempDir,
    child: Option<Child>,
    args: Vec<String>,
}

/// A server takes longer to begin on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

impl RedisServer {
    /// One that syncs each second. None, with a line, where there is no redis-server.
    pub fn start() -> Option<Self> {
        Self::with(&["--appendonly", "yes", "--appendfsync", "everysec"])
    }

    pub fn with(args: &[&str]) -> Option<Self> {
        if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            eprintln!("skipped: there is no redis-server");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut server = Self { folder, child: None, args };
        server.begin();
        Some(server)
    }

    /// Starts it, or starts it again with what it has kept.
    pub fn begin(&mut self) {
        let _ = std::fs::remove_file(self.socket());
        let mut command = Command::new("redis-server");
        command
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .arg(self.socket())
            .arg("--dir")
            .arg(self.folder.path());
        command.args(&self.args).stdout(Stdio::null());
        self.child = Some(command.spawn().unwrap());
        let begun = Instant::now();
        while !self.try_say(&["PING"]).is_ok_and(|said| said.starts_with("+PONG")) {
            assert!(begun.elapsed() < PATIENCE, "redis-server does not begin");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Its address, with what comes after the `?`.
    pub fn url(&self, asked: &str) -> String {
        let end = if asked.is_empty() { String::new() } else { format!("?{asked}") };
        format!("redis+unix://{}{end}", self.socket().display())
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// As with a power cut, but for what the system has not written yet.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Asks it, as `redis-cli` does; the answer as it comes.
    pub fn say(&self, words: &[&str]) -> String {
        self.try_say(words).unwrap()
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
        Ok(String::from_utf8_lossy(&said).trim_end_matches("+OK\r\n").to_owned())
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Between a store and its server: passes on what is said, until it is told otherwise.
pub struct Proxy {
    socket: PathBuf,
    manner: Arc<Mutex<Manner>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// All goes through.
    Pass,
    /// Each piece that the server says takes so long.
    Slow(Duration),
    /// The server hears; what it says is lost, and the connection with it.
    Mute,
    /// Nothing goes through, and nobody is told.
    Hang,
    /// Connections are closed.
    Cut,
}

impl Proxy {
    pub fn start(server: &RedisServer) -> Self {
        let socket =
            server.folder().join(format!("proxy-{:?}.sock", std::thread::current().id()).replace(['(', ')'], ""));
        let listener = UnixListener::bind(&socket).unwrap();
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
                let (back_from, back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let of_back = Arc::clone(&manner);
                std::thread::spawn(move || pipe(back_from, back_to, &of_back, true));
                std::thread::spawn(move || pipe(client, server, &manner, false));
            }
        });
        Self { socket, manner }
    }

    pub fn set(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    pub fn url(&self, asked: &str) -> String {
        format!("redis+unix://{}?{asked}", self.socket.display())
    }
}

fn pipe(mut from: UnixStream, mut to: UnixStream, manner: &Mutex<Manner>, is_back: bool) {
    let _ = from.set_read_timeout(Some(Duration::from_millis(20)));
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut buffer);
        let manner_now = *manner.lock().unwrap();
        match (manner_now, read) {
            (Manner::Cut, _) | (_, Ok(0)) => break,
            (Manner::Hang, Ok(_)) => {}
            (Manner::Mute, Ok(_)) if is_back => break,
            (_, Ok(length)) => {
                if let (Manner::Slow(time), true) = (manner_now, is_back) {
                    std::thread::sleep(time);
                }
                if to.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
            (_, Err(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            (_, Err(_)) => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
