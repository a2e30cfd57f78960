//! References of redirects.

use super::super::{HttpUrl, UrlProblem};
use super::url;

#[test]
fn the_examples_of_rfc_3986_are_resolved() {
    let base = url("http://a/b/c/d;p?q");
    for (reference, expected) in [
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g/"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"),
        ("g?y#s", "http://a/b/c/g?y"),
        (";x", "http://a/b/c/;x"),
        ("g;x", "http://a/b/c/g;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("../../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        (".g", "http://a/b/c/.g"),
        ("g..", "http://a/b/c/g.."),
        ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/./h", "http://a/b/c/g/h"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/./x", "http://a/b/c/g?y/./x"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/../x", "http://a/b/c/g"),
    ] {
        let resolved = base.resolve(reference.as_bytes()).expect(reference);
        assert_eq!(resolved, url(expected), "{reference}");
    }
}

#[test]
fn a_redirect_changes_what_it_names() {
    let base = url("http://me:pw@shop.example:8080/login?next=1");
    let resolved = |reference: &str| base.resolve(reference.as_bytes()).expect(reference);
    assert_eq!(resolved("https://other.example/x").to_string(), "https://other.example/x");
    assert_eq!(resolved("//other.example/x").port(), 80);
    assert_eq!(resolved("cart items?a b").to_string(), "http://shop.example:8080/cart%20items?a%20b");
    assert_eq!(resolved("?").target(), b"/login?");
    assert_eq!(resolved("/x").userinfo(), Some(&b"me:pw"[..]));
    assert_eq!(resolved("http://shop.example:8080/x").userinfo(), Some(&b"me:pw"[..]));
    assert_eq!(resolved("http://you:pw2@shop.example:8080/x").userinfo(), Some(&b"you:pw2"[..]));
    for other in ["http://shop.example/x", "https://shop.example:8080/x", "//other.example:8080/x"] {
        assert_eq!(resolved(other).userinfo(), None, "{other}");
    }
}

#[test]
fn a_redirect_to_something_else_is_an_error() {
    let base = url("http://h/");
    let problem = |reference: &str| base.resolve(reference.as_bytes()).expect_err(reference).problem;
    assert_eq!(problem("mailto:me@h"), UrlProblem::UnknownScheme(String::new()));
    assert_eq!(problem("app://login"), UrlProblem::UnknownScheme("app".into()));
    assert_eq!(problem("http:g"), UrlProblem::NoHost);
    assert_eq!(problem("//"), UrlProblem::NoHost);
    assert_eq!(problem("//h:x/"), UrlProblem::Port("x".into()));
}

#[test]
fn no_redirect_has_another_host_than_to_a_browser() {
    let base = url("http://h/a/b");
    for reference in [
        r"/\other/",
        r"\/other/",
        r"\\other/",
        r"//h\@other/",
        r"http://h\@other/",
        "/\t/other/",
        "\t//other/",
        "/\n/other",
        "ht\ntp://other/",
        "https:other",
        "http:///other",
        "//",
        "//@/",
    ] {
        assert!(base.resolve(reference.as_bytes()).is_err(), "{reference:?}");
    }
    for reference in [r"\other", r"/x\..\other", r"?\\other", "#//other", "/%5cother", "///other"] {
        let found = base.resolve(reference.as_bytes());
        assert!(found.as_ref().map_or(true, |found| found.host() == "h"), "{reference:?} {found:?}");
    }
}

#[test]
fn an_origin_is_scheme_host_and_port() {
    let has = |a: &str, b: &str| url(a).credential_origin().shares_credentials_with(&url(b).credential_origin());
    assert!(has("http://h/a", "http://H:80/b"));
    assert!(
        has("http://h/", "https://h/")
            && !has("https://h/", "http://h/")
            && !has("http://h/", "http://h:81/")
            && !has("http://h/", "http://g/")
    );
    assert!(HttpUrl::parse(b"http://h").is_ok());
}
