//! The schema of a service from the server, by its reflection.

use std::io::{self, IoSlice};
use std::time::Duration;

use weir_base::Nanos;
use weir_base::grpc_status::{GRPC_OK, status_text};
use weir_grpc::messages::{push_message, read_messages};
use weir_grpc::metadata::CONTENT_TYPE;
use weir_grpc::{GrpcSchema, Reflection, ReflectionVersion};
use weir_http2::connection::{ClientConnection, ClientSettings, Event, ResponseTotals, StreamRequest};
use weir_machine::clock::Clock;
use weir_machine::system::Poller;
use weir_net::stream::Stream;
use weir_net::target::{SocketAddress, Target};
use weir_net::tls::{PemTexts, Tls};
use weir_net::wire::parse_header;

use super::call_end::CallEnd;
use crate::options::Options;
use crate::origin_addresses::OriginAddresses;
use crate::plan::authorization;
use crate::probe::{NO_HTTP2_FOR_CALLS, connect, describe_io_error, describe_tls_error};

/// Code of UNIMPLEMENTED.
const UNIMPLEMENTED: u16 = 12;
/// Time for reflection, if the load has no timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of checks of the timeout.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);
/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 20;
/// What helps where the server does not.
const REMEDY: &str = "give the schema by --proto FILE or --protoset FILE";

/// Schema of a service, asked of the server with the metadata of the load, and with certificates in place of its own.
pub(super) fn reflect(
    (options, certificates): (&Options, Option<&PemTexts>),
    target: &Target,
    service: &str,
) -> Result<GrpcSchema, String> {
    let address = target.host_header();
    let mut connection = ReflectionConnection::open(options, certificates, target).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::InvalidData => describe_tls_error(&error, "grpc"),
            _ => describe_io_error(&error),
        };
        format!("cannot ask {address} for its schema: {why}")
    })?;
    for version in ReflectionVersion::ALL {
        let mut search = Reflection::new(service);
        loop {
            let requests = search.requests();
            if requests.is_empty() {
                return search.finish();
            }
            let mut body = Vec::new();
            requests.iter().try_for_each(|request| push_message(request, false, &mut body))?;
            let failed = |why: String| format!("cannot ask {address} for its schema: {why}; {REMEDY}");
            let answer = connection.call(version.path(), &body).map_err(|error| failed(describe_io_error(&error)))?;
            match CallEnd::of(&answer.totals, false) {
                CallEnd::Status(GRPC_OK) => {}
                CallEnd::Status(UNIMPLEMENTED) => break,
                CallEnd::Status(status @ 1..17) => {
                    let message = answer.message.escape_debug().to_string();
                    return Err(failed(format!("{} {message}", status_text(status)).trim_end().to_owned()));
                }
                CallEnd::Status(status) | CallEnd::Missing(status) => {
                    let scheme = if target.tls { "https" } else { "http" };
                    return Err(format!(
                        "cannot ask {address} for its schema: it responds with the HTTP status {status}; is it a service \
                         of HTTP? Try {scheme}://, or {REMEDY}"
                    ));
                }
            }
            read_messages(&answer.body, b"", |message| search.take(message)).map_err(failed)?;
        }
    }
    Err(format!("the server {address} has no reflection; {REMEDY}"))
}

/// Connection for the calls of reflection.
struct ReflectionConnection {
    stream: Stream,
    poller: Poller,
    protocol: ClientConnection,
    head: String,
    clock: Clock,
    timeout: Nanos,
    is_tls: bool,
}

/// Response of a call.
struct CallAnswer {
    totals: ResponseTotals,
    body: Vec<u8>,
    message: String,
}

