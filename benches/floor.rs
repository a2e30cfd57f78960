//! The floor: what a closed loop over HTTP costs when nothing is measured.
//!
//! One thread, one epoll instance, N keep-alive connections. Each writes a fixed request, counts the bytes that come
//! back until there are as many as the first response had, and writes again. It parses nothing after the first
//! response, keeps no histogram and reads no clock per request, so what remains is the price of the two system calls
//! and of loopback TCP. A load generator is judged by how little it adds.
//!
//! It trusts its server: every response must have the same length, and nothing may come unasked.
//!
//! With `--websocket BYTES` the requests are messages of this length to a WebSocket that echoes them.
//!
//! `floor --port 8080 -c 100 -d 3 [--pipeline 4] [--websocket 15]`
#![allow(unsafe_code, reason = "the floor calls libc directly, so that no wrapper can be part of what it costs")]
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::disallowed_methods, reason = "this is an edge: it reads the clock to time a run")]

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::{mem, ptr};

const EVENTS: usize = 1024;
const BUFFER: usize = 256 * 1024;
/// Marks the timer among the events; connections are marked by their index.
const TIMER: u64 = u64::MAX;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench` starts every bench with this flag; this one is a tool that needs a server.
    if args.is_empty() || args.iter().any(|arg| arg == "--bench") {
        eprintln!("usage: floor --port P -c CONNECTIONS -d SECONDS [--pipeline DEPTH] [--websocket BYTES]");
        return ExitCode::SUCCESS;
    }
    match Options::parse(&args).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::from(2)
        }
    }
}

struct Options {
    port: u16,
    connections: usize,
    seconds: f64,
    depth: usize,             // requests in flight per connection, >= 1
    websocket: Option<usize>, // length of the messages of a WebSocket, in [1, 125] bytes
}

impl Options {
    fn parse(args: &[String]) -> io::Result<Self> {
        let mut options = Self { port: 0, connections: 1, seconds: 1.0, depth: 1, websocket: None };
        for pair in args.chunks(2) {
            let [flag, value] = pair else { return Err(invalid(format!("{} needs a value", pair[0]))) };
            let bad = || invalid(format!("{flag} {value}: not a number in range"));
            match flag.as_str() {
                "--port" => options.port = value.parse().map_err(|_| bad())?,
                "-c" => options.connections = value.parse().map_err(|_| bad())?,
                "-d" => options.seconds = value.parse().map_err(|_| bad())?,
                "--pipeline" => options.depth = value.parse().map_err(|_| bad())?,
                "--websocket" => {
                    let bytes = value.parse().ok().filter(|bytes| (1..126).contains(bytes));
                    options.websocket = Some(bytes.ok_or_else(bad)?);
                }
                _ => return Err(invalid(format!("unknown flag {flag}"))),
            }
        }
        if options.port == 0 || options.connections == 0 || options.depth == 0 || options.seconds <= 0.0 {
            return Err(invalid("--port, -c, -d and --pipeline must be above 0".to_owned()));
        }
        Ok(options)
    }

    fn request(&self) -> Vec<u8> {
        match self.websocket {
            // A text frame with a mask of zeros.
            Some(bytes) => [&[0x81, 0x80 | bytes as u8, 0, 0, 0, 0][..], &vec![b'a'; bytes]].concat(),
            None => self.head("").into_bytes(),
        }
    }

    fn head(&self, fields: &str) -> String {
        format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{fields}\r\n", self.port)
    }
}

fn run(options: &Options) -> io::Result<()> {
    raise_file_limit();
    let (sockets, response_len) = connect(options)?;
    let epoll = Epoll::new(&sockets, options.seconds)?;
    let started = monotonic_s();
    let requests = drive(&epoll, &sockets, &options.request().repeat(options.depth), response_len * options.depth)?;
    let seconds = monotonic_s() - started;
    let requests = requests * options.depth as u64;
    let usage = usage();
    let cpu_us = seconds_of(usage.ru_utime).mul_add(1e6, seconds_of(usage.ru_stime) * 1e6);
    println!(
        "{{\"requests\":{requests},\"seconds\":{seconds:.6},\"cpu_us_per_request\":{:.4},\"max_rss_kb\":{}}}",
        cpu_us / requests as f64,
        usage.ru_maxrss
    );
    Ok(())
}

/// Opens every connection and learns on the first one how long a response is.
fn connect(options: &Options) -> io::Result<(Vec<TcpStream>, usize)> {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, options.port);
    let mut sockets = Vec::with_capacity(options.connections);
    for _ in 0..options.connections {
        let mut socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        if options.websocket.is_some() {
            upgrade(&mut socket, options)?;
        }
        sockets.push(socket);
    }
    // An echo comes back in a frame without a mask.
    let response_len = match options.websocket {
        Some(bytes) => bytes + 2,
        None => first_response(&mut sockets[0], &options.request())?,
    };
    for socket in &sockets {
        socket.set_nonblocking(true)?;
    }
    Ok((sockets, response_len))
}

/// Makes a connection a WebSocket, whose service sends nothing unasked.
fn upgrade(socket: &mut TcpStream, options: &Options) -> io::Result<()> {
    let fields = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    socket.write_all(options.head(fields).as_bytes())?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    if head.starts_with(b"HTTP/1.1 101") { Ok(()) } else { Err(invalid("there is no WebSocket".to_owned())) }
}

/// The length in bytes of the response to `request`: head and Content-Length.
fn first_response(socket: &mut TcpStream, request: &[u8]) -> io::Result<usize> {
    socket.write_all(request)?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    loop {
        let read = socket.read(&mut chunk)?;
        if read == 0 {
            return Err(invalid("the server closed the first connection".to_owned()));
        }
        bytes.extend_from_slice(&chunk[..read]);
        let Some(head) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let total = head + 4 + content_length(&bytes[..head])?;
        if bytes.len() >= total {
            return Ok(total);
        }
    }
}

fn content_length(head: &[u8]) -> io::Result<usize> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    head.lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
        .ok_or_else(|| invalid("the response has no Content-Length".to_owned()))
}

/// The loop itself. Returns the rounds done: one write, then all its responses.
fn drive(epoll: &Epoll, sockets: &[TcpStream], batch: &[u8], batch_len: usize) -> io::Result<u64> {
    let fds: Vec<i32> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
    let mut missing = vec![batch_len; fds.len()]; // bytes still to come, per connection
    let mut buffer = vec![0; BUFFER];
    // SAFETY: epoll_event is plain data; all zeroes is a valid value of it.
    let mut events: Vec<libc::epoll_event> = vec![unsafe { mem::zeroed() }; EVENTS];
    let mut rounds = 0;
    for &fd in &fds {
        write(fd, batch)?;
    }
    loop {
        for event in epoll.wait(&mut events)? {
            if event.u64 == TIMER {
                return Ok(rounds);
            }
            let index = event.u64 as usize;
            loop {
                let got = read(fds[index], &mut buffer)?;
                missing[index] = missing[index]
                    .checked_sub(got)
                    .ok_or_else(|| invalid("a response was longer than the first".to_owned()))?;
                // The events are edge-triggered, and only a full buffer can leave bytes behind.
                if got < BUFFER {
                    break;
                }
            }
            if missing[index] == 0 {
                missing[index] = batch_len;
                rounds += 1;
                write(fds[index], batch)?;
            }
        }
    }
}

/// The interest list, set up once: every connection edge-triggered, and a timer that ends the run, so that the loop
/// needs neither a clock nor epoll_ctl.
struct Epoll {
    fd: i32,
}

impl Epoll {
    fn new(sockets: &[TcpStream], seconds: f64) -> io::Result<Self> {
        // SAFETY: no pointers; the result is checked.
        let epoll = Self { fd: check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })? };
        for (index, socket) in sockets.iter().enumerate() {
            epoll.add(socket.as_raw_fd(), libc::EPOLLIN | libc::EPOLLET, index as u64)?;
        }
        epoll.add(timer(seconds)?, libc::EPOLLIN, TIMER)?;
        Ok(epoll)
    }

    fn add(&self, fd: i32, events: i32, mark: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: mark };
        // SAFETY: `event` lives through the call.
        check(unsafe { libc::epoll_ctl(self.fd, libc::EPOLL_CTL_ADD, fd, &raw mut event) })?;
        Ok(())
    }

    fn wait<'a>(&self, events: &'a mut [libc::epoll_event]) -> io::Result<&'a [libc::epoll_event]> {
        // SAFETY: the kernel writes at most `events.len()` entries into `events`.
        let ready = unsafe { libc::epoll_wait(self.fd, events.as_mut_ptr(), events.len() as i32, -1) };
        match check(ready) {
            Ok(ready) => Ok(&events[..ready as usize]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(&[]),
            Err(error) => Err(error),
        }
    }
}

/// A descriptor that becomes readable after `seconds`.
fn timer(seconds: f64) -> io::Result<i32> {
    // SAFETY: no pointers; the result is checked.
    let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) })?;
    let value = libc::timespec { tv_sec: seconds as i64, tv_nsec: (seconds.fract() * 1e9) as i64 };
    let once = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    // SAFETY: `once` lives through the call; the old value is not asked for.
    check(unsafe { libc::timerfd_settime(fd, 0, &raw const once, ptr::null_mut()) })?;
    Ok(fd)
}

/// Writes the whole batch; one that does not fit into an empty socket buffer is too long for this tool.
fn write(fd: i32, batch: &[u8]) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of `batch`.
    let sent = unsafe { libc::write(fd, batch.as_ptr().cast(), batch.len()) };
    if sent == batch.len() as isize {
        return Ok(());
    }
    Err(if sent < 0 { io::Error::last_os_error() } else { invalid("a write was cut short".to_owned()) })
}

/// Bytes read; 0 when there were none. A closed connection is an error.
fn read(fd: i32, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length are those of `buffer`.
    match unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } {
        0 => Err(invalid("the server closed a connection".to_owned())),
        got if got > 0 => Ok(got as usize),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            error => Err(error),
        },
    }
}

/// Asks for as many open files as the system allows; with fewer than needed, connecting says so.
fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` lives through both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

fn usage() -> libc::rusage {
    // SAFETY: rusage is plain data, and the kernel fills it in.
    unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    }
}

fn monotonic_s() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn seconds_of(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
