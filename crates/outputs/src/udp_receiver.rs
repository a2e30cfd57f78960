//! A StatsD server that lines are sent to.

use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

use super::delivery_failure::{DeliveryFailure, system_message};
use super::statsd_lines::packed;

/// A StatsD server.
#[derive(Debug)]
pub(crate) struct UdpReceiver {
    /// Host and port.
    address: String,
    /// Connected socket, once the name is resolved.
    socket: Option<UdpSocket>,
}

impl UdpReceiver {
    pub(crate) fn new(address: String) -> Self {
        Self { address, socket: None }
    }

    /// Sends lines. What was sent once is not sent again: counters would count twice.
    pub(crate) fn deliver(&mut self, lines: &[u8]) -> Result<(), DeliveryFailure> {
        let failed = |error: std::io::Error| DeliveryFailure::final_one(system_message(&error));
        let socket = match &self.socket {
            Some(socket) => socket,
            None => self.socket.insert(connected(&self.address)?),
        };
        for datagram in packed(&String::from_utf8_lossy(lines)) {
            // The kernel reports here that nothing listened to the datagram before, on this machine.
            socket.send(&datagram).map_err(failed)?;
        }
        Ok(())
    }
}

fn connected(address: &str) -> Result<UdpSocket, DeliveryFailure> {
    let failed = |error: std::io::Error| DeliveryFailure::passing(system_message(&error));
    let found: SocketAddr = address
        .to_socket_addrs()
        .map_err(failed)?
        .next()
        .ok_or_else(|| DeliveryFailure::passing(format!("no address for {address}")))?;
    let any = if found.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.connect(found).map_err(failed)?;
    Ok(socket)
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
}
