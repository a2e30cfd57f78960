//! Session of a request.

use weir_scenario::cookie_jar::CookieJar;

/// Headers and cookies that a session adds to a request.
#[derive(Debug)]
pub struct SessionParts<'a> {
    /// Header lines, each with its line break.
    pub head: &'a [u8],
    /// Cookies.
    pub jar: &'a mut CookieJar,
    /// Time of the request, in seconds since 1970: cookies expire.
    pub unix_s: i64,
}
