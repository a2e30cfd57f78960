//! Requests that a web page has a browser send to the admin listener: to another port of the reader's own machine
//! (cross-site requests), or under a name of the page's that resolves to it (DNS rebinding).
//!
//! The listener's own page may change something where it was opened by an address or `localhost`, on any listener: only a
//! name can be made to resolve to another machine. Such a page has the listener's address as its origin, with the port.

use std::net::IpAddr;

use http::{HeaderMap, Method, Uri, header};

/// Header in which browsers name the relation of a request's page to its target.
const FETCH_SITE: &str = "sec-fetch-site";

/// Why a request is rejected, if it is.
pub(super) fn rejection(method: &Method, headers: &HeaderMap, uri: &Uri, is_local: bool) -> Option<&'static str> {
    let changes = !matches!(*method, Method::GET | Method::HEAD);
    let of_header = || headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = uri.authority().map(http::uri::Authority::as_str).or_else(of_header);
    // Browsers send one or both with every request of a page that may change something.
    let is_of_browser = headers.contains_key(header::ORIGIN) || headers.contains_key(FETCH_SITE);
    if changes && is_of_browser && !host.is_some_and(|host| is_own_page(headers, host)) {
        return Some(
            "only the web page GET /live, opened by address, may make changes: this request has another Origin or Sec-Fetch-Site",
        );
    }
    (is_local && host.is_some_and(|host| !is_unambiguous(host)))
        .then_some("this listener serves this machine only: use its address or localhost")
}

/// Whether a request is one of the page that this listener has at this host.
fn is_own_page(headers: &HeaderMap, host: &str) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    // A browser that names the site may leave out the origin of its own page.
    let is_own_origin = origins
        .next()
        .is_none_or(|origin| origin.to_str().ok().and_then(|it| it.strip_prefix("http://")) == Some(host));
    let is_own_site = headers.get_all(FETCH_SITE).iter().all(|site| site == "same-origin");
    is_own_origin && origins.next().is_none() && is_own_site && is_unambiguous(host)
}

/// Whether a host, with or without a port, is an address or `localhost`, and not a name that a page could have made to
/// resolve to this machine.
fn is_unambiguous(host: &str) -> bool {
    let name = match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    };
    is_address(name) || name.eq_ignore_ascii_case("localhost")
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

    use http::{HeaderName, HeaderValue};

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
            // The listener's own page, by an address; under a name it may be one that was rebound.
            ("POST", "127.0.0.1:9901", Some("http://127.0.0.1:9901"), true, false),
            ("DELETE", "localhost:9901", Some("http://localhost:9901"), true, false),
            ("POST", "[::1]:9901", Some("http://[::1]:9901"), true, false),
            ("POST", "192.0.2.7:9901", Some("http://192.0.2.7:9901"), false, false),
            ("POST", "gate.internal:9901", Some("http://gate.internal:9901"), false, true),
            ("POST", "evil.example:9901", Some("http://evil.example:9901"), true, true),
            // Another port, another scheme, another name of the same machine.
            ("POST", "127.0.0.1:9901", Some("http://127.0.0.1:8080"), true, true),
            ("POST", "127.0.0.1:9901", Some("https://127.0.0.1:9901"), true, true),
            ("POST", "127.0.0.1:9901", Some("http://localhost:9901"), true, true),
            ("POST", "127.0.0.1:9901", Some("127.0.0.1:9901"), true, true),
            ("POST", "127.0.0.1:9901", Some(""), true, true),
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
    fn a_browser_that_names_another_site_is_not_the_own_page() {
        let own = [(header::HOST, "127.0.0.1:9901"), (header::ORIGIN, "http://127.0.0.1:9901")];
        let of = |more: &[(HeaderName, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in own.iter().chain(more) {
                headers.append(name, HeaderValue::from_static(value));
            }
            rejection(&Method::POST, &headers, &Uri::from_static("/drain"), true).is_some()
        };
        let site = HeaderName::from_static("sec-fetch-site");
        assert!(!of(&[]) && !of(&[(site.clone(), "same-origin")]));
        for site_of_another in ["cross-site", "same-site", "none", ""] {
            assert!(of(&[(site.clone(), site_of_another)]), "{site_of_another}");
        }
        assert!(of(&[(header::ORIGIN, "http://127.0.0.1:9901")]), "two origins are none");
        assert!(of(&[(site.clone(), "same-origin"), (site.clone(), "cross-site")]), "any of two sites counts");
        // Without an origin the site decides.
        for (host, site_of_page, is_rejected) in [
            ("127.0.0.1:9901", "cross-site", true),
            ("127.0.0.1:9901", "same-site", true),
            ("127.0.0.1:9901", "none", true),
            ("127.0.0.1:9901", "", true),
            ("127.0.0.1:9901", "same-origin", false),
            ("gate.internal:9901", "same-origin", true),
        ] {
            for method in [Method::POST, Method::DELETE, Method::PUT] {
                let (host, page) = (HeaderValue::from_static(host), HeaderValue::from_static(site_of_page));
                let headers = HeaderMap::from_iter([(header::HOST, host.clone()), (site.clone(), page)]);
                let found = rejection(&method, &headers, &Uri::from_static("/drain"), false);
                assert_eq!(found.is_some(), is_rejected, "{host:?} {site_of_page}");
            }
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
