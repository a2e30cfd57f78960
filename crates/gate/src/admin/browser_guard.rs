//! Requests that a web page has a browser send to the admin listener: to another port of the reader's own machine
//! (cross-site requests), or under a name of the page's that resolves to it (DNS rebinding).

use std::net::IpAddr;

use http::{HeaderMap, Method, Uri, header};

/// Why a request is rejected, if it is.
pub(super) fn rejection(method: &Method, headers: &HeaderMap, uri: &Uri, is_local: bool) -> Option<&'static str> {
    let changes = !matches!(*method, Method::GET | Method::HEAD);
    // Browsers send one with every request of a page that may change something.
    if changes && headers.contains_key(header::ORIGIN) {
        return Some("changes are not made for web pages: the request has an Origin");
    }
    if !is_local {
        return None;
    }
    let of_header = || headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = uri.authority().map(http::uri::Authority::as_str).or_else(of_header)?;
    let name = match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    };
    (!is_address(name) && !name.eq_ignore_ascii_case("localhost"))
        .then_some("this listener is for this machine: use its address or localhost")
}

/// Whether a host to listen on is this machine alone.
pub(super) fn is_local_name(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn is_address(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    inner.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use http::HeaderValue;

    use super::*;

    #[test]
    fn web_pages_are_rejected_and_tools_are_not() {
        for (method, host, origin, is_local, is_rejected) in [
            ("GET", "127.0.0.1:9901", None, true, false),
            ("GET", "localhost:9901", None, true, false),
            ("GET", "[::1]:9901", None, true, false),
            ("GET", "evil.example:9901", None, true, true),
            ("GET", "gate.internal:9901", None, false, false),
            ("POST", "127.0.0.1:9901", None, true, false),
            ("POST", "127.0.0.1:9901", Some("https://evil.example"), true, true),
            ("POST", "gate.internal", Some("null"), false, true),
            ("GET", "127.0.0.1:9901", Some("https://evil.example"), true, false),
        ] {
            let mut headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]);
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            let found = rejection(&method.parse().unwrap(), &headers, &"/".parse().unwrap(), is_local);
            assert_eq!(found.is_some(), is_rejected, "{method} {host} {origin:?} {is_local}");
        }
    }

    #[test]
    fn loopback_addresses_are_local() {
        for (host, expected) in
            [("127.0.0.1", true), ("[::1]", true), ("localhost", true), ("0.0.0.0", false), ("h", false)]
        {
            assert_eq!(is_local_name(host), expected, "{host}");
        }
    }
}
