//! Listening sockets, one set for each event loop.

use std::fmt;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, sockopt};

use super::handover::HandedSockets;
use super::listen_address::ListenAddress;
use super::listener_options::ListenerOptions;
use super::network::Proxies;
use super::systemd;
use super::tls::ServerTls;
use weir_machine::system::sockets::{BALANCES_SHARED_ADDRESSES, is_listening, stream_socket};

/// Backlog of a listener; the kernel limits it to `net.core.somaxconn`.
const LISTEN_BACKLOG: i32 = 4096;

/// Settings that apply to new connections of a listener, before HTTP.
#[derive(Debug)]
pub(super) struct ListenerRules {
    /// Index among the server's listeners.
    pub(super) index: usize,
    pub(super) tls: Option<Arc<ServerTls>>,
    pub(super) proxy_protocol: Proxies,
}

/// Address of a listening socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundAddress {
    /// TCP.
    Tcp(SocketAddr),
    /// Unix socket, by its path.
    Unix(PathBuf),
}

impl fmt::Display for BoundAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Listening socket of one event loop.
#[derive(Debug)]
pub(super) enum ListenSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl ListenSocket {
    fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(socket) => socket.try_clone().map(Self::Tcp),
            Self::Unix(socket) => socket.try_clone().map(Self::Unix),
        }
    }
}

impl AsFd for ListenSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

/// Sockets of one address.
#[derive(Debug)]
pub(super) struct BoundListener {
    /// The first one, of a name with several.
    pub(super) address: BoundAddress,
    /// At least one for each event loop, of each address.
    pub(super) sockets: Vec<ListenSocket>,
    /// Addresses of the name that this machine does not have, and the reason of each.
    pub(super) skipped: Vec<(SocketAddr, io::Error)>,
    /// Path to remove at the end.
    pub(super) created: Option<CreatedSocket>,
}

/// A Unix socket in the file system, removed when it is dropped.
#[derive(Debug)]
pub(super) struct CreatedSocket(PathBuf);

impl CreatedSocket {
    /// Leaves the file to another process, which listens on the same socket.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for CreatedSocket {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = fs::remove_file(&self.0);
    }
}

impl BoundListener {
    /// Opens `count` sockets of one address; the kernel distributes connections among them. Those that another process
    /// has `handed` on for it are used in place of new ones, all of them: connections may wait in each.
    ///
    /// # Errors
    /// If the host has no address, or the address is not available.
    pub(super) fn open(listener: &ListenerOptions, count: usize, handed: &HandedSockets) -> io::Result<Self> {
        let handed = handed.take(listener);
        if !handed.is_empty() {
            let mut bound = inherited(handed, count)?;
            if let ListenAddress::Unix(path) = &listener.address {
                bound.created = Some(CreatedSocket(path.clone()));
            }
            return Ok(bound);
        }
        match &listener.address {
            ListenAddress::Tcp(host, port) => {
                let TcpListeners { address, sockets, skipped } = tcp_listeners(host, *port, count)?;
                let sockets = sockets.into_iter().map(ListenSocket::Tcp).collect();
                Ok(Self { address: BoundAddress::Tcp(address), sockets, skipped, created: None })
            }
            ListenAddress::Unix(path) => {
                let listener = unix_listener(path)?;
                let created = Some(CreatedSocket(path.clone()));
                let sockets =
                    (0..count).map(|_| listener.try_clone().map(ListenSocket::Unix)).collect::<io::Result<_>>()?;
                Ok(Self { address: BoundAddress::Unix(path.clone()), sockets, skipped: Vec::new(), created })
            }
            ListenAddress::Systemd(name) => inherited(vec![systemd::socket(name)?], count),
        }
    }
}

/// Sockets that another process has opened, and copies of those of each address if there are fewer than `count`.
fn inherited(sockets: Vec<OwnedFd>, count: usize) -> io::Result<BoundListener> {
    let mut all = sockets.into_iter().map(inherited_socket).collect::<io::Result<Vec<_>>>()?;
    let first = all[0].0.clone();
    let mut sockets = Vec::new();
    while let Some(address) = all.first().map(|(address, _)| address.clone()) {
        let (mut same, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(other, _)| *other == address);
        for number in same.len()..count {
            let copy = same[number % same.len()].1.try_clone()?;
            same.push((address.clone(), copy));
        }
        sockets.extend(same.into_iter().map(|(_, socket)| socket));
        all = others;
    }
    Ok(BoundListener { address: first, sockets, skipped: Vec::new(), created: None })
}

