//! Addresses of an origin, and the attempts to connect to them in turn.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_net::address_race::{AddressRace, AddressRaceStep};
use weir_net::stream::Stream;
use weir_net::target::SocketAddress;

use crate::address_rules::AddressSelection;

/// Addresses of an origin in the order in which they are attempted. All copies prefer the one that connected last.
#[derive(Clone, Debug)]
pub struct OriginAddresses {
    all: Arc<[SocketAddress]>,
    preferred: Arc<AtomicUsize>,
    /// Choice of one for each connection, and the number of connections so far; without one all take part in a race.
    selection: Option<(AddressSelection, Arc<AtomicU64>)>,
}

impl From<Vec<SocketAddress>> for OriginAddresses {
    fn from(all: Vec<SocketAddress>) -> Self {
        Self { all: all.into(), preferred: Arc::default(), selection: None }
    }
}

impl OriginAddresses {
    /// All addresses.
    pub fn all(&self) -> &[SocketAddress] {
        &self.all
    }

    /// Address that connected last; the first one before.
    pub fn preferred(&self) -> Option<&SocketAddress> {
        self.all.get(self.preferred.load(Ordering::Relaxed)).or(self.all.first())
    }

    /// The same, of which each connection has one.
    #[must_use]
    pub(crate) fn selected(self, selection: AddressSelection) -> Self {
        Self { selection: Some((selection, Arc::default())), ..self }
    }

    /// Address of the next connection, if it has no choice.
    fn only(&self) -> Option<&SocketAddress> {
        if let [address] = &*self.all {
            return Some(address);
        }
        let (selection, connections) = self.selection.as_ref()?;
        let number = connections.fetch_add(1, Ordering::Relaxed);
        let random = SeededRng::new(number, Self::SELECTION_SALT).bits();
        self.all.get(selection.index(number, random, self.all.len()))
    }

    /// Salt of the random choice of addresses.
    const SELECTION_SALT: u64 = 0x61_6464_7273;

    fn race(&self) -> AddressRace {
        AddressRace::new(self.all.len(), self.preferred.load(Ordering::Relaxed))
    }
}

/// Attempts to connect to an origin with several addresses, as long as none has connected.
#[derive(Debug)]
pub(crate) struct ConnectAttempts {
    addresses: OriginAddresses,
    race: AddressRace,
    /// Number of the address of the connection's own stream, while it is pending.
    latest: Option<usize>,
    /// Pending attempts that began before it.
    earlier: Vec<(usize, Stream)>,
    /// Why addresses have failed.
    failures: Vec<String>,
    /// Whether the kernel timestamps what streams receive.
    is_stamped: bool,
}

