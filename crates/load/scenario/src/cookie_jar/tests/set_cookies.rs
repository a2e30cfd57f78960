//! Set-Cookie fields as services write them.

use super::super::{CookieRejection, SameSite, SetCookie};

fn parsed(field: &str) -> SetCookie<'_> {
    SetCookie::parse(field.as_bytes()).expect(field)
}

#[test]
fn a_field_has_a_pair_and_attributes() {
    let cookie = parsed(
        "sid = \"a=b, c\" ; Path=/x; DOMAIN = .Shop.Example ; secure; HttpOnly=1; max-age=60; samesite=lax; \
         Expires=Wed, 09 Jun 2021 10:18:14 GMT; other=1;",
    );
    assert_eq!((cookie.name, cookie.value), (&b"sid"[..], &b"\"a=b, c\""[..]));
    assert_eq!((cookie.path, cookie.domain), (Some(&b"/x"[..]), Some(&b"Shop.Example"[..])));
    assert_eq!((cookie.max_age_s, cookie.expires_s), (Some(60), Some(1_623_233_894)));
    assert_eq!((cookie.is_secure, cookie.is_http_only, cookie.same_site), (true, true, Some(SameSite::Lax)));
    let bare = parsed("a=");
    assert_eq!((bare.name, bare.value, bare.path, bare.domain), (&b"a"[..], &b""[..], None, None));
    assert_eq!((bare.expires_s, bare.max_age_s, bare.same_site, bare.is_secure), (None, None, None, false));
}

#[test]
fn the_last_valid_attribute_holds() {
    let cookie = parsed("a=1; Max-Age=5; Max-Age=x; Domain=a.b; Domain=; Expires=1 Jan 1970 00:00:01; Expires=never");
    assert_eq!((cookie.max_age_s, cookie.domain, cookie.expires_s), (Some(5), Some(&b"a.b"[..]), Some(1)));
    assert_eq!(parsed("a=1; Path=/x; Path=/y").path, Some(&b"/y"[..]));
    // A path that is none means the default, wherever it stands.
    assert_eq!((parsed("a=1; Path=/x; Path=y").path, parsed("a=1; Path=\"/\"").path), (None, None));
    assert_eq!(parsed("a=1; SameSite=Lax; SameSite=Other").same_site, None);
    assert_eq!(parsed(&format!("a=1; Path=/{}", "x".repeat(1024))).path, None);
}

#[test]
fn ages_are_whole_seconds() {
    let age = |text: &str| parsed(&format!("a=1; Max-Age={text}")).max_age_s;
    assert_eq!((age("0"), age("-5"), age("007")), (Some(0), Some(-5), Some(7)));
    assert_eq!((age(""), age("-"), age("+5"), age("5.0"), age("--5"), age("5s")), (None, None, None, None, None, None));
    assert_eq!((age("99999999999999999999"), age("-99999999999999999999")), (Some(i64::MAX), Some(-i64::MAX)));
}

#[test]
fn fields_without_a_cookie_are_ignored() {
    for (field, rejection) in [
        ("", CookieRejection::NoName),
        ("novalue", CookieRejection::NoName),
        ("=value", CookieRejection::NoName),
        (" \t=value; Path=/", CookieRejection::NoName),
        ("; a=1", CookieRejection::NoName),
        ("a=1\r\nX: y", CookieRejection::ControlCharacter),
        ("a=1; Path=/\0", CookieRejection::ControlCharacter),
        ("a=1\t2", CookieRejection::ControlCharacter),
    ] {
        assert_eq!(SetCookie::parse(field.as_bytes()), Err(rejection), "{field:?}");
    }
    assert_eq!(parsed("a=1\t;\tSecure\t").value, b"1");
    assert_eq!(parsed("a=x y").value, b"x y");
    assert_eq!(SetCookie::parse("\u{e9}=\u{e9}".as_bytes()).map(|cookie| cookie.value.len()), Ok(2));
}
