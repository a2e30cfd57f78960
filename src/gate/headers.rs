//! Headers on their way through: those that concern one connection end here (RFC 9110, 7.6.1), and the upstream hears
//! for whom it is asked.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Headers of one connection, whatever `Connection` says. `TE` and `Trailer` stay: trailers are passed on.
const OF_THE_CONNECTION: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::PROXY_AUTHENTICATE,
];

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The protocol that the client wants to switch to, if it says so in full.
pub(super) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let protocol = headers.get(header::UPGRADE)?;
    let asked = headers.get_all(header::CONNECTION).iter().any(|value| names(value).any(|name| name == "upgrade"));
    asked.then(|| protocol.clone())
}

/// Removes what concerns one connection.
pub(super) fn end_here(headers: &mut HeaderMap) {
    // One look at the names costs less than to look each of ours up, and most messages have none.
    if !headers.keys().any(|name| OF_THE_CONNECTION.contains(name)) {
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(names)
        // "close" and "keep-alive" are words, and a peer that names the others wants to smuggle: without them a request
        // would be another one.
        .filter(|name| !matches!(name.as_str(), "close" | "host" | "content-length" | "content-type" | "authorization"))
        .filter_map(|name| name.parse().ok())
        .collect();
    for name in named.iter().chain(&OF_THE_CONNECTION) {
        headers.remove(name);
    }
}

/// Of the transfer codings that the client takes, keeps only that it takes trailers: to undo the others is not its
/// business here.
pub(super) fn trailers_only(headers: &mut HeaderMap) {
    if headers.contains_key(header::TE) {
        let trailers = headers.get_all(header::TE).iter().any(|value| names(value).any(|name| name == "trailers"));
        headers.remove(header::TE);
        if trailers {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
        }
    }
}

/// HTTP/2 lets cookies come one by one, HTTP/1.1 does not (RFC 9113, 8.2.3).
pub(super) fn one_cookie(headers: &mut HeaderMap) {
    let mut cookies = headers.get_all(header::COOKIE).iter();
    if let (Some(first), Some(second)) = (cookies.next(), cookies.next()) {
        let mut all = [first.as_bytes(), b"; ", second.as_bytes()].concat();
        for cookie in cookies {
            all.extend_from_slice(b"; ");
            all.extend_from_slice(cookie.as_bytes());
        }
        if let Ok(all) = HeaderValue::from_bytes(&all) {
            headers.insert(header::COOKIE, all);
        }
    }
}

/// Whether this is a host, perhaps with a port, or nothing at all (RFC 9110, 7.2). What is more than that, each reader
/// may read differently: `a@b`, `a/b`, `a, b`, `a:80:b`.
pub(super) fn is_host(value: &[u8]) -> bool {
    let (name, port) = match value.iter().rposition(|byte| *byte == b':') {
        // Not a colon within the brackets of an IPv6 address.
        Some(colon) if !value[colon..].contains(&b']') => (&value[..colon], &value[colon + 1..]),
        _ => (value, &b""[..]),
    };
    let named = match name.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) {
        Some(address) => address.iter().all(|byte| byte.is_ascii_alphanumeric() || b":.".contains(byte)),
        None => name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=".contains(byte)),
    };
    named && port.iter().all(u8::is_ascii_digit) && (port.is_empty() || !name.is_empty())
}

/// The words of a list, in lower case.
fn names(value: &HeaderValue) -> impl Iterator<Item = String> {
    let text = value.to_str().unwrap_or_default();
    text.split(',').map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty())
}

/// Who the last proxy on the way has asked for, if it says so.
pub(super) fn forwarded_by_last(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all(FORWARDED_FOR).iter().next_back()?.to_str().ok()?;
    last.rsplit(',').next()?.trim().parse().ok()
}

