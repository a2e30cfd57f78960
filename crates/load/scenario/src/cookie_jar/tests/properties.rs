//! A jar behaves as the RFC's algorithms word for word.

use proptest::prelude::*;
use proptest::sample::select;

use super::super::CookieJar;
use super::oracle::{DATES, ListedJar};
use super::{NOW_S, sent, url};

const URLS: [&str; 12] = [
    "http://shop.example/",
    "https://shop.example/a/b",
    "http://www.shop.example/a",
    "https://www.shop.example/a/b/c?q=/x",
    "http://shopshop.example/a/",
    "http://localhost/a/b/",
    "http://a.localhost/",
    "http://127.0.0.1:8080/a",
    "http://[::1]/",
    "http://shop/a/b",
    "http://example/",
    "https://x.y.shop.example/ab",
];

fn attribute() -> impl Strategy<Value = String> {
    let domains: &[&str] = &[
        "shop.example",
        ".SHOP.example",
        "www.shop.example",
        "example",
        "localhost",
        "127.0.0.1",
        "0.0.1",
        "[::1]",
        "shop",
        "",
        ".",
        "y.shop.example",
    ];
    let paths: &[&str] = &["/", "/a", "/a/", "/a/b", "a", "", "/ab", "/A"];
    prop_oneof![
        select(domains).prop_map(|domain| format!("Domain={domain}")).boxed(),
        select(paths).prop_map(|path| format!("pAth = {path}")).boxed(),
        select(vec!["0", "5", "20", "-1", "x", "", "-", "5 5", "+5"]).prop_map(|age| format!("Max-Age={age}")).boxed(),
        select(&DATES[..]).prop_map(|(date, _)| format!("Expires={date}")).boxed(),
        select(vec!["Secure", "secure=x", "HttpOnly", "SameSite=Lax", "", "=", "foo=Secure"]).prop_map(str::to_owned),
    ]
}

fn set_cookie() -> impl Strategy<Value = String> {
    let names = vec!["a", "a", "b", " a ", "__Secure-a", "__Host-a", "__hOst-b", ""];
    let values = vec!["=1", "=22", "= \"q, r\" ", "=", "==", "", "=x=y"];
    let pair = (select(names), select(values)).prop_map(|(name, value)| format!("{name}{value}"));
    (pair, prop::collection::vec(attribute(), 0..4))
        .prop_map(|(pair, attributes)| [vec![pair], attributes].concat().join(";\t"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_jar_is_the_list_of_the_rfc(
        steps in prop::collection::vec((select(&URLS[..]), prop::option::weighted(0.6, set_cookie()), 0_i64..4), 1..40),
    ) {
        let (mut jar, mut oracle, mut now_s) = (CookieJar::default(), ListedJar::default(), NOW_S);
        for (address, cookie, later_s) in steps {
            now_s += later_s;
            match cookie {
                Some(cookie) => {
                    let stored = jar.store(cookie.as_bytes(), &url(address), now_s);
                    prop_assert_eq!(stored.is_ok(), oracle.store(&cookie, &url(address), now_s), "{}: {:?}", cookie, stored);
                }
                None => {
                    prop_assert_eq!(sent(&mut jar, address, now_s), oracle.header(&url(address), now_s), "{}", address);
                    prop_assert_eq!(jar.len(), oracle.len());
                }
            }
        }
        for address in URLS {
            prop_assert_eq!(sent(&mut jar, address, now_s), oracle.header(&url(address), now_s), "{}", address);
        }
    }

    #[test]
    fn eviction_is_as_in_the_list(
        steps in prop::collection::vec((0..70, select(vec!["/", "/a", "/a/b"]), 0_i64..2, any::<bool>()), 60..160),
    ) {
        let (mut jar, mut oracle, mut now_s) = (CookieJar::default(), ListedJar::default(), NOW_S);
        for (number, path, later_s, is_request) in steps {
            now_s += later_s;
            let cookie = format!("{number}=1; Path={path}");
            jar.store(cookie.as_bytes(), &url("http://h/"), now_s).expect("stored");
            prop_assert!(oracle.store(&cookie, &url("http://h/"), now_s));
            let to = url(&format!("http://h{path}"));
            if is_request {
                prop_assert_eq!(sent(&mut jar, &to.to_string(), now_s), oracle.header(&to, now_s));
            }
            prop_assert_eq!(jar.len(), oracle.len());
        }
    }

    #[test]
    fn any_bytes_are_stored_or_ignored(bytes in prop::collection::vec(any::<u8>(), 0..60), address in select(&URLS[..])) {
        for field in [bytes.clone(), [b"a=1;domain=", &bytes[..]].concat(), [b"a=", &bytes[..]].concat()] {
            let mut jar = CookieJar::default();
            let is_stored = jar.store(&field, &url(address), NOW_S).is_ok();
            prop_assert!(is_stored || jar.is_empty());
            let mut out = Vec::new();
            jar.write_header(&url(address), NOW_S, &mut out);
            prop_assert!(!out.iter().any(|b| b.is_ascii_control() || *b == b';'));
        }
    }
}
