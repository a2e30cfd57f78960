//! Reasons why a text is not a URL of a request.

use std::fmt;

use weir_decide::base::terminal_text::is_steering;

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
    /// Another scheme.
    UnknownScheme(String),
    /// Nothing where the host should be.
    NoHost,
    /// Character that hosts do not have.
    HostCharacter(char),
    /// Host with letters outside of ASCII.
    InternationalHost,
    /// Host of more than 255 bytes.
    LongHost,
    /// Brackets without an IPv6 address.
    Ipv6,
    /// Port that is not a number in [1, 65535].
    Port(String),
}

impl UrlError {
    pub(super) fn new(text: &[u8], problem: UrlProblem) -> Self {
        Self { url: printable(&without_userinfo(text)), problem }
    }
}

/// Text with `***` in place of user and password.
fn without_userinfo(text: &[u8]) -> Vec<u8> {
    let start = text.windows(2).position(|pair| pair == b"//").map_or(0, |slashes| slashes + 2);
    let end = text[start..].iter().position(|b| b"/?#".contains(b)).map_or(text.len(), |len| start + len);
    match text[start..end].iter().rposition(|b| *b == b'@') {
        Some(at) => [&text[..start], b"***", &text[start + at..]].concat(),
        None => text.to_vec(),
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
        write!(f, "invalid URL '{}': {}", self.url, self.problem)
    }
}

impl std::error::Error for UrlError {}

impl fmt::Display for UrlProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScheme => f.write_str("no scheme; write e.g. http://localhost:8080/path"),
            Self::UnknownScheme(scheme) => write!(f, "unknown scheme '{scheme}'; choose http or https"),
            Self::NoHost => f.write_str("no host; write e.g. http://localhost:8080/path"),
            Self::HostCharacter(c) => write!(f, "invalid character '{}' in the host", c.escape_default()),
            Self::InternationalHost => f.write_str("host is not ASCII; write it in Punycode, as xn--..."),
            Self::LongHost => f.write_str("host has more than 255 bytes"),
            Self::Ipv6 => f.write_str("no IPv6 address in the brackets; write e.g. http://[::1]:8080/"),
            Self::Port(port) => write!(f, "invalid port '{port}'; write a number from 1 to 65535"),
        }
    }
}
