//! Number of unacknowledged bytes of a connection.
//!
//! Bytes never acknowledged before the other end closed the connection were not taken there. So a request that met the
//! close of an idle connection differs from one that was read without a response.
//!
//! `unsafe`, since no crate in use here offers this request.
#![allow(unsafe_code, reason = "ioctl with SIOCOUTQ has no safe wrapper in the crates in use")]

use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes written and not acknowledged; None if the system does not report it.
pub fn outstanding(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ (which is TIOCOUTQ) writes one int to the address of a live one; the descriptor is open while
    // borrowed.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if done == 0 { u64::try_from(bytes).ok() } else { None }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_meets_a_close_stays_outstanding_and_what_was_taken_does_not() {
        for takes in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut theirs, _) = listener.accept().unwrap();
            if takes {
                ours.write_all(b"request").unwrap();
                theirs.read_exact(&mut [0; 7]).unwrap();
            }
            theirs.shutdown(Shutdown::Both).unwrap();
            drop(theirs);
            if !takes {
                ours.write_all(b"request").unwrap();
            }
            assert_eq!(ours.read(&mut [0]).unwrap(), 0, "its close came in good order");
            assert_eq!(outstanding(ours.as_fd()), Some(if takes { 0 } else { 7 }));
        }
    }
}
