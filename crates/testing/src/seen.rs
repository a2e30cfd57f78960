//! A request as a scripted service got it.

use std::time::Instant;

/// A request as the service got it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Number of the connection, from 0, in the order of acceptance.
    pub connection: u64,
    /// Number of the request on its connection, from 0.
    pub turn: u64,
    /// Number of the request in all, from 0.
    pub number: u64,
    pub at: Instant,
    /// Request line and headers.
    pub head: String,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    /// The value of a header, if it is there once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.head.lines().skip(1).filter_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        });
        values.next().filter(|_| values.next().is_none())
    }
}
