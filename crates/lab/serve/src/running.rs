//! A running service.

use std::net::SocketAddr;
use std::time::Duration;

use weir_server::{RunningServer, StopHandle};

use super::hostile_h2::HostileServer;

/// A running service, stopped when it is dropped.
#[derive(Debug)]
pub enum RunningService {
    /// One on the common server.
    Server(RunningServer),
    /// The one that breaks the rules of HTTP/2.
    HostileH2(HostileServer),
}

impl RunningService {
    /// Listening address.
    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Server(server) => server.address(),
            Self::HostileH2(server) => server.address(),
        }
    }

    /// `http://` and the address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Stops accepting connections, and awaits pending responses for `grace` at most.
    pub fn stop(self, grace: Duration) {
        match self {
            Self::Server(server) => {
                server.stop(grace);
            }
            Self::HostileH2(mut server) => server.stop(),
        }
    }

    /// Handle by which another thread ends the grace time, if there is one.
    pub fn stop_handle(&self) -> Option<StopHandle> {
        match self {
            Self::Server(server) => Some(server.stop_handle()),
            Self::HostileH2(_) => None,
        }
    }
}

impl From<RunningServer> for RunningService {
    fn from(server: RunningServer) -> Self {
        Self::Server(server)
    }
}
