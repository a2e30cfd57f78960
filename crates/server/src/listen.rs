//! Listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, listen, socket_with, sockopt};

/// Backlog of a listener; the kernel limits it to `net.core.somaxconn`.
const LISTEN_BACKLOG: i32 = 4096;

/// `count` listeners of one address; the kernel distributes connections among them.
///
/// # Errors
/// If the host has no address, or the address is not available.
pub(super) fn listeners(host: &str, port: u16, count: usize) -> io::Result<(SocketAddr, Vec<TcpListener>)> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let unknown = || io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    let asked = (host, port).to_socket_addrs()?.next().ok_or_else(unknown)?;
    // Shared listeners would also share with another server: the first one checks whether there is one.
    let first = open(asked, false)?;
    let address = first.local_addr()?;
    if count == 1 {
        return Ok((address, vec![first]));
    }
    drop(first);
    let all = (0..count).map(|_| open(address, true)).collect::<io::Result<_>>()?;
    Ok((address, all))
}

fn open(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, shared)?;
    // Connections inherit the option, which saves a call for each.
    sockopt::set_tcp_nodelay(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, LISTEN_BACKLOG)?;
    Ok(socket.into())
}
