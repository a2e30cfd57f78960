//! Scope of a cookie: domains and paths.

use weir_request::url::HttpUrl;

/// Whether secure cookies may go to and come from a URL: over TLS, or without leaving the machine.
pub(super) fn is_trusted(url: &HttpUrl) -> bool {
    url.is_tls() || ["localhost", "127.0.0.1", "[::1]"].contains(&url.host())
}

/// Whether a URL's host is a domain or one of its subdomains (RFC 6265, section 5.1.3).
pub(super) fn is_domain_match(url: &HttpUrl, domain: &[u8]) -> bool {
    let host = url.host().as_bytes();
    let Some(start) = host.len().checked_sub(domain.len()) else { return false };
    if !host[start..].eq_ignore_ascii_case(domain) {
        return false;
    }
    start == 0 || (host[start - 1] == b'.' && !url.is_host_ip())
}

/// Whether a domain is one label, such as `com`; `localhost` is not a suffix of others.
pub(super) fn is_public_suffix(domain: &[u8]) -> bool {
    let name = domain.strip_suffix(b".").unwrap_or(domain);
    !name.contains(&b'.') && !name.eq_ignore_ascii_case(b"localhost")
}

/// Path of a cookie that names none: the folder of the URL's path (RFC 6265, section 5.1.4).
pub(super) fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(slash) => &path[..slash],
    }
}

/// Whether a path is a cookie's or below it (RFC 6265, section 5.1.4).
pub(super) fn is_path_match(path: &[u8], cookie_path: &[u8]) -> bool {
    match path.strip_prefix(cookie_path) {
        Some(rest) => rest.is_empty() || cookie_path.ends_with(b"/") || rest.starts_with(b"/"),
        None => false,
    }
}
