//! From an origin to a connection: name, address, TLS.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::error::{SendError, words};
use super::origin::{Origin, Place};
use super::socket::{Plain, Socket};
use crate::decide::Nanos;
use crate::decide::policy::Kind;
use crate::machine::timer::{Sleep, Timer};

/// A next address is tried so long after the one before, if that has not answered (RFC 8305, section 8).
const STAGGER: Nanos = Nanos::from_millis(250);

/// Connects. What is under way ends when this is dropped.
pub(super) async fn dial(origin: &Origin, timer: &Timer) -> Result<Socket, SendError> {
    let step = Cell::new(Kind::Dns);
    let late = match timer.clone() {
        _ if origin.connect_timeout == Nanos::NEVER => None,
        timer => Some(timer.sleep(origin.connect_timeout)),
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
            Kind::Dns => "address",
            Kind::Tls => "TLS",
            _ => "connection",
        };
        let text = format!("no {missing} within {} ({})", origin.connect_timeout, shown(&origin.place));
        Err(SendError::new(step.get(), text))
    })
}

fn shown(place: &Place) -> String {
    match place {
        Place::Inet(host, port) if host.contains(':') => format!("[{host}]:{port}"),
        Place::Inet(host, port) => format!("{host}:{port}"),
        Place::Unix(path) => path.display().to_string(),
    }
}

async fn connect(origin: &Origin, timer: &Timer, step: &Cell<Kind>) -> Result<Socket, SendError> {
    let plain = match &origin.place {
        Place::Unix(path) => {
            step.set(Kind::Connect);
            let connected = UnixStream::connect(path).await;
            Plain::Unix(connected.map_err(|error| failed(&error, &path.display().to_string()))?)
        }
        Place::Inet(host, port) => {
            let addresses = addresses(host, *port).await?;
            step.set(Kind::Connect);
            Plain::Tcp(first_of(addresses, timer).await?)
        }
    };
    let Some(tls) = &origin.tls else { return Ok(Socket::Plain(plain)) };
    step.set(Kind::Tls);
    let connector = TlsConnector::from(Arc::clone(&tls.config));
    let stream = connector.connect(tls.name.clone(), plain).await;
    let stream = stream.map_err(|error| {
        let why = if error.kind() == io::ErrorKind::UnexpectedEof {
            "the connection was closed in its handshake".to_owned()
        } else {
            words(&error)
        };
        SendError::new(Kind::Tls, format!("no TLS: {why} ({})", shown(&origin.place)))
    })?;
    Ok(Socket::Tls(Box::new(stream)))
}

/// The addresses of a host; first of one family, then of the other, in turn.
async fn addresses(host: &str, port: u16) -> Result<VecDeque<SocketAddr>, SendError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok([SocketAddr::new(address, port)].into());
    }
    let failed = |why: &str| SendError::new(Kind::Dns, format!("no address for host '{host}': {why}"));
    let found = tokio::net::lookup_host((host, port)).await.map_err(|error| {
        let text = error.to_string();
        failed(text.rsplit(": ").next().unwrap_or(&text))
    })?;
    let all: Vec<SocketAddr> = found.collect();
    let Some(first) = all.first() else { return Err(failed("the name exists, but has none")) };
    let (mut some, mut others): (VecDeque<_>, VecDeque<_>) =
        all.iter().copied().partition(|address| address.is_ipv4() == first.is_ipv4());
    let mut turns = VecDeque::with_capacity(all.len());
    while turns.len() < all.len() {
        turns.extend(some.pop_front());
        turns.extend(others.pop_front());
    }
    Ok(turns)
}

/// The first connection that comes about; the rest is dropped.
async fn first_of(mut addresses: VecDeque<SocketAddr>, timer: &Timer) -> Result<TcpStream, SendError> {
    type Trying = Pin<Box<dyn Future<Output = io::Result<TcpStream>>>>;
    let mut trying: Vec<(SocketAddr, Trying)> = Vec::new();
    let mut failure = SendError::new(Kind::Connect, "no address");
    let mut next: Option<Sleep> = None;
    let mut begun = false;
    poll_fn(|cx| {
        loop {
            let mut failures = false;
            let mut k = 0;
            while let Some((address, attempt)) = trying.get_mut(k) {
                match attempt.as_mut().poll(cx) {
                    Poll::Ready(Ok(stream)) => {
                        // Without it, answers are only slower.
                        let _ = stream.set_nodelay(true);
                        return Poll::Ready(Ok(stream));
                    }
                    Poll::Ready(Err(error)) => {
                        failure = failed(&error, &address.to_string());
                        failures = true;
                        drop(trying.swap_remove(k));
                    }
                    Poll::Pending => k += 1,
                }
            }
            let due = next.as_mut().is_some_and(|sleep| Pin::new(sleep).poll(cx).is_ready());
            if begun && !failures && !due {
                return Poll::Pending;
            }
            begun = true;
            match addresses.pop_front() {
                Some(address) => {
                    trying.push((address, Box::pin(TcpStream::connect(address))));
                    next = (!addresses.is_empty()).then(|| timer.sleep(STAGGER));
                }
                None if trying.is_empty() => return Poll::Ready(Err(failure.clone())),
                None => {
                    next = None;
                    return Poll::Pending;
                }
            }
        }
    })
    .await
}

fn failed(error: &io::Error, to: &str) -> SendError {
    SendError::new(Kind::Connect, format!("{} ({to})", words(error)))
}
