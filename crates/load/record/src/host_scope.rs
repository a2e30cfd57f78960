//! Choice of the hosts that are recorded. PURE.

use std::fmt;

/// Pattern of hosts: `shop.example`, `*.shop.example`, `localhost:8080`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    /// Name in small letters, without brackets; `*` stands for any text.
    host: String,
    /// Port; any without one.
    port: Option<u16>,
}

impl HostPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Reason why the text is invalid, for a message that names the flag.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "write a host, e.g. shop.example, *.shop.example or localhost:8080".to_owned();
        let lower = text.trim().to_ascii_lowercase();
        let (host, port) = match lower.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host.to_owned(), None),
            Some((host, rest)) => (host.to_owned(), Some(rest.strip_prefix(':').ok_or_else(wrong)?)),
            None => match lower.split_once(':') {
                Some((host, port)) if !port.contains(':') => (host.to_owned(), Some(port)),
                // An IPv6 address without brackets.
                _ => (lower.clone(), None),
            },
        };
        let port = match port {
            Some(port) => Some(port.parse().map_err(|_| wrong())?),
            None => None,
        };
        let is_host = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "*-._:".contains(c));
        if is_host { Ok(Self { host, port }) } else { Err(wrong()) }
    }

    /// Whether a host (without brackets) and its port match.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|own| own == port) && matches_text(self.host.as_bytes(), &host.to_ascii_lowercase())
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_address = self.host.contains(':');
        match self.port {
            Some(port) if is_address => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

/// Whether a text matches a pattern with `*`. Linear but for the stars, without recursion.
fn matches_text(pattern: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    let (mut p, mut t) = (0, 0);
    // The last star, and the place in the text from which it was tried.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Hosts that are recorded: those of `only` (all, if it is empty) but those of `exclude`.
#[derive(Clone, Debug, Default)]
pub struct HostScope {
    /// Hosts that are recorded; all without any.
    pub only: Vec<HostPattern>,
    /// Hosts that are not recorded, also of `only`.
    pub exclude: Vec<HostPattern>,
}

impl HostScope {
    /// Whether requests to a host are recorded. Others pass through; with TLS unread.
    pub fn is_recorded(&self, host: &str, port: u16) -> bool {
        let is_one = |patterns: &[HostPattern]| patterns.iter().any(|pattern| pattern.matches(host, port));
        (self.only.is_empty() || is_one(&self.only)) && !is_one(&self.exclude)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_have_stars_and_ports() {
        for (pattern, host, port, expected) in [
            ("shop.example", "Shop.Example", 443, true),
            ("shop.example", "www.shop.example", 443, false),
            ("*.shop.example", "www.shop.example", 443, true),
            ("*.shop.example", "shop.example", 443, false),
            ("*shop*", "www.shop.example", 443, true),
            ("localhost:8080", "localhost", 8080, true),
            ("localhost:8080", "localhost", 8081, false),
            ("[::1]:80", "::1", 80, true),
            ("::1", "::1", 81, true),
        ] {
            assert_eq!(HostPattern::parse(pattern).unwrap().matches(host, port), expected, "{pattern} {host}:{port}");
        }
        for wrong in ["", "http://h", "h/path", "h:x", "a b", "[::1]x", "h:99999"] {
            assert!(HostPattern::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_excluded_is_not_recorded_even_if_it_is_chosen() {
        let pattern = |text| HostPattern::parse(text).unwrap();
        let scope = HostScope { only: vec![pattern("*.example")], exclude: vec![pattern("cdn.*")] };
        assert!(scope.is_recorded("shop.example", 443) && !scope.is_recorded("cdn.example", 443));
        assert!(!scope.is_recorded("other", 443) && HostScope::default().is_recorded("other", 443));
    }

    /// The same by trying every length that a star may have.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|length| naive(rest, &text[length..])),
            Some((byte, rest)) => text.split_first().is_some_and(|(first, text)| first == byte && naive(rest, text)),
        }
    }

    proptest! {
        #[test]
        fn stars_stand_for_any_text(pattern in "[ab*]{0,8}", text in "[ab]{0,8}") {
            prop_assert_eq!(matches_text(pattern.as_bytes(), &text), naive(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn any_text_is_a_pattern_or_an_error(text in "\\PC{0,20}") {
            if let Ok(pattern) = HostPattern::parse(&text) {
                prop_assert_eq!(HostPattern::parse(&pattern.to_string()), Ok(pattern));
            }
        }
    }
}
