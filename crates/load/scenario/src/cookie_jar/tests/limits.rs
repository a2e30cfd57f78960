//! Bounds of a jar, and its memory.

use super::super::{Cookie, CookieJar, CookieRejection, MAX_COOKIES, MAX_COOKIES_PER_DOMAIN};
use super::{NOW_S, jar, sent, url};

#[test]
fn an_empty_jar_is_three_words_and_a_cookie_six() {
    assert_eq!(size_of::<CookieJar>(), 24);
    assert_eq!(size_of::<Cookie>(), 48);
    assert_eq!(CookieJar::default().cookies.capacity(), 0);
    assert_eq!(jar("http://h/", &["a=1"]).cookies.capacity(), 1);
    assert_eq!(jar("http://h/", &["a=1", "b=1"]).cookies.capacity(), 2);
}

#[test]
fn a_value_of_the_same_length_is_replaced_in_its_memory() {
    let mut session = jar("http://h/", &["sid=aaaa; Max-Age=5"]);
    let memory = session.cookies[0].name().as_ptr();
    session.store(b"sid=bbbb", &url("http://h/"), NOW_S).expect("stored");
    assert_eq!((session.cookies[0].name().as_ptr(), session.cookies[0].expires_s()), (memory, None));
    assert_eq!(sent(&mut session, "http://h/", NOW_S + 9), "sid=bbbb");
}

#[test]
fn a_cookie_has_at_most_4096_bytes() {
    let store = |len: usize| CookieJar::default().store(&[b"ab=", &vec![b'x'; len][..]].concat(), &url("http://h/"), 0);
    assert_eq!((store(4094), store(4095)), (Ok(()), Err(CookieRejection::TooLong)));
}

#[test]
fn the_least_recently_used_cookie_of_a_domain_makes_place() {
    let mut session = jar("http://other/", &["o=1"]);
    for number in 0..MAX_COOKIES_PER_DOMAIN {
        let path = if number == 0 { "/old" } else { "/" };
        session.store(format!("c{number}=1; Path={path}").as_bytes(), &url("http://h/"), NOW_S).expect("stored");
    }
    assert!(sent(&mut session, "http://h/old", NOW_S + 1).starts_with("c0=1; "));
    session.store(b"c1=2", &url("http://h/"), NOW_S + 2).expect("stored");
    session.store(b"new=1", &url("http://h/"), NOW_S + 2).expect("stored");
    // c0 and c2 were sent in the same second; c0 is older.
    assert!(session.get(b"c0").is_none() && session.get(b"c1").is_some() && session.get(b"c2").is_some());
    assert!(session.get(b"new").is_some() && session.get(b"o").is_some());
    assert_eq!(session.len(), MAX_COOKIES_PER_DOMAIN + 1);
}

#[test]
fn a_jar_has_at_most_3000_cookies() {
    let mut session = CookieJar::default();
    for number in 0..MAX_COOKIES + 3 {
        let host = url(&format!("http://h{}/", number / 40));
        session.store(format!("c{number}=1").as_bytes(), &host, NOW_S).expect("stored");
    }
    assert_eq!(session.len(), MAX_COOKIES);
    assert!(session.get(b"c2").is_none() && session.get(b"c3").is_some());
}

#[test]
fn a_field_has_at_most_8190_bytes() {
    let cookies: Vec<String> = (0..9).map(|number| format!("{number}={}", "x".repeat(998))).collect();
    let mut session = jar("http://h/", &cookies.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(sent(&mut session, "http://h/", NOW_S).len(), 8 * 1000 + 7 * 2);
}
