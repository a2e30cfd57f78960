//! Check before the start whether the service accepts connections.
//!
//! One connection (with its TLS handshake) is made and closed; no request is sent, since a POST may have effects, but
//! the upgrade to WebSocket, if messages are to be sent. Of
//! several addresses, such as `localhost`'s IPv6 and IPv4, the run prefers the first that connects.

use std::io;

use super::http2::Http2Preference;
use super::origin_addresses::{ConnectAttempts, OriginAddresses};
use super::plan::LoadPlan;
use super::websocket::{UpgradeRejection, unanswered, upgrade_once};
use super::{LoadError, ProgressCallback};
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::system::Poller;
use weir_measure::RunProgress;
use weir_net::stream::Stream;
use weir_net::target::SocketAddress;
use weir_net::tls::Tls;

/// Interval of checks for an interrupt.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);

/// Reason why a service over TLS has no calls of gRPC.
pub(super) const NO_HTTP2_FOR_CALLS: &str = "it does not offer HTTP/2 (ALPN), which gRPC needs";

/// Service that accepts connections.
#[derive(Debug)]
pub(super) struct Reachable {
    /// Whether the service has chosen HTTP/1.1, though HTTP/2 over TLS was offered.
    pub(super) is_http1: bool,
}

/// Connects to the plan's addresses in turn: the run prefers the first one that accepts a connection.
pub(super) fn probe(plan: &LoadPlan, watch: &mut ProgressCallback<'_>) -> Result<Reachable, LoadError> {
    if plan.addresses.all().is_empty() {
        return match &plan.scenarios {
            Some(mix) if mix.origins().next().is_none() => Ok(Reachable { is_http1: false }),
            // Its requests name their hosts.
            None if plan.program.is_some() => Ok(Reachable { is_http1: false }),
            _ => Err(LoadError::Unreachable(plan.target.host.clone(), "it has no address".into())),
        };
    }
    match connect_once(plan, watch).map_err(|error| described(plan, &error)) {
        Ok(is_http2) => {
            let preference = plan.http2.and_then(|http2| http2.over_tls).filter(|_| plan.tls.is_some());
            if preference == Some(Http2Preference::Required) && !is_http2 {
                let why = match plan.grpc {
                    Some(_) => NO_HTTP2_FOR_CALLS,
                    None => "it does not offer HTTP/2 (ALPN); without 'only' HTTP/1.1 is used",
                };
                return Err(LoadError::Handshake(format_address(plan), why.into()));
            }
            Ok(Reachable { is_http1: preference.is_some() && !is_http2 })
        }
        Err(error) => Err(error),
    }
}

/// Error of a connection that is made before the load.
fn described(plan: &LoadPlan, error: &io::Error) -> LoadError {
    match error.kind() {
        io::ErrorKind::Interrupted => LoadError::Interrupted,
        io::ErrorKind::InvalidData => {
            LoadError::Handshake(format_address(plan), describe_tls_error(error, plain_scheme(plan)))
        }
        _ if is_rejection(error) => LoadError::Upgrade(plan.shown_url(), error.to_string()),
        _ => LoadError::Unreachable(format_address(plan), describe_io_error(error)),
    }
}

/// Waits for events of one connection, until the timeout of its plan.
pub(crate) struct Wait<'w, 'c> {
    poller: Poller,
    clock: Clock,
    timeout: Nanos,
    watch: &'w mut ProgressCallback<'c>,
}

impl Wait<'_, '_> {
    /// Waits for something to happen, at most for an interval of checks.
    ///
    /// # Errors
    /// `TimedOut` behind the timeout, `Interrupted` if the caller ends it.
    pub(crate) fn next(&mut self) -> io::Result<()> {
        match self.clock.now() {
            elapsed if elapsed >= self.timeout => Err(io::ErrorKind::TimedOut.into()),
            elapsed => wait(&self.poller, self.timeout - elapsed, self.watch),
        }
    }

    /// Whether to go on, where there is always something to read.
    ///
    /// # Errors
    /// As of [`Self::next`].
    pub(crate) fn check(&mut self) -> io::Result<()> {
        match (self.watch)(&RunProgress::default()) {
            false => Err(io::ErrorKind::Interrupted.into()),
            true if self.clock.now() >= self.timeout => Err(io::ErrorKind::TimedOut.into()),
            true => Ok(()),
        }
    }
}

