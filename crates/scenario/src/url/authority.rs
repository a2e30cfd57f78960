//! Authority of a URL: user, host and port.

// The part of std::net that is data: addresses, and no sockets.
use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt::Write as _;

use super::error::{UrlProblem, printable};

/// Bound of a host, which is more than DNS allows.
const MAX_HOST_BYTES: usize = 255;

/// Characters of ASCII that a host does not have; percent-encoded hosts are names that no resolver knows.
const EXCLUDED_FROM_HOSTS: &[u8] = b" \"#%/:<>?@[\\]^`{|}";

/// Parsed authority.
#[derive(Debug)]
pub(super) struct UrlAuthority<'t> {
    userinfo: Option<&'t [u8]>,
    host: UrlHost<'t>,
    pub(super) port: Option<u16>,
}

#[derive(Debug)]
enum UrlHost<'t> {
    /// Name or IPv4 address, in any case.
    Name(&'t str),
    Ipv6(Ipv6Addr),
}

impl<'t> UrlAuthority<'t> {
    /// Parses `user:password@host:port`; an empty port is the default, as everywhere.
    pub(super) fn parse(text: &'t [u8]) -> Result<Self, UrlProblem> {
        // To a browser it is a slash, and ends the host; here what follows would be the host.
        if let Some(byte) = text.iter().find(|byte| **byte == b'\\' || byte.is_ascii_control()) {
            return Err(UrlProblem::HostCharacter(char::from(*byte)));
        }
        // Passwords have been seen with a bare @; hosts have none.
        let (userinfo, text) = match text.iter().rposition(|b| *b == b'@') {
            Some(at) => (Some(&text[..at]).filter(|userinfo| !userinfo.is_empty()), &text[at + 1..]),
            None => (None, text),
        };
        if !text.is_ascii() {
            return Err(UrlProblem::InternationalHost);
        }
        let text = std::str::from_utf8(text).map_err(|_| UrlProblem::InternationalHost)?;
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']').ok_or(UrlProblem::Ipv6)?;
                (UrlHost::Ipv6(address.parse().map_err(|_| UrlProblem::Ipv6)?), port)
            }
            None => {
                let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                (UrlHost::Name(name), port)
            }
        };
        if let UrlHost::Name(name) = host {
            check_name(name)?;
        }
        Ok(Self { userinfo, host, port: parse_port(port)? })
    }

    pub(super) fn push_host(&self, out: &mut String) {
        match self.host {
            UrlHost::Name(name) => out.extend(name.chars().map(|c| c.to_ascii_lowercase())),
            // Writing to a string does not fail.
            UrlHost::Ipv6(address) => _ = write!(out, "[{address}]"),
        }
    }

    /// `user:password`, decoded; wrong escapes stand for themselves.
    pub(super) fn userinfo(&self) -> Option<Box<[u8]>> {
        let mut rest = self.userinfo?;
        let mut decoded = Vec::with_capacity(rest.len() + 1);
        let has_password = rest.contains(&b':');
        while let Some((&first, after)) = rest.split_first() {
            match (first, escaped_byte(after)) {
                (b'%', Some(byte)) => {
                    decoded.push(byte);
                    rest = &after[2..];
                }
                _ => {
                    decoded.push(first);
                    rest = after;
                }
            }
        }
        if !has_password {
            decoded.push(b':');
        }
        Some(decoded.into_boxed_slice())
    }
}

/// Byte that two hexadecimal digits at the beginning are.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

fn check_name(name: &str) -> Result<(), UrlProblem> {
    let is_excluded = |c: &char| c.is_ascii_control() || EXCLUDED_FROM_HOSTS.contains(&(*c as u8));
    if name.is_empty() {
        return Err(UrlProblem::NoHost);
    }
    if let Some(c) = name.chars().find(is_excluded) {
        return Err(UrlProblem::HostCharacter(c));
    }
    if name.len() > MAX_HOST_BYTES { Err(UrlProblem::LongHost) } else { Ok(()) }
}

/// Parses `:8080`, `:` or nothing; u16's own parser would accept a plus sign.
fn parse_port(text: &str) -> Result<Option<u16>, UrlProblem> {
    if text.is_empty() || text == ":" {
        return Ok(None);
    }
    let port = text.strip_prefix(':').filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    let port = port.and_then(|digits| digits.parse().ok()).filter(|port| *port > 0);
    match port {
        Some(port) => Ok(Some(port)),
        None => Err(UrlProblem::Port(printable(text.strip_prefix(':').unwrap_or(text).as_bytes()))),
    }
}

/// Whether a host is an address.
pub(super) fn is_ip(host: &str) -> bool {
    // Names begin with digits, too, but hardly any name ends with one.
    host.starts_with('[') || (host.ends_with(|c: char| c.is_ascii_digit()) && host.parse::<Ipv4Addr>().is_ok())
}
