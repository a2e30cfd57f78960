//! Headers of forwarded messages: hop-by-hop headers are removed (RFC 9110, 7.6.1), forwarding headers are set.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::config::Proxies;

/// Hop-by-hop headers beside those that `Connection` names. `TE` and `Trailer` stay, since trailers are passed on.
const HOP_BY_HOP_HEADERS: [HeaderName; 6] = [
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

/// Protocol of an upgrade, if `Connection` and `Upgrade` both ask for it.
pub(super) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let protocol = headers.get(header::UPGRADE)?;
    let named = headers.get_all(header::CONNECTION).iter().any(|value| tokens(value).any(|name| name == "upgrade"));
    named.then(|| protocol.clone())
}

/// Removes hop-by-hop headers.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // One scan of the names is cheaper than six lookups, and most messages have none.
    if !headers.keys().any(|name| HOP_BY_HOP_HEADERS.contains(name)) {
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(tokens)
        // "close" is an option, and the others are never hop-by-hop: without them a request would be a different one.
        .filter(|name| !matches!(name.as_str(), "close" | "host" | "content-length" | "content-type" | "authorization"))
        .filter_map(|name| name.parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP_HEADERS) {
        headers.remove(name);
    }
}

/// Reduces `TE` to `trailers`, the only coding that is passed on.
pub(super) fn keep_te_trailers(headers: &mut HeaderMap) {
    if headers.contains_key(header::TE) {
        let trailers = headers.get_all(header::TE).iter().any(|value| tokens(value).any(|name| name == "trailers"));
        headers.remove(header::TE);
        if trailers {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
        }
    }
}

/// Joins several cookie fields of HTTP/2 into one (RFC 9113, 8.2.3).
pub(super) fn join_cookies(headers: &mut HeaderMap) {
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

/// Whether the value is empty, or a host with a port or without (RFC 9110, 7.2). Anything else is ambiguous between
/// implementations: `a@b`, `a/b`, `a, b`, `a:80:b`.
pub(super) fn is_host(value: &[u8]) -> bool {
    let (name, port) = match value.iter().rposition(|byte| *byte == b':') {
        // Colons in the brackets of an IPv6 address are not before a port.
        Some(colon) if !value[colon..].contains(&b']') => (&value[..colon], &value[colon + 1..]),
        _ => (value, &b""[..]),
    };
    let named = match name.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) {
        Some(address) => address.iter().all(|byte| byte.is_ascii_alphanumeric() || b":.".contains(byte)),
        None => name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=".contains(byte)),
    };
    named && port.iter().all(u8::is_ascii_digit) && (port.is_empty() || !name.is_empty())
}

/// Elements of a list, in lower case.
fn tokens(value: &HeaderValue) -> impl Iterator<Item = String> {
    let text = value.to_str().unwrap_or_default();
    text.split(',').map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty())
}

/// Address of the caller: from the peer back through `X-Forwarded-For`, the first that is not a trusted proxy's. An
/// invalid entry ends the search.
pub(super) fn client_address(headers: &HeaderMap, peer: IpAddr, proxies: &Proxies) -> IpAddr {
    let mut client = peer.to_canonical();
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    for entry in lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b',')) {
        if !proxies.contains(client) {
            break;
        }
        let Some(earlier) = address(entry) else { break };
        client = earlier.to_canonical();
    }
    client
}

/// Parses an address with a port or without: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Ok(both) = text.parse::<SocketAddr>() {
        return Some(both.ip());
    }
    text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

/// Whether a header has a proxy's caller, host or path. `_` counts as `-`, since CGI and WSGI do not distinguish them.
fn is_forwarding_header(name: &str) -> bool {
    const FORWARDING_HEADERS: [&str; 4] = ["forwarded", "x-real-ip", "x-original-url", "x-rewrite-url"];
    has_prefix(name, "x-forwarded-") || FORWARDING_HEADERS.into_iter().any(|known| has_same_spelling(name, known))
}

