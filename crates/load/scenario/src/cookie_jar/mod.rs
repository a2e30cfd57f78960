//! Cookies of a user, as browsers and curl keep them: RFC 6265, with what its successor (RFC 6265bis) changed and curl
//! has, too.
//!
//! From the successor: secure cookies are neither set nor replaced by responses in plain text, names that begin with
//! `__Secure-` and `__Host-` are guarded, a host's own cookie and one for its subdomains are two, cookies with control
//! characters or over 4,096 bytes are ignored, and none lives longer than 400 days. From curl: a host of the machine
//! itself needs no TLS for secure cookies, cookies with tabs are ignored, and a request has at most 8,190 bytes of them.
//! Not from there: cookies without a name, which browsers accept.
//!
//! There is no list of public suffixes: a name without a dot counts as one, `co.uk` does not. `SameSite` is kept and
//! not enforced, since a scenario has no pages that requests come from.

mod cookie;
mod cookie_date;
mod rejection;
mod scope;
mod set_cookie;

#[cfg(test)]
mod tests;

pub use cookie::Cookie;
pub use rejection::CookieRejection;
pub use set_cookie::{SameSite, SetCookie};

use scope::{is_domain_match, is_path_match, is_public_suffix, is_trusted};
use weir_request::url::HttpUrl;

/// Cookies of one domain, at most; the least recently used one makes place for another.
pub const MAX_COOKIES_PER_DOMAIN: usize = 50;

/// Cookies of one user, at most.
pub const MAX_COOKIES: usize = 3_000;

/// Bytes of a Cookie field, at most, as in curl; servers reject longer ones.
const MAX_FIELD_BYTES: usize = 8_190;

/// Longest life of a cookie, in seconds.
const MAX_LIFE_S: i64 = 400 * 86_400;

/// Cookies of one user. An empty jar has no memory of its own, a cookie one allocation.
#[derive(Clone, Debug, Default)]
pub struct CookieJar {
    /// In the order of a Cookie field: longer paths first, then older cookies first.
    cookies: Vec<Cookie>,
}

impl CookieJar {
    /// Stores the cookie of a Set-Cookie field in a response from `url`, or deletes the one that it expires.
    /// `now_unix_s` is the time of the response in seconds since 1970.
    ///
    /// # Errors
    /// If the cookie is ignored, which is common and no failure of the response.
    pub fn store(&mut self, set_cookie: &[u8], url: &HttpUrl, now_unix_s: i64) -> Result<(), CookieRejection> {
        let parsed = SetCookie::parse(set_cookie)?;
        self.remove_expired(now_unix_s);
        let (domain, is_host_only) = domain_of(&parsed, url)?;
        let path = parsed.path.unwrap_or_else(|| scope::default_path(url.path()).as_bytes());
        if !is_trusted(url) {
            if parsed.is_secure {
                return Err(CookieRejection::SecureOverHttp);
            }
            if self.cookies.iter().any(|cookie| cookie.is_secure_twin(parsed.name, domain, path)) {
                return Err(CookieRejection::ReplacesSecure);
            }
        }
        check_prefix(&parsed, is_host_only)?;

        let expires_s = expiry(&parsed, now_unix_s);
        let index = self.cookies.iter().position(|cookie| {
            cookie.name() == parsed.name
                && cookie.domain().as_bytes() == domain.as_bytes()
                && cookie.path() == path
                && cookie.is_host_only() == is_host_only
        });
        if expires_s.is_some_and(|expires_s| expires_s <= now_unix_s) {
            if let Some(index) = index {
                self.cookies.remove(index);
            }
            return Ok(());
        }
        match index.and_then(|index| self.cookies.get_mut(index)) {
            Some(cookie) => cookie.replace(&parsed, expires_s, now_unix_s),
            None => {
                let created = self.cookies.iter().map(|cookie| cookie.created).max().unwrap_or(0).saturating_add(1);
                let cookie = Cookie::new(&parsed, domain, is_host_only, path, expires_s, now_unix_s, created);
                self.insert(cookie);
            }
        }
        Ok(())
    }

    fn insert(&mut self, cookie: Cookie) {
        let domain = cookie.domain();
        let in_domain = self.cookies.iter().filter(|other| other.domain() == domain).count();
        if in_domain >= MAX_COOKIES_PER_DOMAIN {
            let index = self.least_recent(|other| other.domain() == domain);
            self.remove(index);
        } else if self.cookies.len() >= MAX_COOKIES {
            let index = self.least_recent(|_| true);
            self.remove(index);
        }
        if self.cookies.len() < 4 {
            // Most users have one cookie or two; the vector's own first step is four.
            self.cookies.reserve_exact(1);
        }
        let index = self.cookies.partition_point(|other| other.path().len() >= cookie.path().len());
        self.cookies.insert(index, cookie);
    }

