//! Target of POST requests of one kind, such as a collector of metrics or traces.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Response};

use super::{
    Client, ConnectOptions, IncomingBody, Origin, OutgoingBody, OutgoingRequest, Protocol, SendError, WireOptions,
};
use crate::target::Target;
use crate::tls::TlsError;
use weir_base::Nanos;
use weir_machine::clock;
use weir_request::basic_auth::basic_authorization;
use weir_retry::retry_after::retry_after;

/// Origin, path and headers of messages that are posted, one at a time.
#[derive(Clone, Debug)]
pub struct PostTarget {
    origin: Arc<Origin>,
    path: String,
    headers: HeaderMap,
}

impl PostTarget {
    /// Target of messages of a media type at a path. User and password of the URL are sent as basic authentication.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(target: &Target, path: String, content_type: &'static str) -> Result<Self, TlsError> {
        // All receivers support HTTP/1.1, which is enough for one request at a time.
        let reach = ConnectOptions { protocol: Protocol::Http1, max_connections: Some(1), ..ConnectOptions::default() };
        let mut post = Self { origin: Arc::new(Origin::new(target, &reach)?), path, headers: HeaderMap::new() };
        post.headers.insert(USER_AGENT, HeaderValue::from_static(concat!("weir/", env!("CARGO_PKG_VERSION"))));
        post.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Some(userinfo) = &target.userinfo {
            // Base64 is a valid header value.
            let _ = post.insert(AUTHORIZATION.as_str(), &basic_authorization(userinfo));
        }
        Ok(post)
    }

    /// Sets a header, in place of one of the same name; messages do not show its value.
    ///
    /// # Errors
    /// One line: name or value is not one of a header.
    pub fn insert(&mut self, name: &str, value: &str) -> Result<(), String> {
        let wrong = || format!("invalid header '{name}'; write 'NAME: VALUE' in ASCII");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(())
    }

    /// Path and query of its requests.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Headers of its requests.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Posts a message.
    ///
    /// # Errors
    /// There is no response.
    pub async fn post(&self, client: &Client, body: Bytes) -> Result<Response<IncomingBody>, SendError> {
        let request = OutgoingRequest {
            method: &Method::POST,
            target: &self.path,
            headers: &self.headers,
            extra_headers: &[],
            body: OutgoingBody::Bytes(body),
            upgrade: false,
            wire: WireOptions::default(),
        };
        client.send(&self.origin, request).await
    }
}

/// Wait that a response asks for by Retry-After, up to `max`; zero without one.
pub fn wait_of(headers: &HeaderMap, max: Nanos) -> Nanos {
    let wait = headers.get(RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?, clock::wall()));
    wait.unwrap_or_default().min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> PostTarget {
        PostTarget::new(&Target::parse(url).unwrap(), "/in".to_owned(), "text/plain").unwrap()
    }

    #[test]
    fn credentials_are_in_headers_and_in_no_message() {
        let basic = target("http://me:secret@127.0.0.1:1");
        assert_eq!(basic.headers[AUTHORIZATION], "Basic bWU6c2VjcmV0");
        let mut own = target("http://me:secret@127.0.0.1:1");
        own.insert("authorization", "Bearer t0ken").unwrap();
        assert_eq!(own.headers[AUTHORIZATION], "Bearer t0ken");
        assert!(!format!("{basic:?}{own:?}").contains("t0ken") && !format!("{basic:?}").contains("bWU6"));
        for (name, value) in [("a b", "x"), ("a", "x\ny"), ("", "x")] {
            let why = own.insert(name, value).unwrap_err();
            assert!(why.contains("invalid header") && !why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn retry_after_is_read_and_bounded() {
        let max = Nanos::from_secs(300);
        let wait =
            |text: &str| wait_of(&HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(text).unwrap())]), max);
        assert_eq!(wait("7"), Nanos::from_secs(7));
        assert_eq!(wait("4000000000"), max);
        assert_eq!(wait("Fri, 31 Dec 9999 23:59:59 GMT"), max);
        assert_eq!(
            [wait("Thu, 01 Jan 1970 00:00:00 GMT"), wait("soon"), wait_of(&HeaderMap::new(), max)],
            [Nanos::ZERO; 3]
        );
    }
}