/// Says for whom the upstream is asked. What the client itself says of that counts only if it is trusted.
pub(super) fn forwarded(headers: &mut HeaderMap, client: &HeaderValue, host: Option<&HeaderValue>, trusted: bool) {
    // A list may come in several lines, whose order counts (RFC 9110, 5.3).
    let said = headers.get_all(FORWARDED_FOR).iter().filter(|said| trusted && !said.is_empty());
    let chain: Vec<&[u8]> = said.chain([client]).map(HeaderValue::as_bytes).collect();
    let chain = HeaderValue::from_bytes(&chain.join(&b", "[..]));
    headers.insert(FORWARDED_FOR, chain.unwrap_or_else(|_| client.clone()));
    if !(trusted && headers.contains_key(FORWARDED_PROTO)) {
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static("http"));
    }
    if let Some(host) = host.filter(|_| !(trusted && headers.contains_key(FORWARDED_HOST))) {
        headers.insert(FORWARDED_HOST, host.clone());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn what_concerns_the_connection_ends_here() {
        let mut all = headers(&[
            ("connection", "close, X-Own"),
            ("connection", "te"),
            ("x-own", "1"),
            ("te", "trailers"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("x-stays", "1"),
        ]);
        end_here(&mut all);
        assert_eq!(all, headers(&[("x-stays", "1")]));
    }

    #[test]
    fn a_client_cannot_have_the_headers_removed_that_a_request_lives_by() {
        let mut all =
            headers(&[("connection", "host, authorization, content-length"), ("host", "a"), ("authorization", "b")]);
        end_here(&mut all);
        assert_eq!(all, headers(&[("host", "a"), ("authorization", "b")]));
    }

    #[test]
    fn an_upgrade_has_to_be_asked_for_in_both_places() {
        let asked = |lines| upgrade(&headers(lines)).is_some();
        assert!(asked(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]));
        assert!(!asked(&[("connection", "keep-alive"), ("upgrade", "websocket")]));
        assert!(!asked(&[("connection", "upgrade")]));
    }

    #[test]
    fn of_te_only_trailers_are_passed_on() {
        let mut all = headers(&[("te", "gzip;q=0.5, Trailers"), ("te", "deflate")]);
        trailers_only(&mut all);
        assert_eq!(all, headers(&[("te", "trailers")]));
        let mut all = headers(&[("te", "gzip")]);
        trailers_only(&mut all);
        assert_eq!(all, headers(&[]));
    }

    #[test]
    fn cookies_that_come_one_by_one_become_one_header() {
        let mut all = headers(&[("cookie", "a=1"), ("x-stays", "1"), ("cookie", "b=2"), ("cookie", "c=3; d=4")]);
        one_cookie(&mut all);
        assert_eq!(all, headers(&[("cookie", "a=1; b=2; c=3; d=4"), ("x-stays", "1")]));
    }

    #[test]
    fn a_host_is_a_name_or_an_address_and_perhaps_a_port() {
        for host in ["", "a", "a:80", "a:", "under_score.example", "[::1]", "[::1]:8080", "127.0.0.1:1", "x%41"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for none in
            ["a@b", "a/b", "a b", "a, b", "a:80:b", "a:b", "[::1", "::1", ":80", "a?b", "a#b", "[::1]x:1", "\u{e9}"]
        {
            assert!(!is_host(none.as_bytes()), "{none}");
        }
    }

    #[test]
    fn what_a_stranger_says_of_itself_is_replaced() {
        let host = HeaderValue::from_static("api.example");
        let mut strange = headers(&[("x-forwarded-for", "6.6.6.6"), ("x-forwarded-proto", "https")]);
        let mut trusted = strange.clone();
        forwarded(&mut strange, &HeaderValue::from_static("10.0.0.1"), Some(&host), false);
        let own = [("x-forwarded-for", "10.0.0.1"), ("x-forwarded-proto", "http"), ("x-forwarded-host", "api.example")];
        assert_eq!(strange, headers(&own));
        forwarded(&mut trusted, &HeaderValue::from_static("10.0.0.1"), Some(&host), true);
        assert_eq!(trusted.get("x-forwarded-for").unwrap(), "6.6.6.6, 10.0.0.1");
        assert_eq!(trusted.get("x-forwarded-proto").unwrap(), "https");
        let mut lines = headers(&[("x-forwarded-for", "1.1.1.1, 2.2.2.2"), ("x-forwarded-for", "3.3.3.3")]);
        forwarded(&mut lines, &HeaderValue::from_static("10.0.0.1"), Some(&host), true);
        assert_eq!(lines.get("x-forwarded-for").unwrap(), "1.1.1.1, 2.2.2.2, 3.3.3.3, 10.0.0.1");
        assert_eq!(lines.get_all("x-forwarded-for").iter().count(), 1);
    }
}
