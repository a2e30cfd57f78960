//! Requests to services, valid or not: a service responds or closes the connection, and serves the next one. The first
//! byte chooses the service.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use weir_server::RunningServer;
use weir_machine::logger::Logger;

/// Services without delays, so that a long wait is an error.
const SERVICES: [&[&str]; 8] = [
    &["httpbin", "--max-body=65536"],
    &["work", "--delay=0ms", "--slow-delay=0ms", "--mix=good=3,garbage=1,error=1,reset=1"],
    &["ratelimit", "--latency-in=0ms", "--latency-out=0ms", "--keepalive", "--limit-headers=retry-after,ratelimit"],
    &["functions", "--threads=1"],
    &["sleep", "--threads=1", "--delay=0ms"],
    &["shop", "--mix=good=3,garbage=1,error=1,reset=1", "--gzip", "--close=10%", "--max-sessions=4"],
    &[
        "stream",
        "--first-delay=0ms",
        "--gap=0ms",
        "--split-gap=0ms",
        "--events=4",
        "--split=2",
        "--cut=10%",
        "--half=10%",
    ],
    &["llm", "--prefill=0ms", "--prefill-per-token=0ms", "--decode=0ms", "--mix=good=3,garbage=1,error=1,reset=1"],
];

/// Timeout of a client; longer than those of the services.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(8);

fn services() -> &'static [RunningServer] {
    static ALL: OnceLock<Vec<RunningServer>> = OnceLock::new();
    ALL.get_or_init(|| {
        let start = |args: &[&str]| {
            let limits = ["--head-timeout=1s", "--stall-timeout=1s", "--idle-timeout=1s"];
            let args = args.iter().chain(&limits).map(Into::into);
            weir_cli::serve::parse(args).and_then(|asked| asked.start(Logger::new(|_| {}))).expect("it starts")
        };
        SERVICES.into_iter().map(start).collect()
    })
}

crate::target!(|bytes: &[u8]| {
    let Some((choice, request)) = bytes.split_first() else { return };
    // Delayed and endless responses are tested elsewhere.
    if [&b"ms="[..], b"bytes=", b"delay", b"drip", b"chunk", b"hang", b"status", b"events="]
        .iter()
        .any(|word| holds(request, word))
    {
        return;
    }
    let service = &services()[usize::from(*choice) % SERVICES.len()];
    round_trip(service.address(), request);
});

fn holds(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

/// Sends it all, and waits for the end.
fn round_trip(address: SocketAddr, request: &[u8]) {
    let mut stream = TcpStream::connect(address).expect("the service is there");
    stream.set_read_timeout(Some(CLIENT_TIMEOUT)).expect("a timeout");
    stream.set_write_timeout(Some(CLIENT_TIMEOUT)).expect("a timeout");
    // It may close before it has all.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("neither an answer nor a close"),
        _ => {}
    }
}
