//! Kernel receive timestamps.
//!
//! An open loop that wakes once per send reads responses later than they came. The kernel notes the arrival of each
//! packet (`SO_TIMESTAMPNS`) and returns it with the data, so `done` is right although the read is late. The timestamp
//! is that of the last packet in the read data, on the wall clock.
//!
//! `unsafe`, since no crate in use here offers this control message for streams.
#![allow(unsafe_code, reason = "recvmsg with SCM_TIMESTAMPNS has no safe wrapper that does not allocate")]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

use weir_base::WallNanos;

/// Whether there are receive timestamps.
pub const ARE_SUPPORTED: bool = true;

/// Enables receive timestamps for a socket.
///
/// # Errors
/// As `setsockopt`: on kernels without the option.
pub fn enable(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the pointer is to a live c_int and the length is its size; the descriptor is open while borrowed.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Buffer for one control message with a `timespec`, aligned as `cmsghdr` requires.
#[repr(C)]
union ControlBuffer {
    _align: libc::cmsghdr,
    bytes: [u8; 64],
}

/// Reads into `buffer`; returns the number of bytes, and the arrival of the last one if the kernel reports it.
///
/// # Errors
/// As `recvmsg`.
pub fn recv(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Option<WallNanos>)> {
    let mut control = MaybeUninit::<ControlBuffer>::uninit();
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all-zero bytes are a valid `msghdr` (null pointers, zero lengths).
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of::<ControlBuffer>() as _;
    // SAFETY: `message` points to one iovec over `buffer` and to a control area of the stated size, both live and
    // exclusively borrowed for the call.
    let read = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    if read < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: after success the kernel has set msg_controllen to the length of the control messages that it wrote;
    // CMSG_FIRSTHDR returns null or a header that lies wholly within them.
    let stamp = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if !header.is_null() && (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_TIMESTAMPNS
        {
            // Control data may be less aligned than a timespec.
            let time: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(header).cast());
            Some(WallNanos(time.tv_sec as i64 * 1_000_000_000 + time.tv_nsec as i64))
        } else {
            None
        }
    };
    Ok((read as usize, stamp))
}
