//! New connections to an origin: name resolution, connecting, TLS.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::error::{FailurePoint, SendError, error_message};
use super::origin::{Origin, OriginAddress, display_address};
use super::socket::{ClientSocket, PlainSocket};
use crate::address_race;
use crate::address_race::{AddressRace, AddressRaceStep};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::clock;
use weir_machine::executor::BoxedFuture;
use weir_machine::lock::lock;
use weir_machine::timer::{Sleep, Timer};

/// Connects to the origin within its timeout and this one; dropping the future cancels it.
pub(super) fn connect_origin<'a>(
    origin: &'a Origin,
    timer: &'a Timer,
    timeout: Nanos,
) -> BoxedFuture<'a, Result<ClientSocket, SendError>> {
    Box::pin(connect_in_time(origin, timer, timeout.min(origin.connect_timeout)))
}

async fn connect_in_time(origin: &Origin, timer: &Timer, timeout: Nanos) -> Result<ClientSocket, SendError> {
    let step = Cell::new(FailureKind::Dns);
    let late = match timer.clone() {
        _ if timeout == Nanos::NEVER => None,
        timer => Some(timer.sleep(timeout)),
    };
    let mut late = pin!(late);
    let mut dialled = pin!(connect(origin, timer, &step));
    let done = poll_fn(|cx| {
        if let Poll::Ready(done) = dialled.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        match late.as_mut().as_pin_mut() {
            Some(late) => late.poll(cx).map(|()| None),
            None => Poll::Pending,
        }
    })
    .await;
    done.unwrap_or_else(|| {
        let missing = match step.get() {
            FailureKind::Dns => "address",
            FailureKind::Tls => "TLS",
            _ => "connection",
        };
        let text = format!("no {missing} within {timeout} ({})", display_address(&origin.address));
        Err(SendError::new(step.get(), text).at(FailurePoint::ConnectTimeout))
    })
}

async fn connect(origin: &Origin, timer: &Timer, step: &Cell<FailureKind>) -> Result<ClientSocket, SendError> {
    let mut plain = match &origin.address {
        OriginAddress::Unix(path) => {
            step.set(FailureKind::Connect);
            let connected = UnixStream::connect(path).await;
            PlainSocket::Unix(connected.map_err(|error| connect_error(&error, &path.display().to_string()))?)
        }
        OriginAddress::Inet(host, port) => {
            let addresses = addresses(host, *port).await?;
            step.set(FailureKind::Connect);
            PlainSocket::Tcp(connect_remembered(origin, &addresses, timer).await?)
        }
        OriginAddress::Pending(name, pending) => {
            let addresses = pending
                .addresses()
                .await
                .map_err(|why| SendError::new(FailureKind::Dns, format!("no address for host '{name}': {why}")))?;
            step.set(FailureKind::Connect);
            PlainSocket::Tcp(connect_remembered(origin, &address_race::in_turn(addresses), timer).await?)
        }
    };
    if !origin.preamble.is_empty() {
        let written = plain.write_all(&origin.preamble).await;
        written.map_err(|error| connect_error(&error, &display_address(&origin.address)))?;
    }
    let Some(tls) = &origin.tls else { return Ok(ClientSocket::Plain(plain)) };
    step.set(FailureKind::Tls);
    let connector = TlsConnector::from(Arc::clone(&tls.config));
    let stream = connector.connect(tls.name.clone(), plain).await;
    let stream = stream.map_err(|error| {
        let why = if error.kind() == io::ErrorKind::UnexpectedEof {
            "the connection was closed in its handshake".to_owned()
        } else {
            error_message(&error)
        };
        SendError::new(FailureKind::Tls, format!("no TLS: {why} ({})", display_address(&origin.address)))
    })?;
    Ok(ClientSocket::Tls(Box::new(stream)))
}

/// The addresses of a host, alternating between the families.
async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, SendError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let failed = |why: &str| SendError::new(FailureKind::Dns, format!("no address for host '{host}': {why}"));
    let found = tokio::net::lookup_host((host, port)).await.map_err(|error| {
        let text = error.to_string();
        failed(text.rsplit(": ").next().unwrap_or(&text))
    })?;
    let turns = address_race::in_turn(found);
    if turns.is_empty() { Err(failed("the name exists, but has none")) } else { Ok(turns) }
}

/// Connects to a host, whose addresses are attempted in turn.
///
/// # Errors
/// If the name has no address, or none of them accepts a connection.
pub(super) async fn connect_host(host: &str, port: u16, timer: &Timer) -> Result<TcpStream, SendError> {
    connect_first(&addresses(host, port).await?, 0, timer).await.map(|(stream, _)| stream)
}

/// The first established connection to an origin, whose addresses are attempted as they were reachable before.
async fn connect_remembered(origin: &Origin, addresses: &[SocketAddr], timer: &Timer) -> Result<TcpStream, SendError> {
    if addresses.len() < 2 {
        return connect_first(addresses, 0, timer).await.map(|(stream, _)| stream);
    }
    let preferred = lock(&origin.memory).preferred(addresses, clock::monotonic());
    let (stream, address) = connect_first(addresses, preferred, timer).await?;
    lock(&origin.memory).connected(addresses, address, clock::monotonic());
    Ok(stream)
}

/// The first established connection, and its address; the others are dropped.
async fn connect_first(
    addresses: &[SocketAddr],
    preferred: usize,
    timer: &Timer,
) -> Result<(TcpStream, SocketAddr), SendError> {
    type ConnectAttempt = Pin<Box<dyn Future<Output = io::Result<TcpStream>>>>;
    let mut trying: Vec<(SocketAddr, ConnectAttempt)> = Vec::new();
    let mut failures: Vec<String> = Vec::new();
    let mut race = AddressRace::new(addresses.len(), preferred);
    let mut next: Option<Sleep> = None;
    poll_fn(|cx| {
        loop {
            let mut k = 0;
            while let Some((address, attempt)) = trying.get_mut(k) {
                match attempt.as_mut().poll(cx) {
                    Poll::Ready(Ok(stream)) => {
                        // Without it responses are only slower.
                        let _ = stream.set_nodelay(true);
                        return Poll::Ready(Ok((stream, *address)));
                    }
                    Poll::Ready(Err(error)) => {
                        failures.push(format!("{} ({address})", error_message(&error)));
                        race.attempt_failed(timer.now());
                        drop(trying.swap_remove(k));
                    }
                    Poll::Pending => k += 1,
                }
            }
            match race.next(timer.now()) {
                AddressRaceStep::Attempt(number) => {
                    if let Some(address) = addresses.get(number) {
                        trying.push((*address, Box::pin(TcpStream::connect(*address))));
                    }
                    next = None;
                }
                AddressRaceStep::WaitUntil(Nanos::NEVER) => return Poll::Pending,
                AddressRaceStep::WaitUntil(at) => {
                    let sleep = next.get_or_insert_with(|| timer.sleep_until(at));
                    if Pin::new(sleep).poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    next = None;
                }
                AddressRaceStep::Failed if failures.is_empty() => {
                    return Poll::Ready(Err(SendError::new(FailureKind::Connect, "no address")));
                }
                AddressRaceStep::Failed => {
                    return Poll::Ready(Err(SendError::new(FailureKind::Connect, failures.join(", "))));
                }
            }
        }
    })
    .await
}

fn connect_error(error: &io::Error, to: &str) -> SendError {
    SendError::new(FailureKind::Connect, format!("{} ({to})", error_message(error)))
}
