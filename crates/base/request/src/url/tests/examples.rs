//! URLs as files and services write them.

use super::super::{DotSegments, HttpUrl, UrlProblem, UrlScheme};
use super::url;

fn problem(text: &str) -> UrlProblem {
    HttpUrl::parse(text.as_bytes()).expect_err(text).problem
}

fn target(text: &str) -> String {
    String::from_utf8(url(text).target().to_vec()).expect("ASCII")
}

#[test]
fn a_url_has_its_parts() {
    let whole = url("HTTPS://Shop.Example:8443/Cart?item=1#top");
    assert_eq!((whole.scheme(), whole.host(), whole.port()), (UrlScheme::Https, "shop.example", 8443));
    assert_eq!((whole.path(), whole.query(), whole.target()), ("/Cart", Some("item=1"), &b"/Cart?item=1"[..]));
    assert_eq!(whole.to_string(), "https://shop.example:8443/Cart?item=1");
    assert!(whole.is_tls());
    let short = url("http://localhost");
    assert_eq!((short.port(), short.path(), short.query(), short.is_tls()), (80, "/", None, false));
    assert_eq!((url("http://h?q").target(), url("http://h/?").query()), (&b"/?q"[..], Some("")));
    assert_eq!((url("https://h").port(), url("http://h:/").port(), url("http://h:443").port()), (443, 80, 443));
    assert_eq!(url("http://h/a:b?c/d?e").target(), b"/a:b?c/d?e");
}

#[test]
fn addresses_are_hosts() {
    let v6 = url("http://[0:0:0:0:0:0:0:1]:9/");
    assert_eq!((v6.host(), v6.host_without_brackets(), v6.port(), v6.is_host_ip()), ("[::1]", "::1", 9, true));
    assert!(url("http://127.0.0.1/").is_host_ip());
    assert!(!url("http://127.0.0.1.example/").is_host_ip() && !url("http://host1/").is_host_ip());
}

#[test]
fn no_url_has_another_host_than_to_a_browser() {
    for text in [
        r"http://host\@other/",
        r"http://host\other/",
        r"http://user:pw\@other/",
        r"http:\\other/",
        r"http:/\other/",
        r"http:\/other/",
        "http:///other/",
        "http:/other/",
        "http:other",
        "http://ho\tst/",
        "http://a\r\n@other/",
        "ht\ttp://other/",
        "http:/\t/other/",
        "http://h%40other/",
        "http://h%2Fother/",
        "http://h%5cother/",
        "http://h\u{2024}other/",
        "http://h other/",
        "http://h|other/",
        "http://h:80:81/",
        "http://h:80@/",
        "http://[::1]other/",
        "http://[::1%25lo]/",
    ] {
        assert!(HttpUrl::parse(text.as_bytes()).is_err(), "{text:?}");
    }
    for (text, host) in [
        ("http://a@b@other/", "other"),
        ("http://host#@other/", "host"),
        ("http://host?@other/", "host"),
        ("http://host/@other/", "host"),
        ("http://host:80#@other:81/", "host"),
        (r"http://host/\@other/", "host"),
        (r"http://host?\@other/", "host"),
        ("http://%40@host/", "host"),
        ("http://host./", "host."),
        ("http://HOST/", "host"),
        ("http://\u{ff48}ost/", "host"),
        ("http://b\u{fc}cher.example/", "xn--bcher-kva.example"),
        ("http://fa\u{df}.example:80/", "xn--fa-hia.example"),
    ] {
        assert_eq!(url(text).host(), host, "{text}");
    }
    // Texts of the resolver: the same address as to a browser, but another name, which gets no credentials of it.
    for text in ["http://0x7f.1/", "http://017700000001/", "http://2130706433/", "http://127.1/"] {
        assert_eq!(url(text).to_string(), text);
        assert!(!url(text).credential_origin().shares_credentials_with(&url("http://127.0.0.1/").credential_origin()));
    }
}