/// Whether a name frames a body for an upstream that does not distinguish `-` and `_`, and for this gateway does not.
fn is_framing_lookalike(name: &str) -> bool {
    let is = |known: &str| name.contains('_') && has_same_spelling(name, known);
    is("content-length") || is("transfer-encoding")
}

/// Whether a trailer would be one of these headers to a service that does not distinguish the two.
pub(super) fn is_forbidden_trailer(name: &HeaderName) -> bool {
    is_forwarding_header(name.as_str()) || is_framing_lookalike(name.as_str())
}

/// Whether two names are the same to an upstream that does not distinguish `-` and `_`.
pub(super) fn has_same_spelling(name: &str, known: &str) -> bool {
    name.len() == known.len() && has_prefix(name, known)
}

fn has_prefix(name: &str, known: &str) -> bool {
    let same = |(ours, theirs): (u8, u8)| ours == theirs || matches!((ours, theirs), (b'_' | b'-', b'_' | b'-'));
    name.len() >= known.len() && name.bytes().zip(known.bytes()).all(same)
}

/// Sets the forwarding headers. Those of the client are kept only if it is trusted, and otherwise removed in all
/// spellings that an upstream might accept.
pub(super) fn set_forwarded(
    headers: &mut HeaderMap,
    client: &HeaderValue,
    host: Option<&HeaderValue>,
    scheme: &'static str,
    trusted: bool,
) {
    let is_removed = |name: &HeaderName| {
        let name = name.as_str();
        is_forwarding_header(name) && (!trusted || name.contains('_')) || is_framing_lookalike(name)
    };
    if headers.keys().any(is_removed) {
        let names: Vec<HeaderName> = headers.keys().filter(|name| is_removed(name)).cloned().collect();
        for name in names {
            headers.remove(name);
        }
    }
    let chain = forwarded_for(headers, client);
    headers.insert(FORWARDED_FOR, chain);
    if !headers.contains_key(FORWARDED_PROTO) {
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static(scheme));
    }
    if let Some(host) = host.filter(|_| !headers.contains_key(FORWARDED_HOST)) {
        headers.insert(FORWARDED_HOST, host.clone());
    }
    // If it is used, this gateway must append its own element (RFC 7239, 4).
    if headers.contains_key(header::FORWARDED) {
        let ours = client.to_str().ok().map(|client| match client.contains(':') {
            true => format!("for=\"[{client}]\""),
            false => format!("for={client}"),
        });
        if let Some(ours) = ours.and_then(|ours| HeaderValue::try_from(ours).ok()) {
            headers.append(header::FORWARDED, ours);
        }
    }
}

/// The callers so far, and this one.
fn forwarded_for(headers: &HeaderMap, client: &HeaderValue) -> HeaderValue {
    // A list may be in several fields, in order (RFC 9110, 5.3).
    let mut earlier = headers.get_all(FORWARDED_FOR).iter().filter(|value| !value.is_empty()).peekable();
    if earlier.peek().is_none() {
        return client.clone();
    }
    let chain: Vec<&[u8]> = earlier.chain([client]).map(HeaderValue::as_bytes).collect();
    HeaderValue::from_bytes(&chain.join(&b", "[..])).unwrap_or_else(|_| client.clone())
}

