//! Listening sockets, one set for each event loop.

use std::fmt;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, ipproto, listen, socket_with, sockopt};

use super::listen_address::ListenAddress;
use super::network::Proxies;
use super::systemd;
use super::tls::ServerTls;

/// Backlog of a listener; the kernel limits it to `net.core.somaxconn`.
const LISTEN_BACKLOG: i32 = 4096;

/// An address to listen on, and the protocols below HTTP of its connections.
#[derive(Clone, Debug)]
pub struct ListenerOptions {
    /// The address.
    pub address: ListenAddress,
    /// TLS; None for connections without.
    pub tls: Option<Arc<ServerTls>>,
    /// Networks of the proxies whose connections begin with a header of the PROXY protocol.
    pub proxy_protocol: Proxies,
}

impl ListenerOptions {
    /// An address whose connections begin with HTTP.
    pub fn plain(address: ListenAddress) -> Self {
        Self { address, tls: None, proxy_protocol: Proxies::default() }
    }
}

/// What a listener's connections begin with.
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

/// Sockets of one address.
#[derive(Debug)]
pub(super) struct BoundListener {
    pub(super) address: BoundAddress,
    /// One for each event loop.
    pub(super) sockets: Vec<ListenSocket>,
    /// Path to remove at the end.
    pub(super) created: Option<CreatedSocket>,
}

/// A Unix socket in the file system, removed when it is dropped.
#[derive(Debug)]
pub(super) struct CreatedSocket(PathBuf);

impl Drop for CreatedSocket {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = fs::remove_file(&self.0);
    }
}

impl BoundListener {
    /// Opens `count` sockets of one address; the kernel distributes connections among them.
    ///
    /// # Errors
    /// If the host has no address, or the address is not available.
    pub(super) fn open(address: &ListenAddress, count: usize) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(host, port) => {
                let (address, sockets) = tcp_listeners(host, *port, count)?;
                let sockets = sockets.into_iter().map(ListenSocket::Tcp).collect();
                Ok(Self { address: BoundAddress::Tcp(address), sockets, created: None })
            }
            ListenAddress::Unix(path) => {
                let listener = unix_listener(path)?;
                let created = Some(CreatedSocket(path.clone()));
                let sockets = copies(count, || listener.try_clone().map(ListenSocket::Unix))?;
                Ok(Self { address: BoundAddress::Unix(path.clone()), sockets, created })
            }
            ListenAddress::Systemd(name) => inherited(systemd::socket(name)?, count),
        }
    }
}

fn copies(count: usize, copy: impl Fn() -> io::Result<ListenSocket>) -> io::Result<Vec<ListenSocket>> {
    (0..count).map(|_| copy()).collect()
}

/// A socket that another process has opened.
fn inherited(socket: OwnedFd, count: usize) -> io::Result<BoundListener> {
    let no_listener = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
    if !sockopt::socket_acceptconn(&socket)? || sockopt::socket_type(&socket)? != SocketType::STREAM {
        return Err(no_listener("it is not a listening stream socket; write ListenStream= and Accept=no"));
    }
    let address = getsockname(&socket)?;
    if address.address_family() == AddressFamily::UNIX {
        let listener = UnixListener::from(socket);
        listener.set_nonblocking(true)?;
        let path = listener.local_addr()?.as_pathname().unwrap_or(Path::new("")).to_owned();
        let sockets = copies(count, || listener.try_clone().map(ListenSocket::Unix))?;
        return Ok(BoundListener { address: BoundAddress::Unix(path), sockets, created: None });
    }
    let address = SocketAddr::try_from(address).map_err(|_| no_listener("it is neither a TCP nor a Unix socket"))?;
    // Connections inherit the option, which saves a call for each.
    sockopt::set_tcp_nodelay(&socket, true)?;
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    let sockets = copies(count, || listener.try_clone().map(ListenSocket::Tcp))?;
    Ok(BoundListener { address: BoundAddress::Tcp(address), sockets, created: None })
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

fn tcp_listeners(host: &str, port: u16, count: usize) -> io::Result<(SocketAddr, Vec<TcpListener>)> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let unknown = || io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    let asked = (host, port).to_socket_addrs()?.next().ok_or_else(unknown)?;
    // Shared listeners would also share with another server: the first one checks whether there is one.
    let first = open_tcp(asked, false)?;
    let address = first.local_addr()?;
    if count == 1 {
        return Ok((address, vec![first]));
    }
    drop(first);
    let all = (0..count).map(|_| open_tcp(address, true)).collect::<io::Result<_>>()?;
    Ok((address, all))
}

fn open_tcp(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
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
