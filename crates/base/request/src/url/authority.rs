//! Authority of a URL: user, host and port.

// The part of std::net that is data: addresses, and no sockets.
use core::net::{Ipv4Addr, Ipv6Addr};
use std::borrow::Cow;
use std::fmt::Write as _;

use idna::AsciiDenyList;

use super::error::{UrlProblem, printable};
use weir_base::percent;

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
    /// Name or IPv4 address in ASCII, in any case.
    Name(Cow<'t, str>),
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
        let text = std::str::from_utf8(text).map_err(|_| UrlProblem::InternationalHost)?;
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']').ok_or(UrlProblem::Ipv6)?;
                (UrlHost::Ipv6(parse_ipv6(address)?), port)
            }
            None => {
                let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                (UrlHost::Name(ascii_name(name)?), port)
            }
        };
        Ok(Self { userinfo, host, port: parse_port(port)? })
    }

    pub(super) fn push_host(&self, out: &mut String) {
        match &self.host {
            UrlHost::Name(name) => out.extend(name.chars().map(|c| c.to_ascii_lowercase())),
            // Writing to a string does not fail.
            UrlHost::Ipv6(address) => _ = write!(out, "[{address}]"),
        }
    }

    /// `user:password`, decoded; wrong escapes stand for themselves.
    pub(super) fn userinfo(&self) -> Option<Box<[u8]>> {
        let userinfo = self.userinfo?;
        let mut decoded = percent::decoded(userinfo).into_owned();
        if !userinfo.contains(&b':') {
            decoded.push(b':');
        }
        Some(decoded.into_boxed_slice())
    }
}

/// Address in brackets.
fn parse_ipv6(text: &str) -> Result<Ipv6Addr, UrlProblem> {
    text.parse().map_err(|_| match text.split_once('%') {
        Some((address, _)) if address.parse::<Ipv6Addr>().is_ok() => UrlProblem::Ipv6Zone,
        _ => UrlProblem::Ipv6,
    })
}

/// Checked name as the DNS has it: letters outside of ASCII are mapped and encoded as browsers do (UTS 46).
fn ascii_name(name: &str) -> Result<Cow<'_, str>, UrlProblem> {
    if name.is_ascii() {
        return check_name(name).map(|()| Cow::Borrowed(name));
    }
    let ascii = idna::domain_to_ascii_cow(name.as_bytes(), AsciiDenyList::URL);
    let ascii = ascii.map_err(|_| UrlProblem::InternationalHost)?;
    check_name(&ascii).map(|()| ascii)
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