#[test]
fn the_host_field_has_a_port_that_is_not_the_default() {
    let field = |text: &str| {
        let mut out = Vec::new();
        url(text).write_host_field(&mut out);
        String::from_utf8(out).expect("ASCII")
    };
    assert_eq!(field("http://h:80/x"), "h");
    assert_eq!(field("https://h:80/x"), "h:80");
    assert_eq!(field("http://[::1]:8080/x"), "[::1]:8080");
}

#[test]
fn what_a_request_line_does_not_allow_is_encoded() {
    assert_eq!(target("http://h/a b\t\r\n\u{7f}"), "/a%20b%09%0D%0A%7F");
    assert_eq!(target("http://h/caf\u{e9}?q=\u{20ac} 1"), "/caf%C3%A9?q=%E2%82%AC%201");
    assert_eq!(target("http://h/100%/%zz/%41?<\"{}|^`'>"), "/100%/%zz/%41?%3C%22{}|^`%27%3E");
    assert_eq!(target("http://h/<\"{}|^`'>"), "/%3C%22%7B%7D|%5E%60'%3E");
    assert_eq!(target("http://h/?where={\"a\":1}"), "/?where={%22a%22:1}");
    assert_eq!(HttpUrl::parse(b"http://h/\xff").expect("a URL").target(), b"/%FF");
}

#[test]
fn dot_segments_are_removed_unless_they_are_to_be_kept() {
    for (given, expected) in [
        ("/a/./b/../c", "/a/c"),
        ("/a/b/..", "/a/"),
        ("/a/.", "/a/"),
        ("/../../x", "/x"),
        ("/..", "/"),
        ("//a/..", "//"),
        ("/a//../b", "/a/b"),
        ("/...", "/..."),
        ("/.a/b..", "/.a/b.."),
        ("/a/?x=/../y", "/a/?x=/../y"),
    ] {
        assert_eq!(target(&format!("http://h{given}")), expected, "{given}");
        let kept = HttpUrl::parse_with(format!("http://h{given}").as_bytes(), DotSegments::Keep).expect("a URL");
        assert_eq!(kept.target(), given.as_bytes());
    }
}

#[test]
fn user_and_password_are_apart_and_decoded() {
    let with = |text: &str| url(text).userinfo().map(<[u8]>::to_vec);
    assert_eq!(with("http://me:p%40ss@h/").as_deref(), Some(&b"me:p@ss"[..]));
    assert_eq!(with("http://me:p%+fss@h/").as_deref(), Some(&b"me:p%+fss"[..]));
    assert_eq!(with("http://me:p@ss@h/").as_deref(), Some(&b"me:p@ss"[..]));
    assert_eq!(with("http://me@h/").as_deref(), Some(&b"me:"[..]));
    assert_eq!(with("http://m%:%zz@h/").as_deref(), Some(&b"m%:%zz"[..]));
    assert_eq!((with("http://@h/"), with("http://h/a@b")), (None, None));
    assert_eq!(url("http://me:secret@h/x").to_string(), "http://h/x");
}

#[test]
fn an_error_says_what_is_wrong() {
    for text in ["", "/path", "localhost:8080/x", "shop.example/x", "?q"] {
        assert_eq!(problem(text), UrlProblem::NoScheme, "{text}");
    }
    assert_eq!(problem("ftp://h/"), UrlProblem::UnknownScheme("ftp".into()));
    for text in ["http://", "http:/x", "http:x", "http://:80/", "http:///x", "http://me@/"] {
        assert_eq!(problem(text), UrlProblem::NoHost, "{text}");
    }
    assert_eq!(problem("http://a b/"), UrlProblem::HostCharacter(' '));
    assert_eq!(problem("http://a%41/"), UrlProblem::HostCharacter('%'));
    assert_eq!(problem("http://h[::1]/"), UrlProblem::HostCharacter('['));
    for text in [&b"http://\xff/"[..], "http://a\u{fffd}b/".as_bytes()] {
        assert_eq!(HttpUrl::parse(text).expect_err("no name").problem, UrlProblem::InternationalHost);
    }
    assert_eq!(problem("http://[fe80::1%25eth0]/"), UrlProblem::Ipv6Zone);
    assert_eq!(problem(&format!("http://{}/", "a".repeat(256))), UrlProblem::LongHost);
    for text in ["http://[h]/", "http://[::1/", "http://[]/"] {
        assert_eq!(problem(text), UrlProblem::Ipv6, "{text}");
    }
    for port in ["0", "65536", "+80", "8 0", "99999999999999999999"] {
        assert_eq!(problem(&format!("http://h:{port}/")), UrlProblem::Port(port.into()));
    }
    assert_eq!(problem("http://[::1]h/"), UrlProblem::Port("h".into()));
}

