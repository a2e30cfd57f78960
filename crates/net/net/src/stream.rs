//! One non-blocking connection: TCP or Unix socket, plain or TLS.

use std::cell::RefCell;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SocketAddrUnix};
use rustls::ClientConnection;

use super::target::SocketAddress;
use super::tls::Tls;
use weir_base::WallNanos;
use weir_machine::system::receive_timestamps;
use weir_machine::system::sockets::{DISCARD, SEND, stream_socket};

/// A connection.
#[derive(Debug)]
pub struct Stream {
    socket: RawSocket,
    tls: Option<Box<ClientConnection>>,
}

/// Result of a read.
#[derive(Clone, Copy, Debug)]
pub struct StreamRead {
    /// Number of bytes; 0: the peer has closed.
    pub bytes: usize,
    /// Whether the socket was drained: an edge-triggered poller reports the next data.
    pub drained: bool,
    /// Arrival of the last byte, if the kernel timestamps this connection.
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
    /// Starts to connect; complete when the socket is writable and [`Self::connected`] returns Ok.
    ///
    /// # Errors
    /// If connecting cannot start: no route, descriptor or port.
    pub fn connect(address: &SocketAddress, stamped: bool) -> io::Result<Self> {
        let fd = match address {
            SocketAddress::Inet(address) => connect_inet(address)?,
            SocketAddress::Unix(path) => connect_unix(path)?,
        };
        // A socket without timestamps still works, and is timed at the read.
        let stamped = stamped && receive_timestamps::enable(fd.as_fd()).is_ok();
        let inet = matches!(address, SocketAddress::Inet(_));
        Ok(Self {
            socket: RawSocket { fd, is_inet: inet, has_timestamps: stamped, drained: false, received_at: None },
            tls: None,
        })
    }

    /// Checks whether the connection is established.
    ///
    /// # Errors
    /// The reason of the failure.
    pub fn connected(&self) -> io::Result<()> {
        Ok(net::sockopt::socket_error(&self.socket.fd)??)
    }

    /// Adds TLS; [`Self::handshake`] then drives it.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn start_tls(&mut self, tls: &Tls) -> Result<(), rustls::Error> {
        self.tls = Some(Box::new(ClientConnection::new(Arc::clone(&tls.config), tls.name.clone())?));
        Ok(())
    }

    /// Continues the TLS handshake as far as the socket allows; true if it is complete.
    ///
    /// # Errors
    /// If the peer's certificate or another part of TLS is invalid (kind `InvalidData`), or the socket fails.
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
                // The alert informs the peer; its loss changes nothing.
                let _ = flush(tls, &mut self.socket);
                return Err(invalid_data(error));
            }
        }
    }

    /// Reads the available bytes; with TLS the buffer has room for two records, 40 KiB, or more.
    ///
    /// # Errors
    /// `WouldBlock` without data, else the connection's error; `InvalidData` for TLS.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<StreamRead> {
        let Some(tls) = &mut self.tls else {
            let bytes = self.socket.read(buffer)?;
            return Ok(StreamRead { bytes, drained: self.socket.drained, received_at: self.socket.received_at });
        };
        // The result of an earlier read (of the handshake, say) is outdated.
        self.socket.drained = false;
        if let Some(bytes) = take_plaintext(tls, buffer)? {
            return Ok(StreamRead { bytes, drained: false, received_at: self.socket.received_at });
        }
        // An error behind bytes that an earlier read has returned.
        tls.process_new_packets().map_err(invalid_data)?;
        // All that they contain has to fit, with a record that has been read in part.
        let most = buffer.len().saturating_sub(MAX_RECORD_BYTES).min(CIPHERTEXT_BYTES);
        debug_assert!(most > 0, "a buffer of {} bytes is too small for TLS", buffer.len());
        loop {
            let decrypted = CIPHERTEXT.with_borrow_mut(|raw| {
                raw.resize(CIPHERTEXT_BYTES, 0);
                let received = self.socket.read(&mut raw[..most.max(1)])?;
                decrypt(tls, &raw[..received], buffer)
            })?;
            if let Some(Decrypted { bytes, has_ended }) = decrypted {
                // Nothing left in the socket, and nothing left in rustls: neither bytes nor the end.
                let drained = self.socket.drained && bytes < buffer.len() && !has_ended;
                return Ok(StreamRead { bytes, drained, received_at: self.socket.received_at });
            }
            if self.socket.drained {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    /// Discards up to `most` bytes, without copying them where the kernel can (plain TCP). `scratch` is not written to;
    /// its length bounds a call.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn skip(&mut self, most: u64, scratch: &mut [u8]) -> io::Result<StreamRead> {
        let length = usize::try_from(most).unwrap_or(usize::MAX).min(scratch.len());
        let (_, bytes) = net::recv(&self.socket.fd, &mut scratch[..length], DISCARD.unwrap_or(RecvFlags::empty()))?;
        Ok(StreamRead { bytes, drained: bytes < length, received_at: None })
    }

    /// Whether the peer has neither closed nor sent unread data.
    pub fn is_quiet(&self) -> bool {
        let peeked = net::recv(&self.socket.fd, &mut [0_u8; 1], RecvFlags::PEEK);
        matches!(peeked, Err(Errno::AGAIN))
    }

    /// Whether [`Self::skip`] may be used: on Unix sockets and under TLS the bytes must be read.
    pub fn can_skip(&self) -> bool {
        DISCARD.is_some() && self.tls.is_none() && self.socket.is_inet
    }

    /// Writes as much of the pieces as the socket accepts now, in one call.
    ///
    /// # Errors
    /// `WouldBlock` if it accepts nothing, else the connection's error.
    #[inline]
    pub fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return Ok(match pieces {
                [piece] => net::send(&self.socket.fd, piece, SEND)?,
                pieces => rustix::io::writev(&self.socket.fd, pieces)?,
            });
        };
        loop {
            let taken = tls.writer().write_vectored(pieces)?;
            match flush(tls, &mut self.socket) {
                // Accepted and not yet sent: sent by the next flush.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && taken > 0 => return Ok(taken),
                Err(e) => return Err(e),
                // rustls was full with an earlier write, which is flushed now. The socket may accept more, and no event
                // would report that: try again.
                Ok(()) if taken == 0 => {}
                Ok(()) => return Ok(taken),
            }
        }
    }

    /// Sends data buffered by TLS; called when the socket is writable again.
    ///
    /// # Errors
    /// The connection's error.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        match flush(tls, &mut self.socket) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }

    /// Whether TLS has buffered data that is not yet sent.
    pub fn has_pending_tls(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// TLS version and cipher, after the handshake.
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

    /// Address of the peer; `None` of a Unix socket.
    pub fn peer(&self) -> Option<SocketAddr> {
        SocketAddr::try_from(net::getpeername(&self.socket.fd).ok()??).ok()
    }

    /// Whether the service has chosen HTTP/2, after the handshake of TLS (ALPN, RFC 7301).
    pub fn is_http2(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.alpn_protocol() == Some(b"h2"))
    }

    /// Whether the socket is connected.
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
            receive_timestamps::recv(self.fd.as_fd(), buffer).map(|(bytes, stamp)| {
                self.received_at = stamp;
                bytes
            })
        } else {
            net::recv(&self.fd, &mut *buffer, RecvFlags::empty()).map(|(_, bytes)| bytes).map_err(Into::into)
        };
        // A stream socket that returns less than requested is drained.
        self.drained = !matches!(read, Ok(bytes) if bytes == buffer.len() || bytes == 0);
        read
    }
}