impl ReflectionConnection {
    fn open(options: &Options, certificates: Option<&PemTexts>, target: &Target) -> io::Result<Self> {
        let timeout = Nanos::from(options.timeout.unwrap_or(DEFAULT_TIMEOUT));
        let addresses = match &options.unix_socket {
            Some(path) => vec![SocketAddress::Unix(path.clone())],
            None => {
                target.resolve(options.connect_to.as_deref()).map_err(|error| io::Error::other(error.to_string()))?
            }
        };
        let host = options.sni.as_deref().unwrap_or(&target.host);
        let tls = target.tls.then(|| match certificates {
            Some(texts) => Tls::with_texts(host, &options.tls, texts),
            None => Tls::new(host, &options.tls),
        });
        let tls = tls.transpose();
        let tls = tls.map_err(|error| io::Error::other(error.to_string()))?.map(|tls| tls.offering_http2(false));
        let (stream, poller) = connect(&OriginAddresses::from(addresses), tls.as_ref(), timeout, &mut |_| true)?;
        if target.tls && !stream.is_http2() {
            return Err(io::Error::other(NO_HTTP2_FOR_CALLS));
        }
        let settings = ClientSettings { is_tls: target.tls, wants_trailers: true, ..ClientSettings::default() };
        let mut head = format!(
            "Host: {}\r\nUser-Agent: weir/{}\r\nContent-Type: {CONTENT_TYPE}\r\nTE: trailers\r\n",
            target.host_header(),
            env!("CARGO_PKG_VERSION")
        );
        // Templates have no value yet.
        let mut given = options.headers.iter().filter_map(|line| parse_header(line).ok());
        if !given.any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
            && let Some(value) = authorization(options, target).map_err(|error| io::Error::other(error.to_string()))?
        {
            head.push_str(&format!("Authorization: {value}\r\n"));
        }
        for line in options.headers.iter().filter(|line| !line.contains("{{") && !line.contains(['\r', '\n'])) {
            let is_own = line.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("grpc-"));
            if !is_own && !line.trim_end().ends_with(':') {
                head.push_str(&format!("{line}\r\n"));
            }
        }
        let protocol = ClientConnection::new(&settings);
        Ok(Self { stream, poller, protocol, head, clock: Clock::starting_in(Nanos::ZERO), timeout, is_tls: target.tls })
    }

    fn call(&mut self, path: &str, body: &[u8]) -> io::Result<CallAnswer> {
        let head = format!("POST {path} HTTP/1.1\r\n{}\r\n", self.head);
        let body_length = body.len() as u64;
        let request = StreamRequest { head: head.as_bytes(), body_length, key: 0, template: 0, wants_head: true };
        self.protocol.open(&request).map_err(|error| io::Error::other(error.to_string()))?;
        let mut answer = CallAnswer { totals: NO_TOTALS, body: Vec::new(), message: String::new() };
        let mut buffer = vec![0; 64 << 10];
        loop {
            while let Some(pending) = self.protocol.next_body() {
                let rest = body.get(pending.sent as usize..).unwrap_or_default();
                if self.protocol.send_body(pending.stream, rest) == 0 {
                    break;
                }
            }
            let is_flushed = self.write()?;
            let read = match self.stream.read(&mut buffer) {
                Ok(read) => read.bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.clock.now() >= self.timeout {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    self.poller.wait(if is_flushed { POLL_INTERVAL } else { Nanos::MILLI }, &mut Vec::new())?;
                    continue;
                }
                Err(error) if is_ended(&error) => return Err(self.ended(&error.to_string())),
                Err(error) => return Err(error),
            };
            if read == 0 {
                return Err(self.ended("it closed the connection"));
            }
            if self.take(buffer.get(..read).unwrap_or_default(), &mut answer)? {
                self.write()?;
                return Ok(answer);
            }
        }
    }

    /// Error of a connection that has ended.
    fn ended(&self, why: &str) -> io::Error {
        let is_mute = !self.protocol.peer_settings().is_received && !self.is_tls;
        io::Error::other(format!("{why}{}", if is_mute { "; does it speak TLS there? Try grpcs://" } else { "" }))
    }

    /// Takes received bytes; true if the response is whole.
    fn take(&mut self, mut bytes: &[u8], answer: &mut CallAnswer) -> io::Result<bool> {
        loop {
            let step = self.protocol.receive(bytes).map_err(|error| io::Error::other(error.to_string()))?;
            bytes = bytes.get(step.used..).unwrap_or_default();
            match step.event {
                None => return Ok(false),
                Some(Event::Data { bytes, .. }) if answer.body.len() + bytes.len() > MAX_RESPONSE_BYTES => {
                    return Err(io::Error::other("its response is longer than 64 MiB"));
                }
                Some(Event::Data { bytes, .. }) => answer.body.extend_from_slice(bytes),
                Some(Event::Ended { totals, .. }) => {
                    answer.totals = totals;
                    if totals.grpc_status.is_some() {
                        answer.message = CallEnd::message(self.protocol.head_text());
                    }
                    return Ok(true);
                }
                Some(Event::Reset { reset, .. }) => {
                    return Err(io::Error::other(format!("it reset the stream ({})", reset.code)));
                }
                Some(_) => {}
            }
        }
    }

    /// Writes what there is to write; whether that is all.
    fn write(&mut self) -> io::Result<bool> {
        while !self.protocol.output().is_empty() {
            match self.stream.write(&[IoSlice::new(self.protocol.output())]) {
                Ok(written) => self.protocol.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.stream.flush()?;
        Ok(true)
    }
}

fn is_ended(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

/// Sizes before a response.
const NO_TOTALS: ResponseTotals = ResponseTotals { status: 0, grpc_status: None, body: 0, wire: 0, body_sent: 0 };
