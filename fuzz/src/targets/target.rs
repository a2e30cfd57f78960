//! URLs: nothing panics; what parses prints, and parses again as the same; nothing in it breaks out of its place.

use weir_http::target::Target;

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
        assert!(!part.contains(|c: char| c.is_ascii_control() || c == ' '), "{target:?}");
    }
    // Passwords stay out of whatever shows the URL.
    let expected = Target { userinfo: None, ..target.clone() };
    assert_eq!(Target::parse(&target.url), Ok(expected), "printed as {}", target.url);

    let scheme = if target.tls { "https" } else { "http" };
    let from_header = format!("{scheme}://{}{}", target.host_header(), target.path);
    let again = Target::parse(&from_header).expect("what the Host header says is a URL's authority");
    assert_eq!((&again.host, again.port, &again.path), (&target.host, target.port, &target.path), "{from_header}");
});
