//! The examples of RFC 6265, section 3.1, and the rules of domains, paths and secure cookies.

use super::super::{CookieJar, CookieRejection};
use super::{NOW_S, jar, sent, url};

#[test]
fn a_session_is_sent_back() {
    let mut session = jar("http://example.com/login", &["SID=31d4d96e407aad42"]);
    assert_eq!(sent(&mut session, "http://example.com/", NOW_S + 1_000_000_000), "SID=31d4d96e407aad42");
    assert_eq!(sent(&mut session, "http://www.example.com/", NOW_S), "");
}

#[test]
fn path_and_domain_widen_the_scope() {
    let mut session = jar("http://www.example.com/x/y", &["SID=31d4d96e407aad42; Path=/; Domain=example.com"]);
    for (to, expected) in [
        ("http://example.com/", "SID=31d4d96e407aad42"),
        ("http://a.b.example.com/z", "SID=31d4d96e407aad42"),
        ("http://badexample.com/", ""),
        ("http://com/", ""),
    ] {
        assert_eq!(sent(&mut session, to, NOW_S), expected, "{to}");
    }
}

#[test]
fn secure_and_others_are_sent_in_the_order_of_creation() {
    let cookies = ["SID=31d4d96e407aad42; Path=/; Secure; HttpOnly", "lang=en-US; Path=/; Domain=example.com"];
    let mut session = jar("https://example.com/", &cookies);
    assert_eq!(sent(&mut session, "https://example.com/", NOW_S), "SID=31d4d96e407aad42; lang=en-US");
    assert_eq!(sent(&mut session, "http://example.com/", NOW_S), "lang=en-US");
}

#[test]
fn a_date_in_the_past_deletes_a_cookie() {
    let mut session = jar("http://example.com/", &["lang=en-US; Expires=Wed, 09 Jun 2026 10:18:14 GMT", "SID=1"]);
    assert_eq!(sent(&mut session, "http://example.com/", NOW_S), "lang=en-US; SID=1");
    session.store(b"lang=; Expires=Sun, 06 Nov 1994 08:49:37 GMT", &url("http://example.com/"), NOW_S).expect("kept");
    assert_eq!((sent(&mut session, "http://example.com/", NOW_S), session.len()), ("SID=1".into(), 1));
}

#[test]
fn cookies_expire_and_are_removed() {
    let mut session = jar("http://h/", &["a=1; Max-Age=10; Expires=Sun, 06 Nov 1994 08:49:37 GMT", "b=2"]);
    assert_eq!(sent(&mut session, "http://h/", NOW_S + 9), "a=1; b=2");
    assert_eq!((sent(&mut session, "http://h/", NOW_S + 10), session.len()), ("b=2".into(), 1));
    let long = jar("http://h/", &["a=1; Max-Age=99999999999999999999", "b=2; Expires=1 Jan 9999 00:00:00"]);
    assert!(long.iter().all(|cookie| cookie.expires_s() == Some(NOW_S + 400 * 86_400)));
}

#[test]
fn longer_paths_are_first_and_a_replacement_keeps_its_place() {
    let mut session = jar("http://h/a/b/c", &["r=0; Path=/", "x=1", "y=2; Path=/a", "z=3", "r2=4; Path=/", "x=5long"]);
    assert_eq!(sent(&mut session, "http://h/a/b/c", NOW_S), "x=5long; z=3; y=2; r=0; r2=4");
    assert_eq!(sent(&mut session, "http://h/a/bc", NOW_S), "y=2; r=0; r2=4");
    assert_eq!(sent(&mut session, "http://h/a?x=/a/b", NOW_S), "y=2; r=0; r2=4");
    assert_eq!(sent(&mut session, "http://h/a/b", NOW_S), "x=5long; z=3; y=2; r=0; r2=4");
    assert_eq!(session.get(b"x").map(|cookie| cookie.value().to_vec()).as_deref(), Some(&b"5long"[..]));
    session.clear();
    assert_eq!((session.is_empty(), sent(&mut session, "http://h/", NOW_S)), (true, String::new()));
}

#[test]
fn cookies_of_one_name_differ_by_domain_path_and_subdomains() {
    let host = "http://a.shop.example/x/";
    let cookies = ["s=1", "s=2; Path=/", "s=3; Domain=shop.example", "s=4; Domain=A.Shop.Example"];
    assert_eq!(sent(&mut jar(host, &cookies), host, NOW_S), "s=1; s=3; s=4; s=2");
}

