//! Check before the start whether the service accepts connections.
//!
//! One connection (with its TLS handshake) is made and closed; no request is sent, since a POST may have effects. Of
//! several addresses, such as `localhost`'s IPv6 and IPv4, the run uses the first that connects.

use std::io;

use super::http2::Http2Preference;
use super::plan::LoadPlan;
use super::{LoadError, ProgressCallback};
use weir_decide::Nanos;
use weir_http::stream::Stream;
use weir_http::target::SocketAddress;
use weir_machine::clock::Clock;
use weir_machine::system::Poller;
use weir_measure::RunProgress;

/// Interval of checks for an interrupt.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);

/// Address that accepts connections.
#[derive(Debug)]
pub(super) struct Reachable {
    pub(super) address: SocketAddress,
    /// Whether the service has chosen HTTP/1.1, though HTTP/2 over TLS was offered.
    pub(super) is_http1: bool,
}

/// The first of the plan's addresses that accepts a connection.
pub(super) fn find_address(plan: &LoadPlan, watch: &mut ProgressCallback<'_>) -> Result<Reachable, LoadError> {
    let mut failed = LoadError::Unreachable(plan.target.host.clone(), "it has no address".into());
    if let (true, Some(mix)) = (plan.addresses.is_empty(), &plan.scenarios)
        && mix.origins().next().is_none()
    {
        return Ok(Reachable { address: SocketAddress::Unix("none".into()), is_http1: false });
    }
    let poller = Poller::new().map_err(LoadError::System)?;
    for address in &plan.addresses {
        match connect_once(plan, address, &poller, watch) {
            Ok(is_http2) => {
                let preference = plan.http2.and_then(|http2| http2.over_tls).filter(|_| plan.tls.is_some());
                if preference == Some(Http2Preference::Required) && !is_http2 {
                    let why = "it does not offer HTTP/2 (ALPN); without 'only' HTTP/1.1 is used";
                    return Err(LoadError::Handshake(format_address(plan, address), why.into()));
                }
                return Ok(Reachable { address: address.clone(), is_http1: preference.is_some() && !is_http2 });
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(LoadError::Interrupted),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                failed = LoadError::Handshake(format_address(plan, address), describe_tls_error(&e));
            }
            Err(e) => failed = LoadError::Unreachable(format_address(plan, address), describe_io_error(&e)),
        }
    }
    Err(failed)
}

/// Connects; whether the service has chosen HTTP/2.
fn connect_once(
    plan: &LoadPlan,
    address: &SocketAddress,
    poller: &Poller,
    watch: &mut ProgressCallback<'_>,
) -> io::Result<bool> {
    let mut stream = Stream::connect(address, false)?;
    poller.add(&stream, 0)?;
    let clock = Clock::starting_in(Nanos::ZERO);
    let mut waits = || -> io::Result<()> {
        let elapsed = clock.now();
        if elapsed >= plan.timeout {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if !watch(&RunProgress::default()) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        poller.wait(POLL_INTERVAL.min(plan.timeout - elapsed), &mut Vec::new())
    };
    loop {
        stream.connected()?;
        if stream.is_connected() {
            break;
        }
        waits()?;
    }
    if let Some(tls) = &plan.tls {
        stream.start_tls(tls).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        while !stream.handshake()? {
            waits()?;
        }
    }
    Ok(stream.is_http2())
}

fn format_address(plan: &LoadPlan, address: &SocketAddress) -> String {
    match address {
        SocketAddress::Inet(inet) if inet.ip().to_string() != plan.target.host => {
            format!("{} ({inet})", plan.target.host)
        }
        other => other.to_string(),
    }
}

/// TLS error, with a hint.
fn describe_tls_error(error: &io::Error) -> String {
    let why = error.to_string();
    let remedy = match &why {
        _ if why.contains("NoApplicationProtocol") => "; it does not offer HTTP/2, without 'only' HTTP/1.1 is used",
        _ if why.contains("certificate") => "; give its CA with --cacert, or -k to accept any",
        _ if why.contains("corrupt message") => "; does it speak TLS there? Try http://",
        _ => "",
    };
    format!("{why}{remedy}")
}

fn describe_io_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "no response in time".to_owned(),
        io::ErrorKind::UnexpectedEof => {
            "it closed the connection during the TLS handshake; does it speak TLS there?".to_owned()
        }
        _ => error.to_string(),
    }
}
