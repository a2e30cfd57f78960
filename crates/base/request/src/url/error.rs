//! Reasons why a text is not a URL of a request.

use std::fmt;

use crate::secret_mask::without_secrets;
use crate::url_text::UrlText;
use weir_base::terminal_text::is_steering;

/// Characters of a URL that an error quotes.
const QUOTED_CHARS: usize = 120;

/// Text that is not a URL of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    /// Beginning of the text, printable, without a password.
    pub url: String,
    /// Reason.
    pub problem: UrlProblem,
}

/// Reason why a text is not a URL of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlProblem {
    /// Neither http:// nor https:// at the beginning.
    NoScheme,
    /// Another scheme; empty where it may be a user.
    UnknownScheme(String),
    /// Nothing where the host should be.
    NoHost,
    /// Tab, line break or another control character.
    ControlCharacter(char),
    /// Character that hosts do not have.
    HostCharacter(char),
    /// Host with letters outside of ASCII that no name of the DNS has.
    InternationalHost,
    /// Host of more than 255 bytes.
    LongHost,
    /// Brackets without an IPv6 address.
    Ipv6,
    /// IPv6 address with a zone, as `fe80::1%25eth0`.
    Ipv6Zone,
    /// Port that is not a number in [1, 65535]; empty where it may be a password.
    Port(String),
}

impl UrlError {
    pub(super) fn new(text: &[u8], problem: UrlProblem) -> Self {
        let text = String::from_utf8_lossy(text);
        // A password may have been taken for the port or the scheme.
        let problem = match problem {
            UrlProblem::Port(_) if UrlText::of(&text).after_authority.contains('@') => UrlProblem::Port(String::new()),
            UrlProblem::UnknownScheme(_) if text.contains('@') && !text.contains("://") => {
                UrlProblem::UnknownScheme(String::new())
            }
            other => other,
        };
        Self { url: printable(without_secrets(&text).as_bytes()), problem }
    }

    /// The same of a URL whose scheme stands for `http`, or with an `s` for `https`.
    #[must_use]
    pub fn in_scheme(self, scheme: &str) -> Self {
        Self { url: self.url.replacen("http", scheme, 1), ..self }
    }
}

/// Beginning of a text, on one line.
pub(super) fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut shown: String =
        text.chars().take(QUOTED_CHARS).map(|c| if is_steering(c) { char::REPLACEMENT_CHARACTER } else { c }).collect();
    if text.chars().nth(QUOTED_CHARS).is_some() {
        shown.push_str("...");
    }
    shown
}

/// `invalid URL 'ftp://h/': unknown scheme 'ftp'; choose http or https`.
impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Examples have the scheme that was given.
        let given = self.url.split_once("://").map_or("http", |(scheme, _)| scheme);
        let scheme = if matches!(given, "ws" | "wss" | "grpc" | "grpcs") { given } else { "http" };
        let problem = self.problem.to_string().replace("http://", &format!("{scheme}://"));
        write!(f, "invalid URL '{}': {problem}", self.url)
    }
}

impl std::error::Error for UrlError {}

impl fmt::Display for UrlProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScheme => f.write_str("no scheme; write e.g. http://localhost:8080/path"),
            Self::UnknownScheme(scheme) if scheme.is_empty() => f.write_str("unknown scheme; choose http or https"),
            Self::UnknownScheme(scheme) => write!(f, "unknown scheme '{scheme}'; choose http or https"),
            Self::NoHost => f.write_str("no host; write e.g. http://localhost:8080/path"),
            Self::ControlCharacter(c) => {
                write!(f, "control character '{}'; write it percent-encoded", c.escape_default())
            }
            Self::HostCharacter(c) => write!(f, "invalid character '{}' in the host", c.escape_default()),
            Self::InternationalHost => f.write_str("invalid letters in the host; write it in Punycode, as xn--..."),
            Self::LongHost => f.write_str("host has more than 255 bytes"),
            Self::Ipv6 => f.write_str("no IPv6 address in the brackets; write e.g. http://[::1]:8080/"),
            Self::Ipv6Zone => f.write_str(
                "an IPv6 address with a zone; leave the zone out, and give it with --connect-to '[ADDRESS%ZONE]:PORT'",
            ),
            Self::Port(port) if port.is_empty() => f.write_str("invalid port; write a number from 1 to 65535"),
            Self::Port(port) => write!(f, "invalid port '{port}'; write a number from 1 to 65535"),
        }
    }
}
