//! Address of a receiver that is reached by HTTP.

use std::fmt;

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};

use weir_base::Nanos;
use weir_net::client::PostTarget;
use weir_net::target::Target;
use weir_net::tls::TlsError;
use weir_request::url::UrlError;

/// Where messages are posted, and what a response means there; credentials are in no message.
#[derive(Clone, Debug)]
pub struct HttpAddress {
    url: String,
    pub(crate) post: PostTarget,
    pub(crate) rules: HttpRules,
}

/// Common part of all requests to a kind of receiver.
#[derive(Clone, Copy, Debug)]
pub struct HttpRules {
    /// Media type of messages.
    pub content_type: &'static str,
    /// Further headers of each request: names and values.
    pub headers: &'static [(&'static str, &'static str)],
    /// Whether a message that was rejected with this status may be sent again.
    pub is_retryable: fn(u16) -> bool,
    /// Longest honoured Retry-After.
    pub max_retry_after: Nanos,
}

/// Error of an address, in one line.
#[derive(Debug)]
pub enum AddressError {
    /// Invalid URL.
    Url(UrlError),
    /// TLS cannot be set up.
    Tls(TlsError),
    /// Invalid header.
    Header(String),
}

impl std::error::Error for AddressError {}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Header(why) => f.write_str(why),
        }
    }
}

impl HttpAddress {
    /// Address of a URL; `path` gives the path and query of its requests. User and password of the URL are sent as basic
    /// authentication. `headers` are the user's: names and values; those that describe the message stay.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn new(
        url: &str,
        path: impl FnOnce(&Target) -> String,
        rules: HttpRules,
        headers: &[(String, String)],
    ) -> Result<Self, AddressError> {
        let target = Target::parse(url).map_err(AddressError::Url)?;
        let path = path(&target);
        let url = format!("{}{path}", target.url.strip_suffix(&target.path).unwrap_or(&target.url));
        let mut post = PostTarget::new(&target, path, rules.content_type).map_err(AddressError::Tls)?;
        let is_fixed = |name: &str| {
            [ACCEPT, CONTENT_ENCODING, CONTENT_TYPE].iter().any(|own| name.eq_ignore_ascii_case(own.as_str()))
        };
        let own = headers.iter().filter(|(name, _)| !is_fixed(name));
        let pairs = own.map(|(name, value)| (name.as_str(), value.as_str())).chain(rules.headers.iter().copied());
        for (name, value) in pairs {
            post.insert(name, value).map_err(AddressError::Header)?;
        }
        Ok(Self { url, post, rules })
    }

    /// URL of the requests, without user and password.
    pub fn url(&self) -> &str {
        &self.url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: HttpRules = HttpRules {
        content_type: "application/x-protobuf",
        headers: &[("content-encoding", "snappy")],
        is_retryable: |_| false,
        max_retry_after: Nanos::ZERO,
    };

    fn address(url: &str, headers: &[(&str, &str)]) -> Result<HttpAddress, AddressError> {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        HttpAddress::new(url, |target| target.path.replace("/old", "/new"), RULES, &headers)
    }

    #[test]
    fn a_password_goes_into_a_header_and_not_into_a_message() {
        let address = address("http://me:secret@h:4318/old?a=b", &[]).unwrap();
        assert!(!format!("{address:?}").contains("secret") && !format!("{address:?}").contains("bWU6"));
        assert_eq!((address.url(), address.post.path()), ("http://h:4318/new?a=b", "/new?a=b"));
    }

    #[test]
    fn headers_are_checked_and_those_of_the_message_stay() {
        let own = [("Content-Type", "text/plain"), ("content-encoding", "gzip"), ("accept", "x/y"), ("x-key", "abc")];
        let own = address("http://127.0.0.1:1", &own).unwrap();
        assert_eq!(own.post.headers()[CONTENT_TYPE], "application/x-protobuf");
        assert_eq!(own.post.headers()[CONTENT_ENCODING], "snappy");
        assert_eq!((own.post.headers().get(ACCEPT), &own.post.headers()["x-key"]), (None, &"abc".parse().unwrap()));
        assert!(address("http://127.0.0.1:1", &[("a b", "x")]).unwrap_err().to_string().contains("invalid header"));
        assert!(address("http://", &[]).unwrap_err().to_string().contains("no host"));
    }
}
