//! `Set-Cookie` headers and URLs: nothing panics, a jar stays within its limits, and what it sends is a valid header.
//! Each line is a URL, a space and the header of a response to it.

use weir_scenario::cookie_jar::CookieJar;
use weir_request::url::HttpUrl;

/// Most cookies that RFC 6265 asks a client to keep.
const MAX_COOKIES: usize = 3000;

crate::target!(|bytes: &[u8]| {
    let (mut jar, mut urls, mut now_s) = (CookieJar::default(), Vec::new(), 1_767_225_600);
    for line in bytes.split(|byte| *byte == b'\n').take(200) {
        let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let Ok(url) = HttpUrl::parse(&line[..end]) else { continue };
        let _ = jar.store(line.get(end + 1..).unwrap_or_default(), &url, now_s);
        now_s += 7;
        urls.push(url);
    }
    assert!(jar.len() <= MAX_COOKIES);
    for url in &urls {
        let mut header = Vec::new();
        jar.write_header(url, now_s, &mut header);
        assert!(!header.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "{}", header.escape_ascii());
        let pairs = header.split(|byte| *byte == b';').count();
        assert!(header.is_empty() || pairs <= jar.len(), "{pairs} of {} cookies", jar.len());
    }
    for url in &urls {
        let mut again = Vec::new();
        jar.write_header(url, i64::MAX, &mut again);
    }
});
