//! Parts of a response that values are in.

use std::ops::BitOrAssign;

/// Parts of a response that a query needs, besides status and times; the others need not be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseNeeds {
    /// The body.
    pub body: bool,
    /// The headers, or the address of the service.
    pub headers: bool,
    /// The URL of the request.
    pub url: bool,
    /// The redirects before the response.
    pub redirects: bool,
}

impl BitOrAssign for ResponseNeeds {
    fn bitor_assign(&mut self, other: Self) {
        self.body |= other.body;
        self.headers |= other.headers;
        self.url |= other.url;
        self.redirects |= other.redirects;
    }
}