#[test]
fn an_error_is_one_short_line_without_a_password() {
    let shown = |text: &str| HttpUrl::parse(text.as_bytes()).expect_err(text).to_string();
    assert_eq!(shown("ftp://h/"), "invalid URL 'ftp://h/': unknown scheme 'ftp'; choose http or https");
    assert_eq!(
        shown("http://me:secret@h:0/a@b"),
        "invalid URL 'http://***@h:0/a@b': invalid port; write a number from 1 to 65535"
    );
    for text in [
        "http://me:secret@h:x/",
        "http://m%zz:secret@h:x/",
        "http://me:sec/ret@h/",
        "me:secret@h:1/",
        "http://me:secret@a b/",
    ] {
        let shown = shown(text);
        assert!(!shown.contains("sec") && !shown.contains("ret") && !shown.contains("m%zz"), "{shown}");
    }
    let long = shown(&format!("\n\u{1b}{}", "x".repeat(5000)));
    assert!(long.len() < 300 && !long.contains(char::is_control), "{long}");
}

#[test]
fn a_url_as_people_type_it_may_have_no_scheme() {
    let typed = |text: &str| HttpUrl::parse_typed(text).map(|url| url.to_string());
    for (text, expected) in [
        ("localhost:8080/x", "http://localhost:8080/x"),
        (" HTTPS://a/ ", "https://a/"),
        ("127.0.0.1:8080/to?url=http://x", "http://127.0.0.1:8080/to?url=http://x"),
        ("h/a b?c d#://", "http://h/a%20b?c%20d"),
        ("h?://", "http://h/?://"),
        ("[::1]:8080", "http://[::1]:8080/"),
        ("h:", "http://h/"),
        ("me:pw@h:1", "http://h:1/"),
        ("mail:to@h", "http://h/"),
    ] {
        assert_eq!(typed(text).as_deref(), Ok(expected), "{text}");
    }
    for text in
        ["", "/x", "?x", "http:", "http:h", "HTTPS:/h", "http:80", "mailto:x", "file:/x", "ftp://h", "//h", "://h"]
    {
        assert!(typed(text).is_err(), "{text}");
    }
    assert_eq!(
        HttpUrl::parse_typed("h:x").expect_err("a port").to_string(),
        "invalid URL 'h:x': invalid port 'x'; write a number from 1 to 65535"
    );
}

#[test]
fn what_follows_the_authority_is_the_target_of_the_whole_url() {
    for rest in ["", "/", "?a b", "/a/../b c?d#e", "/\u{e9}?\u{e9}", "#x", "/a?b?c"] {
        assert_eq!(HttpUrl::target_of(rest), target(&format!("http://h{rest}")), "{rest}");
    }
}

#[test]
fn a_url_is_replaced_in_its_memory_and_stays_after_an_error() {
    let mut changed = url("http://first.example:81/a/long/path/to/begin/with?q=1");
    let memory = changed.text.as_ptr();
    changed.assign(b"https://u@h/x", DotSegments::Remove).expect("a URL");
    assert_eq!((&changed, changed.text.as_ptr()), (&url("https://u@h/x"), memory));
    changed.assign(b"https://bad host/", DotSegments::Remove).expect_err("a space");
    assert_eq!(changed, url("https://u@h/x"));
}
