//! How many bytes of a connection its other end has not acknowledged.
//!
//! What was written to a connection and never acknowledged before its other end closed it has not been taken there. So a
//! request that met the close of an idle connection can be told from one that was read and not answered.
//!
//! `unsafe`, since no crate in use here offers this request.
#![allow(unsafe_code, reason = "ioctl with SIOCOUTQ has no safe wrapper in the crates in use")]

use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes that were written and not acknowledged; none if the system does not say.
pub(super) fn outstanding(socket: BorrowedFd<'_>) -> Option<u64> {
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
