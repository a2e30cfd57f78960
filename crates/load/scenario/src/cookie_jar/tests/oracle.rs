//! A jar as RFC 6265 writes it, section by section: a list of cookies, sorted when a request asks.

use super::super::{MAX_COOKIES, MAX_COOKIES_PER_DOMAIN};
use weir_request::url::HttpUrl;

/// Dates that tests use, and when they are.
pub(super) const DATES: [(&str, Option<i64>); 4] = [
    ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
    ("Thursday, 01-Jan-26 00:00:20 GMT", Some(super::NOW_S + 20)),
    ("Thu Jan  1 00:00:05 2026", Some(super::NOW_S + 5)),
    ("tomorrow", None),
];

#[derive(Debug)]
struct ListedCookie {
    name: String,
    value: String,
    expiry_time: Option<i64>,
    domain: String,
    path: String,
    creation: usize,
    last_access: i64,
    host_only: bool,
    secure_only: bool,
}

/// Cookies in a list.
#[derive(Debug, Default)]
pub(super) struct ListedJar {
    cookies: Vec<ListedCookie>,
    creations: usize,
}

fn is_ip(host: &str) -> bool {
    host.starts_with('[') || host.split('.').all(|part| part.parse::<u8>().is_ok())
}

/// Section 5.1.3.
fn domain_match(string: &str, domain: &str) -> bool {
    string == domain || (string.ends_with(&format!(".{domain}")) && !is_ip(string))
}

/// Section 5.1.4.
fn default_path(uri_path: &str) -> String {
    if !uri_path.starts_with('/') || uri_path.matches('/').count() <= 1 {
        return "/".into();
    }
    uri_path.rsplit_once('/').expect("a slash").0.to_owned()
}

/// Section 5.1.4.
fn path_match(request: &str, cookie: &str) -> bool {
    request == cookie
        || (request.starts_with(cookie) && cookie.ends_with('/'))
        || (request.starts_with(cookie) && request.chars().nth(cookie.chars().count()) == Some('/'))
}

fn is_secure(url: &HttpUrl) -> bool {
    url.is_tls() || matches!(url.host(), "localhost" | "127.0.0.1" | "[::1]")
}

impl ListedJar {
    /// Sections 5.2 and 5.3; returns whether the cookie is processed to the end.
    pub(super) fn store(&mut self, field: &str, url: &HttpUrl, now: i64) -> bool {
        let wsp = |text: &str| text.trim_matches([' ', '\t']).to_owned();
        let (pair, attributes) = field.split_once(';').unwrap_or((field, ""));
        let Some((name, value)) = pair.split_once('=') else { return false };
        let (name, value) = (wsp(name), wsp(value));
        if name.is_empty() || name.len() + value.len() > 4096 {
            return false;
        }
        let list: Vec<(String, String)> = attributes
            .split(';')
            .map(|attribute| attribute.split_once('=').unwrap_or((attribute, "")))
            .map(|(name, value)| (wsp(name).to_lowercase(), wsp(value)))
            .collect();
        let last =
            |name: &'static str| list.iter().rev().filter(move |(known, _)| known == name).map(|(_, value)| value);
        self.cookies.retain(|cookie| cookie.expiry_time.is_none_or(|at| at > now));

        let max_age = last("max-age").find_map(|value| value.parse::<i64>().ok().filter(|_| !value.starts_with('+')));
        let expires = last("expires").find_map(|value| DATES.iter().find(|(text, _)| text == value)?.1);
        let expiry_time = match max_age {
            Some(seconds) if seconds <= 0 => Some(i64::MIN),
            Some(seconds) => Some(now + seconds.min(400 * 86_400)),
            None => expires,
        };
        let mut domain = last("domain").find(|value| !value.is_empty()).cloned().unwrap_or_default().to_lowercase();
        if domain.starts_with('.') {
            domain.remove(0);
        }
        let single = !domain.contains('.') && domain != "localhost";
        if !domain.is_empty() && (single || is_ip(url.host())) {
            if domain != url.host() {
                return false;
            }
            domain.clear();
        }
        let host_only = domain.is_empty();
        if host_only {
            domain = url.host().to_owned();
        } else if !domain_match(url.host(), &domain) {
            return false;
        }
        let path_attribute = last("path").next().filter(|path| path.starts_with('/'));
        let path = path_attribute.cloned().unwrap_or_else(|| default_path(url.path()));
        let secure_only = last("secure").next().is_some();
        let hides_secure = |cookie: &ListedCookie| {
            cookie.secure_only
                && cookie.name == name
                && (domain_match(&domain, &cookie.domain) || domain_match(&cookie.domain, &domain))
                && path_match(&path, &cookie.path)
        };
        if !is_secure(url) && (secure_only || self.cookies.iter().any(hides_secure)) {
            return false;
        }
        let folded = name.to_lowercase();
        if folded.starts_with("__secure-") && !secure_only {
            return false;
        }
        let is_root = path_attribute.is_some_and(|path| path == "/");
        if folded.starts_with("__host-") && !(secure_only && host_only && is_root) {
            return false;
        }

        let same = |cookie: &ListedCookie| {
            cookie.name == name && cookie.domain == domain && cookie.path == path && cookie.host_only == host_only
        };
        let old = self.cookies.iter().position(same).map(|index| self.cookies.remove(index));
        self.creations += 1;
        let creation = old.map_or(self.creations, |old| old.creation);
        let last_access = now;
        self.cookies.push(ListedCookie {
            name,
            value,
            expiry_time,
            domain,
            path,
            creation,
            last_access,
            host_only,
            secure_only,
        });
        self.evict(now);
        true
    }

    fn evict(&mut self, now: i64) {
        let newest_domain = self.cookies.last().expect("the new one").domain.clone();
        self.cookies.retain(|cookie| cookie.expiry_time.is_none_or(|at| at > now));
        let in_domain = self.cookies.iter().filter(|cookie| cookie.domain == newest_domain).count();
        if in_domain > MAX_COOKIES_PER_DOMAIN || self.cookies.len() > MAX_COOKIES {
            let candidates = self.cookies.iter().filter(|cookie| cookie.domain == newest_domain);
            let oldest = candidates.min_by_key(|cookie| (cookie.last_access, cookie.creation)).expect("some").creation;
            self.cookies.retain(|cookie| cookie.creation != oldest);
        }
    }

    /// Section 5.4.
    pub(super) fn header(&mut self, url: &HttpUrl, now: i64) -> String {
        self.cookies.retain(|cookie| cookie.expiry_time.is_none_or(|at| at > now));
        let mut list: Vec<&mut ListedCookie> = self
            .cookies
            .iter_mut()
            .filter(|cookie| match cookie.host_only {
                true => cookie.domain == url.host(),
                false => domain_match(url.host(), &cookie.domain),
            })
            .filter(|cookie| path_match(url.path(), &cookie.path))
            .filter(|cookie| !cookie.secure_only || is_secure(url))
            .collect();
        list.sort_by_key(|cookie| (std::cmp::Reverse(cookie.path.len()), cookie.creation));
        let pairs: Vec<String> = list
            .into_iter()
            .map(|cookie| {
                cookie.last_access = now;
                format!("{}={}", cookie.name, cookie.value)
            })
            .collect();
        pairs.join("; ")
    }

    pub(super) fn len(&self) -> usize {
        self.cookies.len()
    }
}
