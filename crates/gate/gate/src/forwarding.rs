//! Forwarding headers, in which proxies name a caller's address, host or path: those of callers that are not trusted are
//! removed, and this gateway's are set.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::config::{ForwardingHeaders, Proxies};
use super::forwarding_names::{has_same_spelling, is_forwarding_header, is_framing_lookalike};
use weir_net::wire::PassedFields;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

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

impl ForwardingHeaders {
    /// Whether a header of a caller is removed unless it is a trusted proxy.
    fn removes(&self, name: &str) -> bool {
        let is_one_of = |list: &[HeaderName]| list.iter().any(|known| has_same_spelling(name, known.as_str()));
        is_forwarding_header(name) && !is_one_of(&self.keep) || is_one_of(&self.remove)
    }

    /// Whether a trailer would be one of these headers to a service that does not distinguish the two.
    pub(super) fn is_forbidden_trailer(&self, name: &HeaderName) -> bool {
        self.removes(name.as_str()) || is_framing_lookalike(name.as_str())
    }
}

/// Sets the forwarding headers, with `lines` as lines where none of the client stays. Those of the client are kept only
/// if it is trusted, and otherwise removed in all spellings that an upstream might accept.
pub(super) fn set_forwarded(
    (headers, lines): (&mut HeaderMap, Option<&mut PassedFields>),
    client: &HeaderValue,
    scheme: &'static str,
    trusted: bool,
    rule: &ForwardingHeaders,
) {
    let is_removed = |name: &HeaderName| {
        let name = name.as_str();
        (!trusted || name.contains('_')) && rule.removes(name) || is_framing_lookalike(name)
    };
    if headers.keys().any(is_removed) {
        let names: Vec<HeaderName> = headers.keys().filter(|name| is_removed(name)).cloned().collect();
        for name in names {
            headers.remove(name);
        }
    }
    if let Some(lines) = lines
        && !headers.keys().any(|name| is_forwarding_header(name.as_str()))
    {
        lines.push_header(&FORWARDED_FOR, client);
        lines.push_header(&FORWARDED_PROTO, &HeaderValue::from_static(scheme));
        headers.get(header::HOST).into_iter().for_each(|host| lines.push_header(&FORWARDED_HOST, host));
        return;
    }
    let chain = forwarded_for(headers, client);
    headers.insert(FORWARDED_FOR, chain);
    if !headers.contains_key(FORWARDED_PROTO) {
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static(scheme));
    }
    if !headers.contains_key(FORWARDED_HOST)
        && let Some(host) = headers.get(header::HOST).cloned()
    {
        headers.insert(FORWARDED_HOST, host);
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
    fn forwarding_headers_of_untrusted_clients_are_replaced() {
        let host = ("host", "api.example");
        let mut strange = headers(&[host, ("x-forwarded-for", "6.6.6.6"), ("x-forwarded-proto", "https")]);
        let mut trusted = strange.clone();
        set_forwarded(
            (&mut strange, None),
            &HeaderValue::from_static("10.0.0.1"),
            "http",
            false,
            &ForwardingHeaders::default(),
        );
        let own =
            [host, ("x-forwarded-for", "10.0.0.1"), ("x-forwarded-proto", "http"), ("x-forwarded-host", "api.example")];
        assert_eq!(strange, headers(&own));
        set_forwarded(
            (&mut trusted, None),
            &HeaderValue::from_static("10.0.0.1"),
            "http",
            true,
            &ForwardingHeaders::default(),
        );
        assert_eq!(trusted.get("x-forwarded-for").unwrap(), "6.6.6.6, 10.0.0.1");
        assert_eq!(trusted.get("x-forwarded-proto").unwrap(), "https");
        let mut lines = headers(&[("x-forwarded-for", "1.1.1.1, 2.2.2.2"), ("x-forwarded-for", "3.3.3.3")]);
        set_forwarded(
            (&mut lines, None),
            &HeaderValue::from_static("10.0.0.1"),
            "http",
            true,
            &ForwardingHeaders::default(),
        );
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
            ("x-forwarded", true),
            ("true-client-ip", true),
            ("cf_connecting_ip", true),
            ("x-envoy-external-address", true),
            ("x-envoy-expected-rq-timeout-ms", false),
            ("content-type", false),
            ("x-envoyed", false),
            ("forwarded-by", false),
            ("x_request_id", false),
        ] {
            assert_eq!(is_forwarding_header(name), is, "{name}");
        }
        let client = HeaderValue::from_static("::1");
        let mut trusted = headers(&[("forwarded", "for=6.6.6.6"), ("x-real-ip", "6.6.6.6"), ("x_real_ip", "7.7.7.7")]);
        set_forwarded((&mut trusted, None), &client, "http", true, &ForwardingHeaders::default());
        let lines: Vec<_> = trusted.get_all("forwarded").iter().collect();
        assert_eq!(lines, ["for=6.6.6.6", "for=\"[::1]\""]);
        let mut framed = headers(&[("content_length", "0"), ("transfer_encoding", "chunked"), ("content-length", "4")]);
        set_forwarded((&mut framed, None), &client, "http", true, &ForwardingHeaders::default());
        let names = ["content-length", "content_length", "transfer_encoding"];
        assert_eq!(names.map(|name| framed.contains_key(name)), [true, false, false]);
        assert_eq!((trusted.get("x-real-ip").unwrap().as_bytes(), trusted.get("x_real_ip")), (&b"6.6.6.6"[..], None));
    }

    #[test]
    fn lines_have_what_headers_would_have() {
        for trusted in [false, true] {
            for given in [
                &[("host", "a")][..],
                &[],
                &[("host", "a"), ("x-forwarded-for", "6.6.6.6")],
                &[("x_real_ip", "6.6.6.6")],
                &[("x-forwarded-proto", "https"), ("content_length", "1")],
                &[("forwarded", "for=6.6.6.6"), ("user-agent", "x")],
            ] {
                let (mut all, mut rest, mut lines) = (headers(given), headers(given), PassedFields::default());
                let (client, rule) = (HeaderValue::from_static("10.0.0.1"), ForwardingHeaders::default());
                set_forwarded((&mut all, None), &client, "http", trusted, &rule);
                set_forwarded((&mut rest, Some(&mut lines)), &client, "http", trusted, &rule);
                let kept = rest.keys().any(|name| is_forwarding_header(name.as_str()));
                assert_eq!(lines.is_empty(), kept, "{given:?}");
                lines.append_to(&mut rest);
                assert_eq!(rest, all, "{given:?} {trusted}");
            }
        }
    }

    #[test]
    fn a_configuration_keeps_some_and_removes_others() {
        let name = HeaderName::from_static;
        let rule = ForwardingHeaders { keep: vec![name("cf-connecting-ip")], remove: vec![name("x-tenant")] };
        let given =
            [("cf-connecting-ip", "1"), ("true-client-ip", "2"), ("x-tenant", "3"), ("x_tenant", "4"), ("x-a", "5")];
        let sent = |trusted| {
            let mut all = headers(&given);
            set_forwarded((&mut all, None), &HeaderValue::from_static("10.0.0.1"), "http", trusted, &rule);
            all.remove(FORWARDED_FOR);
            all.remove(FORWARDED_PROTO);
            all
        };
        assert_eq!(sent(false), headers(&[("cf-connecting-ip", "1"), ("x-a", "5")]));
        assert_eq!(sent(true), headers(&[given[0], given[1], given[2], given[4]]));
        assert!(rule.is_forbidden_trailer(&name("x_tenant")) && !rule.is_forbidden_trailer(&name("cf-connecting-ip")));
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
