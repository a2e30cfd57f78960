//! Tests of cookies.

mod dates;
mod examples;
mod limits;
mod oracle;
mod properties;
mod set_cookies;

use super::CookieJar;
use weir_request::url::HttpUrl;

/// Time of tests: 2026-01-01T00:00:00Z.
const NOW_S: i64 = 1_767_225_600;

fn url(text: &str) -> HttpUrl {
    HttpUrl::parse(text.as_bytes()).expect("a URL")
}

/// Jar after a response from `from` with these cookies.
fn jar(from: &str, cookies: &[&str]) -> CookieJar {
    let mut jar = CookieJar::default();
    for cookie in cookies {
        jar.store(cookie.as_bytes(), &url(from), NOW_S).expect(cookie);
    }
    jar
}

/// Cookie field of a request.
fn sent(jar: &mut CookieJar, to: &str, now_s: i64) -> String {
    let mut out = Vec::new();
    jar.write_header(&url(to), now_s, &mut out);
    String::from_utf8(out).expect("text")
}
