//! Names of DNS, as questions and answers have them.

use std::fmt;

use simple_dns::Name;

/// Maximum length of a name as text without its last dot (RFC 1035, 255 bytes in a message).
const MAX_NAME_BYTES: usize = 253;
/// Maximum length of a label.
const MAX_LABEL_BYTES: usize = 63;

/// An absolute name of DNS, in lower case and without its last dot: `api.example`. Its labels are of printable ASCII.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsName(String);

impl DnsName {
    /// A name from text; one dot at its end is ignored. None if it has no label, or one that is empty, too long, or not
    /// of printable ASCII.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.strip_suffix('.').unwrap_or(text);
        let is_label = |label: &[u8]| {
            (1..=MAX_LABEL_BYTES).contains(&label.len())
                && label.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'\\')
        };
        let is_valid = text.len() <= MAX_NAME_BYTES && text.as_bytes().split(|byte| *byte == b'.').all(is_label);
        is_valid.then(|| Self(text.to_ascii_lowercase()))
    }

    /// A name of a message; None for the root, and for one that text cannot say without escapes: nothing here asks for
    /// such a name.
    pub(super) fn of_message(name: &Name<'_>) -> Option<Self> {
        let mut text = String::new();
        for label in name.as_bytes() {
            // A dot in a label would make two names alike.
            if label.contains(&b'.') {
                return None;
            }
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(std::str::from_utf8(label).ok()?);
        }
        Self::new(&text).filter(|_| !text.ends_with('.'))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
