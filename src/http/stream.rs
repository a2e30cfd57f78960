//! One non-blocking connection: TCP or Unix socket, plain or TLS.

use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustls::ClientConnection;

use super::stamp;
use super::target::SocketAddress;
use super::tls::Tls;
use crate::decide::WallNanos;

/// A connection.
#[derive(Debug)]
pub struct Stream {
    socket: RawSocket,
    tls: Option<Box<ClientConnection>>,
}

/// What a read brought.
#[derive(Clone, Copy, Debug)]
pub struct StreamRead {
    /// Bytes; 0 when the peer has closed.
    pub bytes: usize,
    /// Whether nothing more was there: an edge-triggered poller will say so when there is.
    pub drained: bool,
    /// When the last of it came, if the kernel stamps this connection.
    pub received_at: Option<WallNanos>,
}

#[derive(Debug)]
struct RawSocket {
    fd: OwnedFd,
    is_inet: bool,
    has_timestamps: bool,
    drained: bool,
    received_at: Option<WallNanos>,
}

impl Stream {
    /// Begins to connect; it is done when the socket is writable and [`Self::connected`] says so.
    ///
    /// # Errors
    /// When that cannot even begin: no route, no descriptor, no port left.
    pub fn connect(address: &SocketAddress, stamped: bool) -> io::Result<Self> {
        let fd = match address {
            SocketAddress::Inet(address) => connect_inet(address)?,
            SocketAddress::Unix(path) => connect_unix(path)?,
        };
        // A socket without stamps still works, and is timed at the read.
        let stamped = stamped && stamp::enable(fd.as_fd()).is_ok();
        let inet = matches!(address, SocketAddress::Inet(_));
        Ok(Self {
            socket: RawSocket { fd, is_inet: inet, has_timestamps: stamped, drained: false, received_at: None },
            tls: None,
        })
    }

    /// Whether connecting has worked.
    ///
    /// # Errors
    /// Why it has not.
    pub fn connected(&self) -> io::Result<()> {
        Ok(net::sockopt::socket_error(&self.socket.fd)??)
    }

    /// Puts TLS on top; [`Self::handshake`] then drives it.
    ///
    /// # Errors
    /// When the configuration does not suit.
    pub fn start_tls(&mut self, tls: &Tls) -> Result<(), rustls::Error> {
        self.tls = Some(Box::new(ClientConnection::new(Arc::clone(&tls.config), tls.name.clone())?));
        Ok(())
    }