    fn least_recent(&self, is_candidate: impl Fn(&Cookie) -> bool) -> Option<usize> {
        let candidates = self.cookies.iter().enumerate().filter(|(_, cookie)| is_candidate(cookie));
        candidates.min_by_key(|(_, cookie)| (cookie.used_s, cookie.created)).map(|(index, _)| index)
    }

    fn remove(&mut self, index: Option<usize>) {
        if let Some(index) = index {
            self.cookies.remove(index);
        }
    }

    fn remove_expired(&mut self, now_unix_s: i64) {
        self.cookies.retain(|cookie| !cookie.is_expired(now_unix_s));
    }

    /// Appends the value of the Cookie field of a request to `url`, as `a=1; b=2`; nothing if no cookie goes there.
    pub fn write_header(&mut self, url: &HttpUrl, now_unix_s: i64, out: &mut Vec<u8>) {
        if self.cookies.is_empty() {
            return;
        }
        let (is_trusted, start) = (is_trusted(url), out.len());
        let (mut has_expired, mut is_full) = (false, false);
        for cookie in &mut self.cookies {
            if cookie.is_expired(now_unix_s) {
                has_expired = true;
                continue;
            }
            let is_host = match cookie.is_host_only() {
                true => cookie.domain() == url.host(),
                false => is_domain_match(url, cookie.domain().as_bytes()),
            };
            if is_full
                || !is_host
                || (cookie.is_secure() && !is_trusted)
                || !is_path_match(url.path().as_bytes(), cookie.path())
            {
                continue;
            }
            let is_first = out.len() == start;
            let separator: &[u8] = if is_first { b"" } else { b"; " };
            let field_len = out.len() - start + separator.len() + cookie.name().len() + 1 + cookie.value().len();
            if field_len > MAX_FIELD_BYTES {
                // As in curl, a short cookie after one that is too long is not sent either.
                is_full = true;
                continue;
            }
            cookie.used_s = now_unix_s;
            for part in [separator, cookie.name(), b"=", cookie.value()] {
                out.extend_from_slice(part);
            }
        }
        if has_expired {
            self.remove_expired(now_unix_s);
        }
    }

    /// Cookie of a name; of several, the one that a request has first.
    pub fn get(&self, name: &[u8]) -> Option<&Cookie> {
        self.cookies.iter().find(|cookie| cookie.name() == name)
    }

    /// Cookies in the order of requests, also expired ones that nothing removed yet.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Cookie> {
        self.cookies.iter()
    }

    /// Number of cookies.
    pub fn len(&self) -> usize {
        self.cookies.len()
    }

    /// Whether there are no cookies.
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Removes all cookies.
    pub fn clear(&mut self) {
        self.cookies.clear();
    }
}

/// Domain of a cookie, and whether subdomains are excluded.
fn domain_of<'u>(parsed: &SetCookie<'_>, url: &'u HttpUrl) -> Result<(&'u str, bool), CookieRejection> {
    let host = url.host();
    let Some(domain) = parsed.domain.filter(|domain| !domain.is_empty()) else {
        return Ok((host, true));
    };
    if is_public_suffix(domain) || url.is_host_ip() {
        let is_host = domain.eq_ignore_ascii_case(host.as_bytes());
        return if is_host { Ok((host, true)) } else { Err(CookieRejection::PublicSuffix) };
    }
    if !is_domain_match(url, domain) {
        return Err(CookieRejection::OtherDomain);
    }
    // The end of the host is the domain in lower case.
    Ok((&host[host.len() - domain.len()..], false))
}

/// Guards names that promise how a cookie was set.
fn check_prefix(parsed: &SetCookie<'_>, is_host_only: bool) -> Result<(), CookieRejection> {
    let has = |prefix: &[u8]| parsed.name.get(..prefix.len()).is_some_and(|name| name.eq_ignore_ascii_case(prefix));
    if has(b"__Secure-") && !parsed.is_secure {
        return Err(CookieRejection::Prefix);
    }
    if has(b"__Host-") && !(parsed.is_secure && is_host_only && parsed.path == Some(b"/")) {
        return Err(CookieRejection::Prefix);
    }
    Ok(())
}

/// Time from which a cookie is expired; none until the end of the session.
fn expiry(parsed: &SetCookie<'_>, now_unix_s: i64) -> Option<i64> {
    let expires_s = match parsed.max_age_s {
        Some(age_s) if age_s <= 0 => Some(i64::MIN),
        Some(age_s) => Some(now_unix_s.saturating_add(age_s)),
        None => parsed.expires_s,
    };
    expires_s.map(|expires_s| expires_s.min(now_unix_s.saturating_add(MAX_LIFE_S)))
}
