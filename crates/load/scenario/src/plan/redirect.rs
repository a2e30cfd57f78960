//! Redirects, as browsers follow them.

/// Method and body of the request that follows a redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RedirectRequest<'m> {
    pub(super) method: &'m str,
    /// Whether the body of the redirected request is sent again.
    pub(super) keeps_body: bool,
}

/// Whether a status is one of a redirect; only with a Location it is followed.
pub(super) fn is_redirect(status: u16) -> bool {
    (300..400).contains(&status)
}

impl<'m> RedirectRequest<'m> {
    /// Request after a response with this status. 303 always leads to a GET; 301 and 302 do from a POST, as clients
    /// have done since before the specification; the others change nothing.
    pub(super) fn after(status: u16, method: &'m str, has_body: bool) -> Self {
        let becomes_get = match status {
            303 => method != "HEAD",
            301 | 302 => method == "POST",
            _ => false,
        };
        if becomes_get {
            return Self { method: "GET", keeps_body: false };
        }
        Self { method, keeps_body: has_body }
    }
}