#[test]
fn foreign_domains_are_ignored() {
    let store = |from: &str, domain: &str| {
        let mut jar = CookieJar::default();
        jar.store(format!("a=1; Domain={domain}").as_bytes(), &url(from), NOW_S)?;
        Ok(jar.iter().map(|cookie| format!("{} {}", cookie.domain(), cookie.is_host_only())).collect::<String>())
    };
    assert_eq!(store("http://a.b.com/", "b.com"), Ok("b.com false".into()));
    assert_eq!(store("http://a.b.com/", "..b.com"), Err(CookieRejection::OtherDomain));
    assert_eq!(store("http://a.b.com/", "c.a.b.com"), Err(CookieRejection::OtherDomain));
    assert_eq!(store("http://ab.com/", "b.com"), Err(CookieRejection::OtherDomain));
    assert_eq!(store("http://a.com/", "com"), Err(CookieRejection::PublicSuffix));
    assert_eq!(store("http://a.com./", "com."), Err(CookieRejection::PublicSuffix));
    assert_eq!(store("http://a.com/", "."), Ok("a.com true".into()));
    // A service of one label, as in a container network, may name itself.
    assert_eq!(store("http://shop/", "shop"), Ok("shop true".into()));
    assert_eq!(store("http://localhost/", "localhost"), Ok("localhost false".into()));
    assert_eq!(store("http://127.0.0.1/", "127.0.0.1"), Ok("127.0.0.1 true".into()));
    assert_eq!(store("http://127.0.0.1/", "0.0.1"), Err(CookieRejection::PublicSuffix));
    assert_eq!(store("http://[::1]/", "[::1]"), Ok("[::1] true".into()));
}

#[test]
fn secure_cookies_need_tls_or_the_machine_itself() {
    let store = |from: &str| CookieJar::default().store(b"a=1; Secure", &url(from), NOW_S);
    assert_eq!(store("http://h.example/"), Err(CookieRejection::SecureOverHttp));
    for from in ["https://h.example/", "http://localhost:80/", "http://127.0.0.1/", "http://[::1]/"] {
        assert_eq!(store(from), Ok(()), "{from}");
    }
    let mut local = jar("http://localhost/", &["a=1; Secure"]);
    assert_eq!(sent(&mut local, "http://localhost:8080/", NOW_S), "a=1");
}

#[test]
fn plain_text_cannot_replace_or_hide_a_secure_cookie() {
    let mut session = jar("https://a.h.example/x/", &["s=1; Secure; Path=/x; Domain=h.example"]);
    let mut store = |from: &str, cookie: &str| session.store(cookie.as_bytes(), &url(from), NOW_S);
    assert_eq!(store("http://h.example/", "s=2; Path=/x"), Err(CookieRejection::ReplacesSecure));
    assert_eq!(store("http://b.h.example/", "s=2; Path=/x/y"), Err(CookieRejection::ReplacesSecure));
    assert_eq!(store("http://h.example/", "s=2; Path=/"), Ok(()));
    assert_eq!(store("http://h.example/", "t=2; Path=/x"), Ok(()));
    assert_eq!(store("http://other.example/", "s=2; Path=/x"), Ok(()));
    assert_eq!(store("https://h.example/", "s=3; Path=/x"), Ok(()));
}

#[test]
fn prefixes_of_names_demand_attributes() {
    let store = |cookie: &str| CookieJar::default().store(cookie.as_bytes(), &url("https://a.h.example/"), NOW_S);
    let wrong = Err(CookieRejection::Prefix);
    assert_eq!((store("__Secure-a=1; Secure"), store("__Secure-a=1"), store("__secure-a=1")), (Ok(()), wrong, wrong));
    assert_eq!(store("__Host-a=1; Secure; Path=/"), Ok(()));
    assert_eq!(store("__HOST-a=1; Secure"), wrong);
    assert_eq!(store("__Host-a=1; Path=/"), wrong);
    assert_eq!(store("__Host-a=1; Secure; Path=/; Domain=h.example"), wrong);
    assert_eq!(store("__Hosta=1"), Ok(()));
}

#[test]
fn a_cookie_prints_as_a_line_of_a_cookie_file() {
    let cookies = ["a=1; Max-Age=60", "b=x y; Domain=.h.example; Path=/p; Secure; HttpOnly"];
    let lines: Vec<String> = jar("https://a.h.example/", &cookies).iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "#HttpOnly_.h.example\tTRUE\t/p\tTRUE\t0\tb\tx y".to_owned(),
            format!("a.h.example\tFALSE\t/\tFALSE\t{}\ta\t1", NOW_S + 60),
        ]
    );
}
