//! Parses the value of requests by which calls are spread over upstreams or hosts.

use http::HeaderName;

use super::headers;
use super::read::DocumentNode;
use weir_base::Nanos;

/// Value of a request that calls are spread by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// Value of this header.
    Header(HeaderName),
    /// Value of this cookie. With a maximum age the gateway sets it, for callers that have none.
    Cookie {
        /// Name.
        name: String,
        /// Maximum age of a cookie that the gateway sets; None: it sets none.
        issue: Option<Nanos>,
    },
    /// The caller's address.
    Address,
}

/// Maximum age of a cookie.
const MAX_COOKIE_AGE: Nanos = Nanos::from_secs(400 * 86_400);

/// Parses `"address"`, `{ header = "x-user" }` or `{ cookie = "session", max_age = "1h" }`.
pub(super) fn key_source(node: &DocumentNode<'_>, may_issue: bool) -> Option<KeySource> {
    if !node.is_table() {
        return node.choice(&[("address", ())]).map(|()| KeySource::Address);
    }
    let table = node.table()?;
    let (header, cookie) = (table.get("header"), table.get("cookie"));
    let max_age = if may_issue { table.get("max_age") } else { None };
    table.check_unknown_keys();
    let issue = max_age.as_ref().and_then(|node| {
        let age = node.time()?;
        if age < Nanos::SECOND || age > MAX_COOKIE_AGE {
            node.expected("age", r#"write one from "1s" to "9600h""#);
        }
        Some(age)
    });
    match (header, cookie) {
        (Some(header), None) => {
            if let Some(node) = max_age {
                node.error("max_age is that of a cookie", "write cookie in place of header, or leave it out");
            }
            headers::name(&header, header.string()?).map(KeySource::Header)
        }
        (None, Some(cookie)) => {
            let name = cookie.string()?;
            // RFC 6265, 4.1.1: a cookie's name is a token.
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                cookie.expected("cookie name", "write letters, digits, \"-\" and \"_\"");
            }
            Some(KeySource::Cookie { name: name.to_owned(), issue })
        }
        _ => {
            table.error("one of header and cookie is needed", r#"write header = "x-user" or cookie = "session""#);
            None
        }
    }
}
