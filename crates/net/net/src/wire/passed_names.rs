//! Names of fields of a request that may be passed on unread.

/// Fields of requests that only their ends read, in lower case and by length. None of them is of the framing, the
/// connection, the host or the deadline, and none is one that a proxy sets or forges.
const NAMES: [&str; 39] = [
    "dnt",
    "range",
    "accept",
    "cookie",
    "origin",
    "pragma",
    "baggage",
    "referer",
    "sec-gpc",
    "if-match",
    "if-range",
    "priority",
    "save-data",
    "sec-ch-ua",
    "x-api-key",
    "tracestate",
    "user-agent",
    "x-trace-id",
    "content-md5",
    "x-client-id",
    "x-request-id",
    "authorization",
    "cache-control",
    "if-none-match",
    "accept-charset",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-fetch-site",
    "sec-fetch-user",
    "accept-encoding",
    "accept-language",
    "idempotency-key",
    "content-language",
    "sec-ch-ua-mobile",
    "x-correlation-id",
    "x-requested-with",
    "if-modified-since",
    "sec-ch-ua-platform",
    "if-unmodified-since",
];

/// For each length the first of its names, and their number.
const BY_LENGTH: [(u8, u8); 20] = {
    let mut found = [(0, 0); 20];
    let mut at = 0;
    while at < NAMES.len() {
        let length = NAMES[at].len();
        if found[length].1 == 0 {
            found[length].0 = at as u8;
        }
        found[length].1 += 1;
        at += 1;
    }
    found
};

/// A set of names of request fields that nothing reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassedNames(u64);

impl PassedNames {
    /// No name.
    pub const NONE: Self = Self(0);

    /// All names that can be passed on but for those that occur in a text, in any case and with `_` or `-`: whatever may
    /// read a field has its name from such a text.
    pub fn unread_by(text: &str) -> Self {
        let plain = |text: &str| text.to_ascii_lowercase().replace('_', "-");
        let text = plain(text);
        NAMES
            .iter()
            .enumerate()
            .filter(|(_, name)| !text.contains(**name))
            .fold(Self::NONE, |all, (index, _)| Self(all.0 | 1 << index))
    }

    /// The names but for this one.
    #[must_use]
    pub fn without(self, name: &str) -> Self {
        index(name).map_or(self, |index| Self(self.0 & !(1 << index)))
    }

    /// Whether all of these names are among the `others`.
    pub fn are_in(self, others: Self) -> bool {
        self.0 & !others.0 == 0
    }

    /// The set of this name alone, if it is among the names.
    pub(super) fn find(self, name: &str) -> Option<Self> {
        if self == Self::NONE {
            return None;
        }
        let index = index(name)?;
        (self.0 & 1 << index != 0).then_some(Self(1 << index))
    }

    /// The names of both sets.
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

fn index(name: &str) -> Option<usize> {
    let (first, count) = *BY_LENGTH.get(name.len())?;
    let names = usize::from(first)..usize::from(first) + usize::from(count);
    // Most names of a length begin with different letters.
    let first = name.as_bytes().first()?.to_ascii_lowercase();
    names.into_iter().find(|index| NAMES[*index].as_bytes()[0] == first && NAMES[*index].eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        let all = PassedNames::unread_by("");
        for name in NAMES {
            let upper = name.to_ascii_uppercase();
            assert_eq!(all.find(&upper).map(|found| all.without(name).and(found)), Some(all));
            assert_eq!(all.without(name).find(name), None);
            assert!(http::HeaderName::from_bytes(name.as_bytes()).is_ok());
            for other in [format!("{name}x"), name[1..].to_owned(), name.replace('-', "_")] {
                assert_eq!(all.find(&other).is_some(), NAMES.contains(&other.as_str()), "{other}");
            }
        }
        assert_eq!(PassedNames::NONE.find("accept"), None);
        assert_eq!(all.find(""), None);
    }

    #[test]
    fn what_a_text_names_is_read() {
        let unread = PassedNames::unread_by("HeaderName(\"X-Api_Key\"), Cookie { name: \"a\" }");
        assert_eq!((unread.find("x-api-key"), unread.find("cookie")), (None, None));
        assert!(unread.find("user-agent").is_some());
        assert!(unread.are_in(PassedNames::unread_by("")) && !PassedNames::unread_by("").are_in(unread));
    }

    #[test]
    fn no_name_decides_about_a_request() {
        for name in [
            "host",
            "connection",
            "content-length",
            "transfer-encoding",
            "te",
            "trailer",
            "expect",
            "upgrade",
            "keep-alive",
            "content-type",
            "traceparent",
            "forwarded",
            "proxy-connection",
            "proxy-authorization",
            "http2-settings",
            "grpc-timeout",
            "max-forwards",
        ] {
            assert!(!NAMES.contains(&name), "{name}");
        }
        assert!(NAMES.iter().all(|name| !name.starts_with("x-forwarded") && !name.starts_with("x-envoy")));
    }
}