    /// Goes on with the TLS handshake as far as the socket lets it; whether it is done.
    ///
    /// # Errors
    /// When the peer's certificate or anything else of TLS does not suit (kind `InvalidData`), or the socket fails.
    pub fn handshake(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        loop {
            match flush(tls, &mut self.socket) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                other => other?,
            }
            if !tls.is_handshaking() {
                return Ok(true);
            }
            match tls.read_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            }
            if let Err(error) = tls.process_new_packets() {
                // The alert tells the peer what is wrong; that it may not get through changes nothing.
                let _ = flush(tls, &mut self.socket);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is, else what is wrong with the connection; `InvalidData` for TLS.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<StreamRead> {
        let Some(tls) = &mut self.tls else {
            let bytes = self.socket.read(buffer)?;
            return Ok(StreamRead { bytes, drained: self.socket.drained, received_at: self.socket.received_at });
        };
        // What an earlier read (of the handshake, say) found says nothing about now.
        self.socket.drained = false;
        loop {
            match tls.reader().read(buffer) {
                Ok(bytes) => {
                    // Nothing left in the socket, and nothing left in rustls.
                    let drained = self.socket.drained && bytes < buffer.len();
                    return Ok(StreamRead { bytes, drained, received_at: self.socket.received_at });
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
            if self.socket.drained {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            tls.read_tls(&mut self.socket)?;
            tls.process_new_packets().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        }
    }

    /// Throws up to `most` bytes away, without copying them anywhere where the kernel can (plain TCP). `scratch` is
    /// not written to; its length bounds a call.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn skip(&mut self, most: u64, scratch: &mut [u8]) -> io::Result<StreamRead> {
        let length = usize::try_from(most).unwrap_or(usize::MAX).min(scratch.len());
        let (_, bytes) = net::recv(&self.socket.fd, &mut scratch[..length], RecvFlags::TRUNC)?;
        Ok(StreamRead { bytes, drained: bytes < length, received_at: None })
    }

    /// Whether the peer has neither closed nor sent anything that waits to be read.
    pub fn is_quiet(&self) -> bool {
        let peeked = net::recv(&self.socket.fd, &mut [0_u8; 1], RecvFlags::PEEK);
        matches!(peeked, Err(Errno::AGAIN))
    }

    /// Whether [`Self::skip`] may be used: on Unix sockets and under TLS the bytes must be read.
    pub fn can_skip(&self) -> bool {
        self.tls.is_none() && self.socket.is_inet
    }

    /// Writes as much as the socket takes now of the pieces, in one call.
    ///
    /// # Errors
    /// `WouldBlock` when it takes nothing, else what is wrong with the connection.
    #[inline]
    pub fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return Ok(match pieces {
                [piece] => net::send(&self.socket.fd, piece, SendFlags::NOSIGNAL)?,
                pieces => rustix::io::writev(&self.socket.fd, pieces)?,
            });
        };
        loop {
            let taken = tls.writer().write_vectored(pieces)?;
            match flush(tls, &mut self.socket) {
                // Taken and not yet sent: goes out with the next flush.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && taken > 0 => return Ok(taken),
                Err(e) => return Err(e),
                // rustls was full of an earlier write, and all of that has now gone out. The socket may well have
                // room for more, and no event would ever say so: on with it.
                Ok(()) if taken == 0 => {}
                Ok(()) => return Ok(taken),
            }
        }
    }

    /// Sends what TLS still holds back; to be called when the socket is writable again.
    ///
    /// # Errors
    /// What is wrong with the connection.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        match flush(tls, &mut self.socket) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }

    /// Whether TLS holds something back that was taken and not yet sent.
    pub fn has_pending_tls(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// TLS version and cipher, once there is one.
    pub fn tls_description(&self) -> Option<String> {
        let tls = self.tls.as_ref()?;
        let version = match tls.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2",
            rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => "TLS",
        };
        let suite = format!("{:?}", tls.negotiated_cipher_suite()?.suite());
        Some(format!("{version},{}", suite.trim_start_matches("TLS13_")))
    }

    /// Whether there is a peer yet.
    pub fn is_connected(&self) -> bool {
        net::getpeername(&self.socket.fd).is_ok_and(|name| name.is_some())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.fd.as_fd()
    }
}

impl Read for RawSocket {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = if self.has_timestamps {
            stamp::recv(self.fd.as_fd(), buffer).map(|(bytes, stamp)| {
                self.received_at = stamp;
                bytes
            })
        } else {
            net::recv(&self.fd, &mut *buffer, RecvFlags::empty()).map(|(_, bytes)| bytes).map_err(Into::into)
        };
        // A stream socket that gives less than was asked for has no more.
        self.drained = !matches!(read, Ok(bytes) if bytes == buffer.len() || bytes == 0);
        read
    }
}

impl Write for RawSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(net::send(&self.fd, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn flush(tls: &mut ClientConnection, socket: &mut RawSocket) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(socket)?;
    }
    Ok(())
}

fn connect_inet(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = socket(family)?;
    net::sockopt::set_tcp_nodelay(&fd, true)?;
    match net::connect(&fd, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(e) => Err(e.into()),
    }
}

fn connect_unix(path: &Path) -> io::Result<OwnedFd> {
    let fd = socket(AddressFamily::UNIX)?;
    match net::connect(&fd, &SocketAddrUnix::new(path)?) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(e) => Err(e.into()),
    }
}

fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    Ok(net::socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?)
}
