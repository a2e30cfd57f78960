//! A StatsD server that lines are sent to.

use std::collections::VecDeque;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

use super::statsd_lines::packed;
use weir_net::address_race;
use weir_telemetry::{DeliveryFailure, system_message};

/// A StatsD server.
#[derive(Debug)]
pub(crate) struct UdpReceiver {
    /// Host and port.
    address: String,
    /// Connected socket, once the name is resolved, and the addresses that follow if nothing listens there.
    socket: Option<(UdpSocket, VecDeque<SocketAddr>)>,
}

impl UdpReceiver {
    pub(crate) fn new(address: String) -> Self {
        Self { address, socket: None }
    }

    /// Sends lines. What was sent once is not sent again: counters would count twice. But lines to a
    /// port at which nothing listens have not arrived, and go to the next address of the name.
    pub(crate) fn deliver(&mut self, lines: &[u8]) -> Result<(), DeliveryFailure> {
        for datagram in packed(&String::from_utf8_lossy(lines)) {
            loop {
                let (socket, others) = match &mut self.socket {
                    Some(socket) => socket,
                    None => self.socket.insert(connected(addresses_of(&self.address)?)?),
                };
                // The kernel reports here that nothing listened to the datagram before; of one to this machine at once.
                let sent = socket.send(&datagram).and_then(|_| match others.is_empty() {
                    true => Ok(()),
                    false => socket.take_error()?.map_or(Ok(()), Err),
                });
                match sent {
                    Ok(()) => break,
                    Err(error) if others.is_empty() => {
                        // The next lines begin with the first address again.
                        self.socket = None;
                        return Err(DeliveryFailure::final_one(system_message(&error)));
                    }
                    Err(_) => {
                        let others = std::mem::take(others);
                        self.socket = Some(connected(others)?);
                    }
                }
            }
        }
        Ok(())
    }
}

fn addresses_of(address: &str) -> Result<VecDeque<SocketAddr>, DeliveryFailure> {
    let found = address.to_socket_addrs().map_err(|error| DeliveryFailure::passing(system_message(&error)))?;
    let found = address_race::in_turn(found);
    if found.is_empty() {
        return Err(DeliveryFailure::passing(format!("no address for {address}")));
    }
    Ok(found.into())
}

/// Socket for the first address that has a route, and the addresses after it.
fn connected(mut addresses: VecDeque<SocketAddr>) -> Result<(UdpSocket, VecDeque<SocketAddr>), DeliveryFailure> {
    let mut failure = DeliveryFailure::passing("no address".to_owned());
    while let Some(address) = addresses.pop_front() {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        match UdpSocket::bind(any).and_then(|socket| socket.connect(address).map(|()| socket)) {
            Ok(socket) => return Ok((socket, addresses)),
            Err(error) => failure = DeliveryFailure::passing(system_message(&error)),
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_and_a_server_that_is_not_there_is_seen() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap().to_string();
        let mut receiver = UdpReceiver::new(address);
        receiver.deliver(b"a:1|c\nb:2|g\n").unwrap();
        let mut bytes = [0; 100];
        let n = server.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..n], b"a:1|c\nb:2|g\n");
        drop(server);
        let _ = receiver.deliver(b"a:1|c\n");
        assert!(receiver.deliver(b"a:1|c\n").is_err_and(|failure| failure.reason.contains("refused")));
    }

    #[test]
    fn lines_go_to_the_address_of_a_name_that_is_listened_to() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let open = server.local_addr().unwrap();
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = connected([closed, open].into()).unwrap();
        let mut receiver = UdpReceiver { address: String::new(), socket: Some(socket) };
        for _ in 0..2 {
            receiver.deliver(b"a:1|c\n").unwrap();
            let mut bytes = [0; 100];
            let n = server.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..n], b"a:1|c\n");
        }
    }
}
