//! URLs: nothing panics; what parses prints, and parses again as the same; nothing in it breaks out of its place.

use weir_request::url::HttpUrl;
use weir_request::url_text::UrlText;
use weir_net::target::Target;

crate::target!(|url: &str| {
    let target = match Target::parse(url) {
        Ok(target) => target,
        Err(error) => {
            let _ = error.to_string();
            return;
        }
    };
    assert!(!target.host.is_empty() && target.port > 0 && target.path.starts_with('/'), "{target:?}");
    for part in [&target.url, &target.path, &target.host] {
        assert!(part.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>".contains(&byte)), "{target:?}");
    }
    // Passwords stay out of whatever shows the URL.
    let expected = Target { userinfo: None, ..target.clone() };
    assert_eq!(Target::parse(&target.url), Ok(expected), "printed as {}", target.url);

    let base = HttpUrl::parse(b"http://base/x/y?z").expect("a URL");
    // Spaces around a header's value are not the value's.
    if let Ok(location) = base.resolve(url.trim_matches(' ').as_bytes())
        && UrlText::of(url).scheme.is_some()
    {
        assert_eq!(location.to_string(), target.url, "a redirect leads where the URL does");
    }

    let scheme = if target.tls { "https" } else { "http" };
    let from_header = format!("{scheme}://{}{}", target.host_header(), target.path);
    let again = Target::parse(&from_header).expect("what the Host header says is a URL's authority");
    assert_eq!((&again.host, again.port, &again.path), (&target.host, target.port, &target.path), "{from_header}");
});
