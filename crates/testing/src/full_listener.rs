//! A listener whose queue is full.

use std::net::TcpListener;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, connect, listen, socket};

/// Listener that accepts nothing, with its queue full, and the connections in it; none without such an address.
pub fn full_listener(address: &str) -> Option<(TcpListener, Vec<OwnedFd>)> {
    let listener = TcpListener::bind(address).ok()?;
    listen(&listener, 0).ok()?;
    let address = listener.local_addr().ok()?;
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let mut waiting = Vec::new();
    for _ in 0..8 {
        let stream = socket(family, SocketType::STREAM, None).ok()?;
        rustix::io::ioctl_fionbio(&stream, true).ok()?;
        // In progress, or not to be.
        let _ = connect(&stream, &address);
        waiting.push(stream);
    }
    Some((listener, waiting))
}