impl ConnectAttempts {
    /// Begins a connection: its stream, and the attempts if the origin has several addresses.
    ///
    /// # Errors
    /// If no attempt can begin: no route, descriptor or port.
    pub(crate) fn begin(
        addresses: &OriginAddresses,
        is_stamped: bool,
        now: Nanos,
    ) -> io::Result<(Stream, Option<Box<Self>>)> {
        if let Some(address) = addresses.only() {
            return Ok((Stream::connect(address, is_stamped)?, None));
        }
        let mut attempts = Box::new(Self {
            addresses: addresses.clone(),
            race: addresses.race(),
            latest: None,
            earlier: Vec::new(),
            failures: Vec::new(),
            is_stamped,
        });
        match attempts.attempt_next(now)? {
            Some(stream) => Ok((stream, Some(attempts))),
            None => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Whether another attempt is due at `now`, though nothing has happened to the others.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        self.race.is_due(now)
    }

    /// Looks at all attempts, and begins those that are due: `register` is called with their streams. True once `stream`
    /// is connected.
    ///
    /// # Errors
    /// If all addresses have failed.
    pub(crate) fn advance(
        &mut self,
        stream: &mut Stream,
        now: Nanos,
        register: impl Fn(&Stream) -> io::Result<()>,
    ) -> io::Result<bool> {
        let mut k = 0;
        while let Some((number, attempt)) = self.earlier.get(k) {
            let number = *number;
            match state_of(attempt) {
                Ok(false) => k += 1,
                Ok(true) => {
                    *stream = self.earlier.swap_remove(k).1;
                    return Ok(self.is_won_by(number));
                }
                Err(error) => {
                    drop(self.earlier.swap_remove(k));
                    self.note_failure(number, &error, now);
                }
            }
        }
        if let Some(number) = self.latest {
            match state_of(stream) {
                Ok(false) => {}
                Ok(true) => return Ok(self.is_won_by(number)),
                Err(error) => {
                    self.latest = None;
                    self.note_failure(number, &error, now);
                }
            }
        }
        let before = self.latest;
        if let Some(next) = self.attempt_next(now)? {
            let replaced = mem::replace(stream, next);
            self.earlier.extend(before.map(|number| (number, replaced)));
            register(stream)?;
        }
        Ok(false)
    }

    /// The next attempt, if one is due.
    fn attempt_next(&mut self, now: Nanos) -> io::Result<Option<Stream>> {
        loop {
            match self.race.next(now) {
                AddressRaceStep::WaitUntil(_) => return Ok(None),
                AddressRaceStep::Failed => return Err(io::Error::other(self.failures.join(", "))),
                AddressRaceStep::Attempt(number) => {
                    let Some(address) = self.addresses.all.get(number) else { return Ok(None) };
                    match Stream::connect(address, self.is_stamped) {
                        Ok(stream) => {
                            self.latest = Some(number);
                            return Ok(Some(stream));
                        }
                        Err(error) => self.note_failure(number, &error, now),
                    }
                }
            }
        }
    }

    fn is_won_by(&self, number: usize) -> bool {
        self.addresses.preferred.store(number, Ordering::Relaxed);
        true
    }

    fn note_failure(&mut self, number: usize, error: &io::Error, now: Nanos) {
        self.race.attempt_failed(now);
        if let Some(address) = self.addresses.all.get(number) {
            let text = error.to_string();
            let reason = text.split(" (os error ").next().unwrap_or(&text);
            self.failures.push(format!("{reason} ({address})"));
        }
    }

    /// Addresses that were attempted and have not connected, with the reasons.
    pub(crate) fn pending_text(&self) -> String {
        let pending = self.earlier.iter().map(|(number, _)| *number).chain(self.latest);
        let pending = pending.filter_map(|number| Some(format!("no response ({})", self.addresses.all.get(number)?)));
        self.failures.iter().cloned().chain(pending).collect::<Vec<_>>().join(", ")
    }
}

/// Whether an attempt has connected, or why it has failed.
fn state_of(attempt: &Stream) -> io::Result<bool> {
    attempt.connected()?;
    Ok(attempt.is_connected())
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use super::*;
    use weir_machine::clock::Clock;
    use weir_machine::system::Poller;

    /// Connections that fill the queue of a listener that accepts none: it swallows further ones.
    const BACKLOG_FILL: usize = 300;
    const DEADLINE: Nanos = Nanos::from_secs(60);

    fn listening() -> (TcpListener, SocketAddress) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, SocketAddress::Inet(address))
    }

    /// An address that nothing listens to, as long as the socket that comes with it is there.
    fn closed() -> (std::net::UdpSocket, SocketAddress) {
        // A port that is free of TCP, held by UDP, is not chosen for others of these tests.
        let (listener, address) = listening();
        let SocketAddress::Inet(inet) = &address else { unreachable!() };
        let held = std::net::UdpSocket::bind(SocketAddr::new(inet.ip(), inet.port())).unwrap();
        drop(listener);
        (held, address)
    }

    /// Connects as a load does; the time until it has connected.
    fn connect(addresses: &OriginAddresses) -> io::Result<Nanos> {
        let (poller, clock) = (Poller::new()?, Clock::starting_in(Nanos::ZERO));
        let (mut stream, attempts) = ConnectAttempts::begin(addresses, false, clock.now())?;
        let mut attempts = attempts.expect("several addresses");
        poller.add(&stream, 0)?;
        while !attempts.advance(&mut stream, clock.now(), |stream| poller.add(stream, 0))? {
            if clock.now() > DEADLINE {
                return Err(io::Error::other(attempts.pending_text()));
            }
            poller.wait(Nanos::from_millis(5), &mut Vec::new())?;
        }
        Ok(clock.now())
    }

    #[test]
    fn an_address_that_refuses_is_followed_by_the_next_which_is_preferred_then() {
        let (_held, dead) = closed();
        let (_listener, live) = listening();
        let addresses = OriginAddresses::from(vec![dead.clone(), live.clone()]);
        connect(&addresses).unwrap();
        assert_eq!(addresses.preferred(), Some(&live));
        let copy = addresses.clone();
        connect(&copy).unwrap();
        // The preferred one is gone: the other one is attempted again.
        let (_listener, other) = listening();
        let addresses = OriginAddresses::from(vec![other.clone(), dead]);
        addresses.preferred.store(1, Ordering::Relaxed);
        connect(&addresses).unwrap();
        assert_eq!(addresses.preferred(), Some(&other));
    }

    #[test]
    fn an_address_that_swallows_connections_is_passed_over() {
        let (_full, silent) = listening();
        let _waiting: Vec<Stream> = (0..BACKLOG_FILL).map(|_| Stream::connect(&silent, false).unwrap()).collect();
        let (_listener, live) = listening();
        let addresses = OriginAddresses::from(vec![silent, live.clone()]);
        let took = connect(&addresses).unwrap();
        assert_eq!(addresses.preferred(), Some(&live));
        assert!(took >= weir_net::address_race::CONNECTION_ATTEMPT_DELAY);
    }

    #[test]
    fn a_failure_names_all_addresses_that_were_attempted() {
        let ((_first, a), (_second, b)) = (closed(), closed());
        let why = connect(&OriginAddresses::from(vec![a.clone(), b.clone()])).unwrap_err().to_string();
        assert_eq!(why, format!("Connection refused ({a}), Connection refused ({b})"));
    }
}
