//! The stream of a raw connection: TCP or a Unix socket, or TLS over TCP.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

#[derive(Debug)]
pub(crate) enum RawStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl RawStream {
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.sock.as_fd(),
        }
    }

    pub(crate) fn tcp_or_unix_timeout(&self, patience: Option<Duration>) {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(patience).unwrap(),
            Self::Unix(stream) => stream.set_read_timeout(patience).unwrap(),
            Self::Tls(stream) => stream.sock.set_read_timeout(patience).unwrap(),
        }
    }

    /// Says that nothing more is sent.
    pub(crate) fn finish(&mut self) {
        // The other end may have closed already.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
            Self::Tls(stream) => {
                stream.conn.send_close_notify();
                stream.flush()
            }
        };
    }

    pub(crate) fn twin(&self) -> Self {
        match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone().unwrap()),
            Self::Unix(stream) => Self::Unix(stream.try_clone().unwrap()),
            Self::Tls(_) => panic!("two ends of one TLS connection cannot be used apart"),
        }
    }

    pub(crate) fn tls(&self) -> &ClientConnection {
        match self {
            Self::Tls(stream) => &stream.conn,
            _ => panic!("no TLS"),
        }
    }
}

impl Read for RawStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(bytes),
            Self::Unix(stream) => stream.read(bytes),
            Self::Tls(stream) => stream.read(bytes),
        }
    }
}

impl Write for RawStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Unix(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
