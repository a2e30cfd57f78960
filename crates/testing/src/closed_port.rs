//! Ports at which nothing listens, and nothing else will.
//!
//! A port that is free again may be the next service's of another test, and get what is meant to fail.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Mutex;

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

/// Ports kept; the oldest ones are of tests that have ended.
const KEPT: usize = 200;

/// Sockets that have an address and do not listen: the system does not choose their ports for others.
static HELD: Mutex<VecDeque<OwnedFd>> = Mutex::new(VecDeque::new());

/// An address on 127.0.0.1 whose connections are refused.
pub fn closed_address() -> SocketAddr {
    keep_closed((Ipv4Addr::LOCALHOST, 0).into()).unwrap()
}

/// Keeps an address closed to all but a service that asks for it by its port.
pub(crate) fn keep_closed(address: SocketAddr) -> rustix::io::Result<SocketAddr> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let held = socket(family, SocketType::STREAM, None)?;
    set_socket_reuseaddr(&held, true)?;
    bind(&held, &address)?;
    let address = SocketAddr::try_from(getsockname(&held)?)?;
    let mut all = HELD.lock().unwrap();
    all.push_back(held);
    if all.len() > KEPT {
        all.pop_front();
    }
    Ok(address)
}
