//! Requests that follow redirects, by the rules of the library requests.

/// Maximum number of redirects in a row.
pub(super) const MAX_REDIRECTS: usize = 30;

/// Whether a status is one of a redirect; only with a Location it is followed.
pub(super) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Whether the body is sent again; otherwise the method becomes GET, but for HEAD.
pub(super) fn keeps_body(status: u16) -> bool {
    matches!(status, 307 | 308)
}

/// Method of the request that follows a redirect with this status.
pub(super) fn method_after(status: u16, method: &str) -> &str {
    match status {
        302 | 303 if method != "HEAD" => "GET",
        301 if method == "POST" => "GET",
        _ => method,
    }
}