fn inherited_socket(socket: OwnedFd) -> io::Result<(BoundAddress, ListenSocket)> {
    let no_listener = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
    if !is_listening(&socket)? || sockopt::socket_type(&socket)? != SocketType::STREAM {
        return Err(no_listener("it is not a listening stream socket; write ListenStream= and Accept=no"));
    }
    let address = getsockname(&socket)?;
    if address.address_family() == AddressFamily::UNIX {
        let listener = UnixListener::from(socket);
        listener.set_nonblocking(true)?;
        let path = listener.local_addr()?.as_pathname().unwrap_or(Path::new("")).to_owned();
        return Ok((BoundAddress::Unix(path), ListenSocket::Unix(listener)));
    }
    let address = SocketAddr::try_from(address).map_err(|_| no_listener("it is neither a TCP nor a Unix socket"))?;
    // Connections inherit the option, which saves a call for each.
    sockopt::set_tcp_nodelay(&socket, true)?;
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok((BoundAddress::Tcp(address), ListenSocket::Tcp(listener)))
}

/// Listens on a path. A socket there of a server that has crashed is replaced, one of a running server is not.
fn unix_listener(path: &Path) -> io::Result<UnixListener> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = fs::symlink_metadata(path)?.file_type().is_socket();
            let is_stale = UnixStream::connect(path).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
            if !is_socket || !is_stale {
                return Err(error);
            }
            fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    // The library's backlog is 128.
    listen(&listener, LISTEN_BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Attempts to find a port that is free at all addresses of a name.
const MAX_PORT_ATTEMPTS: u32 = 100;

/// Sockets of all addresses of a host.
struct TcpListeners {
    address: SocketAddr,
    sockets: Vec<TcpListener>,
    skipped: Vec<(SocketAddr, io::Error)>,
}

/// Listens on all addresses of a host, at the same port. Those of a family that this machine does not have are left out,
/// as long as there is another.
fn tcp_listeners(host: &str, port: u16, count: usize) -> io::Result<TcpListeners> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in (host, port).to_socket_addrs()? {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
    }
    // A port that the system has chosen for one address may be another process's at the next.
    let attempts = if port == 0 && addresses.len() > 1 { MAX_PORT_ATTEMPTS } else { 1 };
    let mut opened = open_all(&addresses);
    for _ in 1..attempts {
        match &opened {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => opened = open_all(&addresses),
            _ => break,
        }
    }
    let (firsts, skipped) = opened?;
    let address = firsts[0].local_addr()?;
    let is_only = addresses.len() == 1;
    let mut sockets = Vec::new();
    for first in firsts {
        if count == 1 || !BALANCES_SHARED_ADDRESSES {
            let copies = (1..count).map(|_| first.try_clone()).collect::<io::Result<Vec<_>>>()?;
            sockets.extend(std::iter::once(first).chain(copies));
            continue;
        }
        let address = first.local_addr()?;
        drop(first);
        for _ in 0..count {
            sockets.push(open_tcp(address, true, is_only)?);
        }
    }
    Ok(TcpListeners { address, sockets, skipped })
}

/// Blocking sockets of all addresses of a host, at one port; the first one is that of its first address.
///
/// # Errors
/// The host has no address, or one is in use.
pub fn listen_on_host(host: &str, port: u16) -> io::Result<Vec<TcpListener>> {
    let sockets = tcp_listeners(host, port, 1)?.sockets;
    for socket in &sockets {
        socket.set_nonblocking(false)?;
    }
    Ok(sockets)
}

/// A socket of each address, and the addresses that this machine does not have.
type OpenedAddresses = (Vec<TcpListener>, Vec<(SocketAddr, io::Error)>);

/// Listens on addresses at one port: theirs, or the one that the system chooses for the first.
///
/// # Errors
/// An address is in use, or this machine has none of them.
fn open_all(addresses: &[SocketAddr]) -> io::Result<OpenedAddresses> {
    let (mut opened, mut skipped): OpenedAddresses = (Vec::new(), Vec::new());
    let mut port = None;
    for address in addresses {
        let address = SocketAddr::new(address.ip(), port.unwrap_or(address.port()));
        // Shared listeners would also share with another server: the first one checks whether there is one.
        match open_tcp(address, false, addresses.len() == 1) {
            Ok(socket) => {
                port = Some(socket.local_addr()?.port());
                opened.push(socket);
            }
            Err(error) if is_missing(&error) => skipped.push((address, error)),
            Err(error) => return Err(error),
        }
    }
    match opened.is_empty() {
        // There is at least one address.
        true => Err(skipped.swap_remove(0).1),
        false => Ok((opened, skipped)),
    }
}

/// Whether this machine does not have an address, or its family.
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

/// Listens on an address; with `is_only` a wildcard of IPv6 is one of IPv4 as well, if the system has it so.
fn open_tcp(address: SocketAddr, shared: bool, is_only: bool) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = stream_socket(family)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, shared)?;
    if address.is_ipv6() && !is_only {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    // Connections inherit the option, which saves a call for each.
    sockopt::set_tcp_nodelay(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, LISTEN_BACKLOG)?;
    Ok(socket.into())
}
