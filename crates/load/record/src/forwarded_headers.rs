//! Headers of messages that pass through: those of the connection are taken off (RFC 9110, 7.6.1), and nothing is added.
//! PURE.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use weir_net::upgrade::{carries_requests, requested_protocol};

/// Headers of a connection beside those that `Connection` names. `TE` stays if it says that trailers are wanted.
const CONNECTION_HEADERS: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Headers that a message needs whatever `Connection` says.
const KEPT_HEADERS: [&str; 6] =
    ["host", "content-length", "content-type", "content-encoding", "authorization", "cookie"];

/// Protocol that a request asks to switch to. HTTP/2 is not one: the request is sent without the offer.
pub(crate) fn upgrade_protocol(headers: &HeaderMap) -> Option<HeaderValue> {
    let protocol = requested_protocol(headers)?;
    // What is in a connection of HTTP/2 or TLS would not be recorded.
    (!protocol.to_str().is_ok_and(carries_requests)).then(|| protocol.clone())
}

/// Takes off the headers of a request's connection. `Expect` is met here: a client gets its 100 when its body is read.
pub(crate) fn clean_request(headers: &mut HeaderMap) {
    clean(headers);
    headers.remove(header::EXPECT);
    if let Some(te) = headers.remove(header::TE)
        && tokens(&te).any(|name| name == "trailers")
    {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    join_cookies(headers);
}

/// Takes off the headers of a response's connection.
pub(crate) fn clean_response(headers: &mut HeaderMap) {
    clean(headers);
}

fn clean(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(tokens)
        .filter(|name| !KEPT_HEADERS.contains(&name.as_str()))
        .filter_map(|name| name.parse().ok())
        .collect();
    for name in named.iter().filter(|name| **name != header::TE).chain(&CONNECTION_HEADERS) {
        headers.remove(name);
    }
}

/// Joins several cookie fields of HTTP/2 into one (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let cookies: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, joined);
    }
}

/// Elements of a list, in small letters.
fn tokens(value: &HeaderValue) -> impl Iterator<Item = String> + use<> {
    let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
    let names: Vec<String> =
        text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    names.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn headers_of_the_connection_are_taken_off_and_no_others() {
        let mut all = headers(&[
            ("connection", "keep-alive, X-Hop, Cookie"),
            ("x-hop", "1"),
            ("proxy-authorization", "Basic x"),
            ("proxy-connection", "keep-alive"),
            ("te", "gzip, Trailers"),
            ("expect", "100-continue"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("content-encoding", "gzip"),
        ]);
        clean_request(&mut all);
        assert_eq!(all, headers(&[("content-encoding", "gzip"), ("cookie", "a=1; b=2"), ("te", "trailers")]));
    }

    #[test]
    fn an_upgrade_is_asked_for_by_two_headers_and_is_not_to_http2() {
        let requests_upgrade = |lines| upgrade_protocol(&headers(lines)).is_some();
        assert!(requests_upgrade(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]));
        assert!(!requests_upgrade(&[("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c")]));
        assert!(!requests_upgrade(&[("upgrade", "websocket")]));
    }
}
