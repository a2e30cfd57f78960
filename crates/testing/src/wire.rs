//! The service's end of a connection: TCP, Unix socket or TLS.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub fn accept(&self) -> io::Result<Raw> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Raw::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Raw::Unix(listener.accept()?.0)),
        }
    }
}

#[derive(Debug)]
pub enum Raw {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Debug)]
pub enum Wire {
    Plain(Raw),
    Tls(Box<StreamOwned<ServerConnection, Raw>>),
}

impl Wire {
    /// With TLS, after the handshake; the server name that was asked for comes with it.
    pub fn new(raw: Raw, tls: Option<&Arc<ServerConfig>>) -> io::Result<(Self, Option<String>)> {
        let Some(config) = tls else { return Ok((Self::Plain(raw), None)) };
        let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, raw);
        while stream.conn.is_handshaking() {
            let done = stream.conn.complete_io(&mut stream.sock);
            if let Err(error) = done {
                // Has the peer told why, as a real service does.
                let _ = stream.conn.write_tls(&mut stream.sock);
                return Err(error);
            }
        }
        let name = stream.conn.server_name().map(str::to_owned);
        Ok((Self::Tls(Box::new(stream)), name))
    }

    fn raw(&self) -> &Raw {
        match self {
            Self::Plain(raw) => raw,
            Self::Tls(stream) => &stream.sock,
        }
    }

    /// The longest wait for bytes.
    pub fn set_patience(&self, patience: Option<Duration>) {
        let set = match self.raw() {
            Raw::Tcp(stream) => stream.set_read_timeout(patience),
            Raw::Unix(stream) => stream.set_read_timeout(patience),
        };
        set.unwrap();
    }

    /// Ends the connection in order.
    pub fn close(mut self) {
        if let Self::Tls(stream) = &mut self {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        rustix::net::sockopt::set_socket_linger(self.raw(), Some(Duration::ZERO)).unwrap();
    }
}

impl AsFd for Raw {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(raw) => raw.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(raw) => raw.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(raw) => raw.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