/// Connects as requests of the plan do.
///
/// # Errors
/// Why there is no connection.
pub(crate) fn connect_plan<'w, 'c>(
    plan: &LoadPlan,
    watch: &'w mut ProgressCallback<'c>,
) -> Result<(Stream, Wait<'w, 'c>), LoadError> {
    let connected = connect(&plan.addresses, plan.tls.as_ref(), plan.timeout, watch);
    let (stream, poller) = connected.map_err(|error| described(plan, &error))?;
    Ok((stream, Wait { poller, clock: Clock::starting_in(Nanos::ZERO), timeout: plan.timeout, watch }))
}

fn is_rejection(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<UpgradeRejection>()).is_some()
}

/// Connects as requests of the plan do; whether the service has chosen HTTP/2.
fn connect_once(plan: &LoadPlan, watch: &mut ProgressCallback<'_>) -> io::Result<bool> {
    let (mut stream, poller) = connect(&plan.addresses, plan.tls.as_ref(), plan.timeout, watch)?;
    if let Some(messages) = &plan.messages {
        let clock = Clock::starting_in(Nanos::ZERO);
        let mut waits = || match clock.now() {
            elapsed if elapsed >= plan.timeout => Err(io::ErrorKind::TimedOut.into()),
            elapsed => wait(&poller, plan.timeout - elapsed, watch),
        };
        upgrade_once(&mut stream, messages, plan.seed, &mut waits).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => unanswered(plan.timeout),
            _ => error,
        })?;
    }
    Ok(stream.is_http2())
}

/// Waits for something to happen, at most for an interval of checks.
fn wait(poller: &Poller, left: Nanos, watch: &mut ProgressCallback<'_>) -> io::Result<()> {
    if !watch(&RunProgress::default()) {
        return Err(io::ErrorKind::Interrupted.into());
    }
    poller.wait(POLL_INTERVAL.min(left), &mut Vec::new())
}

/// Connects to one of the addresses, with TLS if it is given; returns the connection and the poller that it is added to.
pub(super) fn connect(
    addresses: &OriginAddresses,
    tls: Option<&Tls>,
    timeout: Nanos,
    watch: &mut ProgressCallback<'_>,
) -> io::Result<(Stream, Poller)> {
    let poller = Poller::new()?;
    let clock = Clock::starting_in(Nanos::ZERO);
    let (mut stream, mut attempts) = ConnectAttempts::begin(addresses, false, clock.now())?;
    poller.add(&stream, 0)?;
    let mut waits = |pending: Option<&ConnectAttempts>| -> io::Result<()> {
        let elapsed = clock.now();
        if elapsed >= timeout {
            return Err(match pending {
                Some(attempts) => io::Error::other(attempts.pending_text()),
                None => io::ErrorKind::TimedOut.into(),
            });
        }
        wait(&poller, timeout - elapsed, watch)
    };
    loop {
        let is_connected = match &mut attempts {
            Some(attempts) => attempts.advance(&mut stream, clock.now(), |stream| poller.add(stream, 0))?,
            None => {
                stream.connected()?;
                stream.is_connected()
            }
        };
        if is_connected {
            break;
        }
        waits(attempts.as_deref())?;
    }
    if let Some(tls) = tls {
        stream.start_tls(tls).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        while !stream.handshake()? {
            waits(None)?;
        }
    }
    Ok((stream, poller))
}

/// Host, with its address if it has one alone or one has connected; what was attempted of several is in the reason.
fn format_address(plan: &LoadPlan) -> String {
    match plan.addresses.all() {
        [SocketAddress::Inet(inet)] if inet.ip().to_string() != plan.target.host => {
            format!("{} ({inet})", plan.target.host)
        }
        [only] => only.to_string(),
        _ => plan.target.host_header(),
    }
}

/// Scheme of the plan's URL without TLS.
fn plain_scheme(plan: &LoadPlan) -> &'static str {
    match plan.grpc {
        Some(_) => "grpc",
        None if plan.messages.is_some() => "ws",
        None => "http",
    }
}

/// TLS error, with a hint; `plain` is the scheme of the same protocol without TLS.
pub(super) fn describe_tls_error(error: &io::Error, plain: &str) -> String {
    let why = error.to_string();
    let remedy = match &why {
        _ if why.contains("NoApplicationProtocol") => "; it does not offer HTTP/2, without 'only' HTTP/1.1 is used",
        _ if why.contains("certificate") => "; give its CA with --cacert, or -k to accept any",
        _ if why.contains("corrupt message") => return format!("{why}; does it speak TLS there? Try {plain}://"),
        _ => "",
    };
    format!("{why}{remedy}")
}

pub(super) fn describe_io_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "no response in time".to_owned(),
        io::ErrorKind::UnexpectedEof => {
            "it closed the connection during the TLS handshake; does it speak TLS there?".to_owned()
        }
        _ => error.to_string(),
    }
}
