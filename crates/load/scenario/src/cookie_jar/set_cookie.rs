//! Set-Cookie fields (RFC 6265, section 5.2).

use super::cookie_date;
use super::rejection::CookieRejection;

/// Bytes of name and value together, at most.
const MAX_COOKIE_BYTES: usize = 4_096;

/// Bytes of an attribute's value, at most; longer attributes are ignored.
const MAX_ATTRIBUTE_BYTES: usize = 1_024;

/// Requests from other sites that carry a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SameSite {
    /// None.
    Strict,
    /// Navigations.
    Lax,
    /// All.
    None,
}

/// Parsed Set-Cookie field. Of attributes that occur several times, the last valid one holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetCookie<'f> {
    /// Name, not empty.
    pub name: &'f [u8],
    /// Value, with its quotes if it has some.
    pub value: &'f [u8],
    /// Expires, in seconds since 1970.
    pub expires_s: Option<i64>,
    /// Max-Age in seconds, which precedes Expires; 0 and less expire the cookie.
    pub max_age_s: Option<i64>,
    /// Domain without a leading dot, in any case; may be empty.
    pub domain: Option<&'f [u8]>,
    /// Path, beginning with `/`.
    pub path: Option<&'f [u8]>,
    /// Secure.
    pub is_secure: bool,
    /// HttpOnly.
    pub is_http_only: bool,
    /// SameSite, if its value is known.
    pub same_site: Option<SameSite>,
}

impl<'f> SetCookie<'f> {
    /// Parses the value of a Set-Cookie field.
    ///
    /// # Errors
    /// If the field has no cookie that a client may keep.
    pub fn parse(field: &'f [u8]) -> Result<Self, CookieRejection> {
        if field.iter().any(|b| b.is_ascii_control() && *b != b'\t') {
            return Err(CookieRejection::ControlCharacter);
        }
        let mut parts = field.split(|b| *b == b';');
        let pair = parts.next().unwrap_or_default();
        let (name, value) = split_pair(pair).ok_or(CookieRejection::NoName)?;
        if name.is_empty() {
            return Err(CookieRejection::NoName);
        }
        // A tab would break a line of a cookie file.
        if name.contains(&b'\t') || value.contains(&b'\t') {
            return Err(CookieRejection::ControlCharacter);
        }
        if name.len() + value.len() > MAX_COOKIE_BYTES {
            return Err(CookieRejection::TooLong);
        }
        let mut cookie = Self {
            name,
            value,
            expires_s: None,
            max_age_s: None,
            domain: None,
            path: None,
            is_secure: false,
            is_http_only: false,
            same_site: None,
        };
        for attribute in parts {
            cookie.read_attribute(attribute);
        }
        Ok(cookie)
    }

    fn read_attribute(&mut self, attribute: &'f [u8]) {
        let (name, value) = split_pair(attribute).unwrap_or((trimmed(attribute), b""));
        if value.len() > MAX_ATTRIBUTE_BYTES {
            return;
        }
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if is(b"Expires") {
            self.expires_s = cookie_date::parse(value).or(self.expires_s);
        } else if is(b"Max-Age") {
            self.max_age_s = parse_max_age(value).or(self.max_age_s);
        } else if is(b"Domain") && !value.is_empty() {
            self.domain = Some(value.strip_prefix(b".").unwrap_or(value));
        } else if is(b"Path") {
            self.path = Some(value).filter(|path| path.starts_with(b"/"));
        } else if is(b"Secure") {
            self.is_secure = true;
        } else if is(b"HttpOnly") {
            self.is_http_only = true;
        } else if is(b"SameSite") {
            let known = [(&b"Strict"[..], SameSite::Strict), (b"Lax", SameSite::Lax), (b"None", SameSite::None)];
            let found = known.into_iter().find(|(word, _)| value.eq_ignore_ascii_case(word));
            self.same_site = found.map(|(_, same_site)| same_site);
        }
    }
}

/// Name and value around the first `=`, without spaces around them.
fn split_pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = text.iter().position(|b| *b == b'=')?;
    Some((trimmed(&text[..equals]), trimmed(&text[equals + 1..])))
}

/// Text without spaces and tabs around it.
fn trimmed(text: &[u8]) -> &[u8] {
    let is_text = |b: &u8| !b" \t".contains(b);
    match (text.iter().position(is_text), text.iter().rposition(is_text)) {
        (Some(first), Some(last)) => &text[first..=last],
        _ => b"",
    }
}

/// Parses digits, maybe after a minus; more seconds than i64 holds are as many as it holds.
fn parse_max_age(value: &[u8]) -> Option<i64> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds =
        digits.iter().fold(0_i64, |seconds, digit| seconds.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    Some(if digits.len() < value.len() { -seconds } else { seconds })
}