impl Write for RawSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(net::send(&self.fd, bytes, SEND)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes that are read from a socket at a time to be decrypted. rustls itself reads 4 KiB.
const CIPHERTEXT_BYTES: usize = 64 << 10;

/// Size of a record of TLS at most (RFC 8446 section 5.2, RFC 5246 section 6.2.3).
const MAX_RECORD_BYTES: usize = (16 << 10) + 2048 + 5;

thread_local! {
    /// Buffer of received bytes until rustls has them.
    static CIPHERTEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Decrypted bytes, and whether the connection has ended behind them.
#[derive(Clone, Copy, Debug)]
struct Decrypted {
    bytes: usize,
    /// Whether the end of the connection or an error follows, which the next read returns.
    has_ended: bool,
}

/// Decrypts received bytes; no bytes are the end of the connection. `None` if they are only a part of a record.
fn decrypt(tls: &mut ClientConnection, mut received: &[u8], buffer: &mut [u8]) -> io::Result<Option<Decrypted>> {
    let mut filled = 0;
    loop {
        tls.read_tls(&mut received)?;
        let state = tls.process_new_packets().map_err(invalid_data);
        // A peer may say that it has ended, and leave the socket open until the other side has said it, too.
        let has_closed = state.as_ref().is_ok_and(rustls::IoState::peer_has_closed);
        let valid = state.map(drop);
        // What came before an error counts.
        let taken = take_plaintext(tls, &mut buffer[filled..]);
        filled += taken.as_ref().ok().copied().flatten().unwrap_or(0);
        match valid.and(taken) {
            Ok(Some(0)) => return Ok(Some(Decrypted { bytes: filled, has_ended: true })),
            Err(_) if filled > 0 => return Ok(Some(Decrypted { bytes: filled, has_ended: true })),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        if received.is_empty() {
            return Ok((filled > 0).then_some(Decrypted { bytes: filled, has_ended: has_closed }));
        }
    }
}

fn invalid_data(error: rustls::Error) -> io::Error {
    // The verifier has no plain word for the usual self-signed certificate, which is one of a CA.
    if error.to_string().contains("CaUsedAsEndEntity") {
        let words = "the certificate is self-signed, and not among the trusted ones";
        return io::Error::new(io::ErrorKind::InvalidData, words);
    }
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Takes what is decrypted, as far as it fits; `None` without any, 0 at the end of the connection.
fn take_plaintext(tls: &mut ClientConnection, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    let mut filled = 0;
    loop {
        match tls.reader().read(&mut buffer[filled..]) {
            Ok(0) if filled > 0 => return Ok(Some(filled)),
            Ok(0) => return Ok(Some(0)),
            Ok(bytes) => filled += bytes,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok((filled > 0).then_some(filled)),
            Err(_) if filled > 0 => return Ok(Some(filled)),
            Err(e) => return Err(e),
        }
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
    let fd = stream_socket(family)?;
    net::sockopt::set_tcp_nodelay(&fd, true)?;
    match net::connect(&fd, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(e) => Err(e.into()),
    }
}

fn connect_unix(path: &Path) -> io::Result<OwnedFd> {
    let fd = stream_socket(AddressFamily::UNIX)?;
    match net::connect(&fd, &SocketAddrUnix::new(path)?) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(e) => Err(e.into()),
    }
}
