//! Listening sockets that systemd has opened for the process (socket activation, `sd_listen_fds(3)`).
//!
//! `unsafe`, since a descriptor that the environment names by its number has no owner in this process.
#![allow(unsafe_code, reason = "a descriptor named by its number can only be borrowed without a proof")]

use std::env;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::fcntl_getfd;

/// Number of the first descriptor.
const FIRST_DESCRIPTOR: i32 = 3;

/// A copy of the socket of this name, or number from 0.
///
/// # Errors
/// The process was started without it.
pub(super) fn socket(name: &str) -> io::Result<OwnedFd> {
    let not_found = |why: String| io::Error::new(io::ErrorKind::NotFound, why);
    let number_of = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let is_ours = number_of("LISTEN_PID") == Some(std::process::id());
    let count = number_of("LISTEN_FDS").filter(|_| is_ours).unwrap_or(0);
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let index = find(name, count, &names).ok_or_else(|| {
        let remedy = "start the service by a .socket unit with ListenStream= and FileDescriptorName=";
        not_found(match count {
            0 => format!("systemd has passed no socket; {remedy}"),
            _ => format!("systemd has passed {count} sockets, none of this name ({names}); {remedy}"),
        })
    })?;
    let number = i32::try_from(index).unwrap_or(i32::MAX).saturating_add(FIRST_DESCRIPTOR);
    // SAFETY: nothing in this process closes a descriptor that it was started with, so the number denotes the same open
    // file until the copy is made; if there is none, the system reports it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_getfd(borrowed)?;
    borrowed.try_clone_to_owned()
}

/// Index of the socket of a name, or of a number below `count`.
fn find(name: &str, count: u32, names: &str) -> Option<u32> {
    let named = names.split(':').position(|known| known == name).and_then(|index| u32::try_from(index).ok());
    named.or_else(|| name.parse().ok()).filter(|index| *index < count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_have_names_and_numbers() {
        for (name, count, names, expected) in [
            ("http", 2, "http:https", Some(0)),
            ("https", 2, "http:https", Some(1)),
            ("1", 2, "http:https", Some(1)),
            ("2", 2, "http:https", None),
            ("0", 1, "", Some(0)),
            ("0", 0, "", None),
            ("https", 1, "http:https", None),
            ("other", 2, "http:https", None),
        ] {
            assert_eq!(find(name, count, names), expected, "{name} {count} {names}");
        }
    }
}
