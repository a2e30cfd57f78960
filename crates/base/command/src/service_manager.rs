//! Messages to systemd about the state of a service (`sd_notify(3)`, `Type=notify`).

use std::env;
use std::ffi::OsString;
use std::io;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Tells systemd a state, e.g. `READY=1`, if it has started this process and wants to know.
pub fn notify(state: &str) {
    if let Some(socket) = env::var_os("NOTIFY_SOCKET") {
        // A service works without anybody who listens to it.
        let _ = send(&socket, state);
    }
}

fn send(socket: &OsString, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().split_first() {
        // An abstract name, which systemd writes with an @ in place of the zero byte.
        #[cfg(target_os = "linux")]
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}
