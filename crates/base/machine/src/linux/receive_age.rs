//! Age of a connection's last received bytes, by the kernel.
//!
//! When a thousand clients connect at once, the last one is accepted a tenth of a second after its request. A deadline
//! counts from the request.
//!
//! `unsafe`, since no crate in use here offers this option.
#![allow(unsafe_code, reason = "getsockopt with TCP_INFO has no safe wrapper in the crates in use")]

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

use weir_base::Nanos;

/// Resolution of the age: the kernel counts in ticks of up to 10 ms and rounds either way; below it the age is 0.
const KERNEL_TICK: Nanos = Nanos::from_millis(4);

/// Age of the last received bytes, rather too short than too long; zero if the kernel does not report it.
pub fn age(socket: BorrowedFd<'_>) -> Nanos {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the pointers are to a live tcp_info and to its size; the kernel writes no more than that. The descriptor
    // is open while borrowed.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if done != 0 {
        return Nanos::ZERO;
    }
    // SAFETY: a tcp_info is plain integers, for which zeroes, and whatever the kernel has written, are valid.
    let info = unsafe { info.assume_init() };
    Nanos::from_millis(info.tcpi_last_data_recv.into()) - KERNEL_TICK
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;
    use crate::clock::Clock;

    #[test]
    fn bytes_that_wait_grow_old() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let clock = Clock::starting_in(Nanos::ZERO);
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        sender.write_all(b"GET").unwrap();
        let sent = clock.now();
        clock.sleep_until(sent + Nanos::from_millis(60));
        let (receiver, _) = listener.accept().unwrap();
        let before = clock.now() - sent;
        let age = age(receiver.as_fd());
        assert!(age <= before + KERNEL_TICK && age + Nanos::from_millis(24) >= before, "{age} of {before}");
    }
}
