//! Requests to services, valid or not: a service responds or closes the connection, and serves the next one. The first
//! byte chooses the service.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use weir_base::Nanos;
use weir_serve::llm::pace::LlmPace;
use weir_serve::ratelimit::{OneWayDelay, RateLimitHeaderSet};
use weir_serve::shop::rules::store::ShopRules;
use weir_serve::stream::StreamFaults;
use weir_serve::{ServeOptions, TestService, functions, httpbin, llm, ratelimit, shop, sleep, stream, work};
use weir_server::timeouts::Timeouts;
use weir_server::{Options, RunningServer};
use weir_workload::delay::Delay;
use weir_workload::mix::Mix;

/// Services without delays, so that a long wait is an error.
fn kinds() -> Vec<TestService> {
    let none = Delay::Constant(Nanos::ZERO);
    let no_latency = OneWayDelay::read("0ms").expect("valid");
    let mix = Mix::read("good=3,garbage=1,error=1,reset=1").expect("valid");
    vec![
        TestService::Httpbin(httpbin::Options { max_body_bytes: 65_536, ..httpbin::Options::default() }),
        TestService::Work(work::Options {
            delay: none.clone(),
            slow_delay: none.clone(),
            mix: mix.clone(),
            ..work::Options::default()
        }),
        TestService::Ratelimit(ratelimit::Options {
            latency_in: no_latency.clone(),
            latency_out: no_latency,
            keep_alive: true,
            headers: RateLimitHeaderSet { retry_after: true, rate_limit: true, x_rate_limit: false },
            ..ratelimit::Options::default()
        }),
        TestService::Functions(functions::Options { threads: 1, ..functions::Options::default() }),
        TestService::Sleep(sleep::Options { threads: 1, delay: Nanos::ZERO }),
        TestService::Shop(shop::Options {
            rules: ShopRules { max_sessions: 4, ..shop::Options::default().rules },
            mix: mix.clone(),
            uses_gzip: true,
            close: 0.1,
            ..shop::Options::default()
        }),
        TestService::Stream(stream::Options {
            first_delay: none.clone(),
            gap: none.clone(),
            split_gap: Nanos::ZERO,
            events: 4,
            split: 2,
            faults: StreamFaults { cut: 0.1, half: 0.1, ..StreamFaults::default() },
            ..stream::Options::default()
        }),
        TestService::Llm(llm::Options {
            pace: LlmPace {
                prefill: none,
                prefill_per_token: Nanos::ZERO,
                decode: Nanos::ZERO,
                ..LlmPace::default()
            },
            mix,
            ..llm::Options::default()
        }),
    ]
}

/// Timeout of a client; longer than those of the services.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(8);

fn services() -> &'static [RunningServer] {
    static ALL: OnceLock<Vec<RunningServer>> = OnceLock::new();
    ALL.get_or_init(|| {
        let limit = Nanos::SECOND;
        let timeouts = Timeouts { idle: limit, head: limit, body: limit, write: limit, ..Timeouts::default() };
        let server = Options { timeouts, ..Options::default() };
        let start = |service| ServeOptions { service, server: server.clone() }.start().expect("it starts");
        kinds().into_iter().map(start).collect()
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
    let all = services();
    let service = &all[usize::from(*choice) % all.len()];
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
