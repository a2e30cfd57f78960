//! Stored cookies.

use std::fmt;

use super::scope::is_path_match;
use super::set_cookie::{SameSite, SetCookie};

/// Expiry of cookies that live until the session ends.
const SESSION_EXPIRY_S: i64 = i64::MAX;

/// Stored cookie, 48 bytes and one allocation.
#[derive(Clone, Debug)]
pub struct Cookie {
    /// Name, value, domain and path.
    text: Box<[u8]>,
    expires_s: i64,
    /// Time of the last response that set it, or request that had it.
    pub(super) used_s: i64,
    /// Position in the order of creation; a replacement keeps it.
    pub(super) created: u32,
    name_end: u16,
    value_end: u16,
    domain_end: u16,
    is_secure: bool,
    is_http_only: bool,
    is_host_only: bool,
    same_site: Option<SameSite>,
}

impl Cookie {
    pub(super) fn new(
        parsed: &SetCookie<'_>,
        domain: &str,
        is_host_only: bool,
        path: &[u8],
        expires_s: Option<i64>,
        now_unix_s: i64,
        created: u32,
    ) -> Self {
        // Name and value have at most 4,096 bytes, a host 255.
        let name_end = parsed.name.len() as u16;
        let value_end = name_end + parsed.value.len() as u16;
        Self {
            text: [parsed.name, parsed.value, domain.as_bytes(), path].concat().into_boxed_slice(),
            expires_s: expires_s.unwrap_or(SESSION_EXPIRY_S),
            used_s: now_unix_s,
            created,
            name_end,
            value_end,
            domain_end: value_end + domain.len() as u16,
            is_secure: parsed.is_secure,
            is_http_only: parsed.is_http_only,
            is_host_only,
            same_site: parsed.same_site,
        }
    }

    /// Takes over everything but name, domain, path and age from a cookie that has these in common.
    pub(super) fn replace(&mut self, parsed: &SetCookie<'_>, expires_s: Option<i64>, now_unix_s: i64) {
        if parsed.value.len() == self.value().len() {
            // Services that set a session anew with each response cost no allocation.
            self.text[usize::from(self.name_end)..usize::from(self.value_end)].copy_from_slice(parsed.value);
            self.expires_s = expires_s.unwrap_or(SESSION_EXPIRY_S);
            self.used_s = now_unix_s;
            self.is_secure = parsed.is_secure;
            self.is_http_only = parsed.is_http_only;
            self.same_site = parsed.same_site;
        } else {
            let (domain, path) = (self.domain(), self.path());
            *self = Self::new(parsed, domain, self.is_host_only, path, expires_s, now_unix_s, self.created);
        }
    }

    /// Name.
    pub fn name(&self) -> &[u8] {
        &self.text[..usize::from(self.name_end)]
    }

    /// Value.
    pub fn value(&self) -> &[u8] {
        &self.text[usize::from(self.name_end)..usize::from(self.value_end)]
    }

    /// Domain: the host that set it, or one above that, in lower case and without a leading dot.
    pub fn domain(&self) -> &str {
        let domain = &self.text[usize::from(self.value_end)..usize::from(self.domain_end)];
        // It is the end of a URL's host, so it is ASCII.
        std::str::from_utf8(domain).unwrap_or_default()
    }

    /// Path, beginning with `/`.
    pub fn path(&self) -> &[u8] {
        &self.text[usize::from(self.domain_end)..]
    }

    /// Seconds since 1970 from which the cookie is expired; none until the end of the session.
    pub fn expires_s(&self) -> Option<i64> {
        Some(self.expires_s).filter(|expires_s| *expires_s != SESSION_EXPIRY_S)
    }

    /// Whether the cookie needs TLS.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Whether scripts of a page cannot read the cookie.
    pub fn is_http_only(&self) -> bool {
        self.is_http_only
    }

    /// Whether only the host that set the cookie gets it, and its subdomains do not.
    pub fn is_host_only(&self) -> bool {
        self.is_host_only
    }

    /// SameSite attribute.
    pub fn same_site(&self) -> Option<SameSite> {
        self.same_site
    }

    pub(super) fn is_expired(&self, now_unix_s: i64) -> bool {
        self.expires_s != SESSION_EXPIRY_S && self.expires_s <= now_unix_s
    }

    /// Whether the cookie is secure and would be hidden by a new one of the same name.
    pub(super) fn is_secure_twin(&self, name: &[u8], domain: &str, path: &[u8]) -> bool {
        let own = self.domain();
        let is_below = |host: &str, domain: &str| {
            host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        self.is_secure
            && self.name() == name
            && (is_below(own, domain) || is_below(domain, own))
            && is_path_match(path, self.path())
    }
}

/// Line of a Netscape cookie file, as curl and hurl write it.
impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flag = |is: bool| if is { "TRUE" } else { "FALSE" };
        let text = String::from_utf8_lossy;
        write!(
            f,
            "{}{}{}\t{}\t{}\t{}\t{}\t{}\t{}",
            if self.is_http_only { "#HttpOnly_" } else { "" },
            if self.is_host_only { "" } else { "." },
            self.domain(),
            flag(!self.is_host_only),
            text(self.path()),
            flag(self.is_secure),
            self.expires_s().unwrap_or(0),
            text(self.name()),
            text(self.value()),
        )
    }
}
