//! Headers of forwarded messages: hop-by-hop headers are removed (RFC 9110, 7.6.1). Forwarding headers: `forwarding`.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use weir_base::Nanos;
use weir_net::lookup::has_field;
use weir_resilience::ratelimit::per_caller::BucketState;

/// Hop-by-hop headers beside those that `Connection` names. `TE` and `Trailer` stay, since trailers are passed on.
const HOP_BY_HOP_HEADERS: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    // Of an upgrade to HTTP/2, which is never passed on; a caller need not name it in `Connection`.
    HeaderName::from_static("http2-settings"),
    header::PROXY_AUTHENTICATE,
];

/// Whether a header is hop-by-hop, whatever `Connection` names.
fn is_hop_by_hop(name: &HeaderName) -> bool {
    HOP_BY_HOP_HEADERS.iter().any(|known| known == name)
}

/// Removes hop-by-hop headers.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // One scan of the names is cheaper than six lookups, and most messages have none.
    if !headers.keys().any(is_hop_by_hop) {
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
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP_HEADERS {
        headers.remove(name);
    }
}

/// Reduces `TE` to `trailers`, the only coding that is passed on.
pub(super) fn keep_te_trailers(headers: &mut HeaderMap) {
    if has_field(headers, &header::TE) {
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

/// Bytes of a name (RFC 3986, 3.2.2).
static NAME_BYTES: [bool; 256] = {
    let (mut found, marks) = ([false; 256], b"-._~%!$&'()*+;=");
    let mut byte = 0;
    while byte < 256 {
        found[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < marks.len() {
        found[marks[at] as usize] = true;
        at += 1;
    }
    found
};

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
        None => name.iter().all(|byte| NAME_BYTES[usize::from(*byte)]),
    };
    named && port.iter().all(u8::is_ascii_digit) && (port.is_empty() || !name.is_empty())
}

/// Elements of a list, in lower case.
fn tokens(value: &HeaderValue) -> impl Iterator<Item = String> {
    let text = value.to_str().unwrap_or_default();
    text.split(',').map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty())
}

/// Headers of a response about its caller's rate limit.
pub(super) const RATE_LIMIT_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];

/// The same of a rate limit in tokens of a language model, by the names of OpenAI.
pub(super) const TOKEN_LIMIT_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit-tokens"),
    HeaderName::from_static("x-ratelimit-remaining-tokens"),
    HeaderName::from_static("x-ratelimit-reset-tokens"),
];

/// Sets these headers, the reset in seconds until the bucket is full; of tokens as `12ms`, `7.5s` or `1m30s`.
pub(super) fn report_bucket(headers: &mut HeaderMap, bucket: &BucketState, in_tokens: bool) {
    if in_tokens {
        let values = [bucket.capacity.to_string(), bucket.tokens.to_string(), short_duration(bucket.full_in)];
        for (name, value) in TOKEN_LIMIT_HEADERS.into_iter().zip(values) {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
        return;
    }
    let values = [bucket.capacity, bucket.tokens, bucket.full_in.0.div_ceil(Nanos::SECOND.0)];
    for (name, value) in RATE_LIMIT_HEADERS.into_iter().zip(values) {
        headers.insert(name, value.into());
    }
}

/// A duration as OpenAI writes it, rounded up: `0s`, `12ms`, `7.5s`, `1m30s`.
fn short_duration(duration: Nanos) -> String {
    let ms = duration.0.div_ceil(Nanos::MILLI.0);
    let (minutes, ms) = (ms / 60_000, ms % 60_000);
    match (minutes, ms) {
        (0, 1..1000) => format!("{ms}ms"),
        (0, _) => format!("{}s", ms as f64 / 1e3),
        _ => format!("{minutes}m{}s", ms.div_ceil(1000)),
    }
}

/// Removes Content-Length from 1xx and 204 (RFC 9110, 8.6). That of a response to HEAD and of a 304 stays.
pub(super) fn remove_content_headers(status: StatusCode, headers: &mut HeaderMap) {
    if status == StatusCode::NO_CONTENT || status.is_informational() {
        headers.remove(header::CONTENT_LENGTH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("http2-settings", "AAMAAABkAAQAAP__"),
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
}
