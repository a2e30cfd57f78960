//! Requests that follow redirects, by the rules of the library requests.

/// Maximum number of redirects in a row.
pub const MAX_REDIRECTS: usize = 30;

/// Whether a status is one of a redirect; only with a Location it is followed.
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Whether the body is sent again; otherwise the method becomes GET, but for HEAD.
pub fn keeps_body(status: u16) -> bool {
    matches!(status, 307 | 308)
}

/// Method of the request that follows a redirect with this status.
pub fn method_after(status: u16, method: &str) -> &str {
    match status {
        302 | 303 if method != "HEAD" => "GET",
        301 if method == "POST" => "GET",
        _ => method,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_bodies_after_redirects_are_those_of_the_library_requests() {
        for (status, method, after, keeps) in [
            (301, "GET", "GET", false),
            (301, "POST", "GET", false),
            (301, "PUT", "PUT", false),
            (302, "POST", "GET", false),
            (302, "PUT", "GET", false),
            (302, "HEAD", "HEAD", false),
            (303, "DELETE", "GET", false),
            (303, "HEAD", "HEAD", false),
            (307, "POST", "POST", true),
            (308, "PUT", "PUT", true),
        ] {
            assert!(is_redirect(status));
            assert_eq!((method_after(status, method), keeps_body(status)), (after, keeps), "{status} {method}");
        }
        assert!([200, 300, 304, 305, 306, 309, 400].iter().all(|status| !is_redirect(*status)));
    }
}