/// Removes Content-Length from 1xx and 204 (RFC 9110, 8.6). That of a response to HEAD and of a 304 stays.
pub(super) fn remove_content_headers(status: StatusCode, headers: &mut HeaderMap) {
    if status == StatusCode::NO_CONTENT || status.is_informational() {
        headers.remove(header::CONTENT_LENGTH);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::config::Network;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn hop_by_hop_headers_are_removed() {
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
        remove_hop_by_hop(&mut all);
        assert_eq!(all, headers(&[("x-stays", "1")]));
    }

    #[test]
    fn connection_cannot_remove_essential_headers() {
        let mut all =
            headers(&[("connection", "host, authorization, content-length"), ("host", "a"), ("authorization", "b")]);
        remove_hop_by_hop(&mut all);
        assert_eq!(all, headers(&[("host", "a"), ("authorization", "b")]));
    }

    #[test]
    fn an_upgrade_needs_both_headers() {
        let asked = |lines| upgrade(&headers(lines)).is_some();
        assert!(asked(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]));
        assert!(!asked(&[("connection", "keep-alive"), ("upgrade", "websocket")]));
        assert!(!asked(&[("connection", "upgrade")]));
    }

    #[test]
    fn of_te_only_trailers_are_passed_on() {
        let mut all = headers(&[("te", "gzip;q=0.5, Trailers"), ("te", "deflate")]);
        keep_te_trailers(&mut all);
        assert_eq!(all, headers(&[("te", "trailers")]));
        let mut all = headers(&[("te", "gzip")]);
        keep_te_trailers(&mut all);
        assert_eq!(all, headers(&[]));
    }

    #[test]
    fn cookies_are_joined() {
        let mut all = headers(&[("cookie", "a=1"), ("x-stays", "1"), ("cookie", "b=2"), ("cookie", "c=3; d=4")]);
        join_cookies(&mut all);
        assert_eq!(all, headers(&[("cookie", "a=1; b=2; c=3; d=4"), ("x-stays", "1")]));
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
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
    fn forwarding_headers_of_untrusted_clients_are_replaced() {
        let host = HeaderValue::from_static("api.example");
        let mut strange = headers(&[("x-forwarded-for", "6.6.6.6"), ("x-forwarded-proto", "https")]);
        let mut trusted = strange.clone();
        set_forwarded(&mut strange, &HeaderValue::from_static("10.0.0.1"), Some(&host), "http", false);
        let own = [("x-forwarded-for", "10.0.0.1"), ("x-forwarded-proto", "http"), ("x-forwarded-host", "api.example")];
        assert_eq!(strange, headers(&own));
        set_forwarded(&mut trusted, &HeaderValue::from_static("10.0.0.1"), Some(&host), "http", true);
        assert_eq!(trusted.get("x-forwarded-for").unwrap(), "6.6.6.6, 10.0.0.1");
        assert_eq!(trusted.get("x-forwarded-proto").unwrap(), "https");
        let mut lines = headers(&[("x-forwarded-for", "1.1.1.1, 2.2.2.2"), ("x-forwarded-for", "3.3.3.3")]);
        set_forwarded(&mut lines, &HeaderValue::from_static("10.0.0.1"), Some(&host), "http", true);
        assert_eq!(lines.get("x-forwarded-for").unwrap(), "1.1.1.1, 2.2.2.2, 3.3.3.3, 10.0.0.1");
        assert_eq!(lines.get_all("x-forwarded-for").iter().count(), 1);
    }

    #[test]
    fn forwarding_headers_are_removed_in_all_spellings() {
        for (name, is) in [
            ("forwarded", true),
            ("x-real-ip", true),
            ("x_real_ip", true),
            ("x-forwarded-for", true),
            ("x_forwarded-for", true),
            ("x-forwarded-client-cert", true),
            ("x-original-url", true),
            ("x-rewrite-url", true),
            ("x-real-ips", false),
            ("x-forwarded", false),
            ("forwarded-by", false),
            ("x_request_id", false),
        ] {
            assert_eq!(is_forwarding_header(name), is, "{name}");
        }
        let client = HeaderValue::from_static("::1");
        let mut trusted = headers(&[("forwarded", "for=6.6.6.6"), ("x-real-ip", "6.6.6.6"), ("x_real_ip", "7.7.7.7")]);
        set_forwarded(&mut trusted, &client, None, "http", true);
        let lines: Vec<_> = trusted.get_all("forwarded").iter().collect();
        assert_eq!(lines, ["for=6.6.6.6", "for=\"[::1]\""]);
        let mut framed = headers(&[("content_length", "0"), ("transfer_encoding", "chunked"), ("content-length", "4")]);
        set_forwarded(&mut framed, &client, None, "http", true);
        let names = ["content-length", "content_length", "transfer_encoding"];
        assert_eq!(names.map(|name| framed.contains_key(name)), [true, false, false]);
        assert_eq!((trusted.get("x-real-ip").unwrap().as_bytes(), trusted.get("x_real_ip")), (&b"6.6.6.6"[..], None));
    }

    fn proxies(networks: &[&str]) -> Proxies {
        Proxies::new(networks.iter().map(|text| Network::parse(text).unwrap()).collect())
    }

    #[test]
    fn the_caller_is_the_last_address_that_is_not_a_trusted_proxys() {
        let proxies = proxies(&["10.0.0.0/8", "::1"]);
        for (peer, said, expected) in [
            ("9.9.9.9", &["1.1.1.1"][..], "9.9.9.9"),
            ("10.0.0.1", &["1.1.1.1"], "1.1.1.1"),
            ("10.0.0.1", &["6.6.6.6, 1.1.1.1"], "1.1.1.1"),
            ("10.0.0.1", &["6.6.6.6, 1.1.1.1, 10.2.2.2"], "1.1.1.1"),
            ("10.0.0.1", &["1.1.1.1", "10.3.3.3", "::1"], "1.1.1.1"),
            ("::ffff:10.0.0.1", &["1.1.1.1:8080"], "1.1.1.1"),
            ("10.0.0.1", &["[2001:db8::1]:80"], "2001:db8::1"),
            ("10.0.0.1", &["[2001:db8::1]"], "2001:db8::1"),
            ("10.0.0.1", &["1.1.1.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["1.1.1.1, unknown, 10.5.5.5"], "10.5.5.5"),
            ("10.0.0.1", &["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &[""], "10.0.0.1"),
        ] {
            let said: HeaderMap = said.iter().map(|line| (FORWARDED_FOR, HeaderValue::from_static(line))).collect();
            assert_eq!(client_address(&said, peer.parse().unwrap(), &proxies).to_string(), expected, "{peer} {said:?}");
        }
    }

    /// The same over the whole chain at once.
    fn naive(chain: &[IpAddr], proxies: &Proxies) -> IpAddr {
        let strangers = chain.iter().rposition(|address| !proxies.contains(*address));
        chain[strangers.unwrap_or(0)]
    }

    proptest! {
        #[test]
        fn any_chain_leads_to_the_stranger_nearest_to_us(
            chain in proptest::collection::vec((0_u8..4, any::<bool>()), 1..8), cuts in proptest::collection::vec(any::<bool>(), 8)
        ) {
            let proxies = proxies(&["10.0.0.0/8"]);
            let address = |(last, ours): &(u8, bool)| IpAddr::from([if *ours { 10 } else { 9 }, 0, 0, *last]);
            let chain: Vec<IpAddr> = chain.iter().map(address).collect();
            let (peer, said) = chain.split_last().unwrap();
            // In one line or in several.
            let mut lines: Vec<String> = Vec::new();
            for (address, cut) in said.iter().zip(cuts) {
                match lines.last_mut().filter(|_| !cut) {
                    Some(line) => line.push_str(&format!(",{address}")),
                    None => lines.push(address.to_string()),
                }
            }
            let said = lines.iter().map(|line| (FORWARDED_FOR, HeaderValue::try_from(line).unwrap())).collect();
            prop_assert_eq!(client_address(&said, *peer, &proxies), naive(&chain, &proxies));
        }

        #[test]
        fn any_bytes_lead_to_an_address(said in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(value) = HeaderValue::from_bytes(&said) {
                let said = HeaderMap::from_iter([(FORWARDED_FOR, value)]);
                client_address(&said, [10, 0, 0, 1].into(), &proxies(&["0.0.0.0/0"]));
            }
        }
    }
}
