//! Names of headers in which proxies name a caller's address, host or path.

/// Headers beside `X-Forwarded-*` and `X-Envoy-*` in which proxies and CDNs name the caller's address, certificate, scheme,
/// host or path, and which frameworks and applications believe. `Proxy` is a proxy for requests of a CGI ("httpoxy").
static FORWARDING_HEADERS: [&str; 53] = [
    "akamai-client-ip",
    "ali-cdn-real-ip",
    "cdn-src-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "client-ip",
    "clientip",
    "cloudfront-forwarded-proto",
    "cloudfront-viewer-address",
    "do-connecting-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "forwarded",
    "forwarded-for",
    "front-end-https",
    "incap-client-ip",
    "proxy",
    "proxy-client-ip",
    "true-client-ip",
    "wl-proxy-client-ip",
    "x-akamai-client-ip",
    "x-appengine-remote-addr",
    "x-appengine-user-ip",
    "x-arr-clientcert",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-backend-host",
    "x-cdn-src-ip",
    "x-client-ip",
    "x-clientip",
    "x-cluster-client-ip",
    "x-forward-for",
    "x-forwarded",
    "x-host",
    "x-http-host-override",
    "x-ms-forwarded-client-cert",
    "x-nf-client-connection-ip",
    "x-original-forwarded-for",
    "x-original-host",
    "x-original-url",
    "x-originally-forwarded-for",
    "x-originating-ip",
    "x-proxyuser-ip",
    "x-real-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-rewrite-url",
    "x-scheme",
    "x-sucuri-clientip",
    "x-true-client-ip",
    "x-url-scheme",
    "x-vercel-forwarded-for",
];

/// For each length, the marks of the names above as a set of bits: nearly all other names of a request have none of them.
static MARKS: [u32; 32] = {
    let mut found = [0; 32];
    let mut at = 0;
    while at < FORWARDING_HEADERS.len() {
        let name = FORWARDING_HEADERS[at].as_bytes();
        found[name.len()] |= mark(name);
        at += 1;
    }
    found
};

/// One bit by the first and the last byte of a name, neither of which is `-` or `_` in those above.
const fn mark(name: &[u8]) -> u32 {
    match name {
        [first, .., last] => 1 << (first.wrapping_add(*last) & 31),
        _ => 0,
    }
}

/// Whether a header has a proxy's caller, host or path. `_` counts as `-`, since CGI and WSGI do not distinguish them.
pub(crate) fn is_forwarding_header(name: &str) -> bool {
    let bytes = name.as_bytes();
    MARKS.get(bytes.len()).is_some_and(|marks| marks & mark(bytes) != 0)
        && FORWARDING_HEADERS.iter().any(|known| has_same_spelling(name, known))
        || bytes.first() == Some(&b'x')
            && (has_prefix(name, "x-forwarded-")
                // The route's `deadline_headers` decide on the deadline.
                || has_prefix(name, "x-envoy-") && !has_same_spelling(name, "x-envoy-expected-rq-timeout-ms"))
}

/// Whether a name frames a body for an upstream that does not distinguish `-` and `_`, and for this gateway does not.
pub(super) fn is_framing_lookalike(name: &str) -> bool {
    let is = |known: &str| has_same_spelling(name, known) && name.contains('_');
    is("content-length") || is("transfer-encoding")
}

/// Whether two names are the same to an upstream that does not distinguish `-` and `_`.
pub(crate) fn has_same_spelling(name: &str, known: &str) -> bool {
    name.len() == known.len() && has_prefix(name, known)
}

fn has_prefix(name: &str, known: &str) -> bool {
    let same = |(ours, theirs): (u8, u8)| ours == theirs || matches!((ours, theirs), (b'_' | b'-', b'_' | b'-'));
    name.len() >= known.len() && name.bytes().zip(known.bytes()).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_forwarding_header_is_told_from_others() {
        for known in FORWARDING_HEADERS {
            assert!(is_forwarding_header(known) && is_forwarding_header(&known.replace('-', "_")), "{known}");
            for other in [format!("{known}x"), format!("a{known}"), known[..known.len() - 1].to_owned()] {
                let is_known = FORWARDING_HEADERS.iter().any(|name| has_same_spelling(&other, name));
                assert_eq!(is_forwarding_header(&other), is_known || other.starts_with("x-forwarded-"), "{other}");
            }
        }
    }
}
