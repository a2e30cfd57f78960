//! What is left out of all that is written: reports, samples, saved runs, commands, logs and errors.
//!
//! A secret is known by its name ([`secret_names`](super::secret_names), and names that the user gives), or by its value
//! once a name has shown it: a service may send a password back without its name.

use std::borrow::Cow;
use std::cmp::Reverse;

use super::secret_fields::secret_places;
use super::secret_names::is_secret_name;

/// What stands for a secret.
pub const MASK: &str = "***";

/// Shortest value that is left out wherever it is found, in characters: a PIN of two digits is in each time of a report.
const MIN_VALUE_CHARS: usize = 3;

/// Values that say that there is no secret.
const NO_SECRETS: [&str; 6] = ["true", "false", "null", "none", "undefined", MASK];

/// Schemes of an Authorization header, before its secret.
const SCHEMES: [&str; 6] = ["bearer", "basic", "token", "apikey", "digest", "key"];

/// Secrets by their names and values, and texts without them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretMask {
    names: Vec<String>,
    /// The longest first: a secret that contains another one is replaced as a whole.
    values: Vec<String>,
    is_off: bool,
}

impl SecretMask {
    /// Mask of all that has a secret name, or one of these names.
    pub fn new(names: &[String]) -> Self {
        let names = names.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
        Self { names, ..Self::default() }
    }

    /// Mask without effect, for output that may have secrets.
    pub fn off() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    /// Whether the value of a header, field, parameter or variable of this name is a secret.
    pub fn is_secret(&self, name: &str) -> bool {
        is_secret_name(name) || self.names.iter().any(|given| given.eq_ignore_ascii_case(name.trim()))
    }

    /// Takes note of a value that no text shows, in all forms in which it is sent.
    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        let mut forms = vec![value.to_owned()];
        if let Some((scheme, secret)) = value.split_once(' ')
            && SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme))
        {
            forms.push(secret.trim().to_owned());
        }
        if let Some((_, password)) =
            value.split_once(':').filter(|(user, after)| !user.contains([' ', '{', '"']) && !after.starts_with("//"))
        {
            forms.push(password.to_owned());
        }
        for form in forms {
            for other in [percent_encoded(&form, "%20"), percent_encoded(&form, "+"), json_escaped(&form), form] {
                self.add_form(other);
            }
        }
        self.values.sort_by_key(|value| Reverse(value.len()));
    }

    fn add_form(&mut self, value: String) {
        let is_secret = value.chars().count() >= MIN_VALUE_CHARS
            && !NO_SECRETS.iter().any(|none| none.eq_ignore_ascii_case(&value))
            && !value.starts_with("{{");
        if is_secret && !self.values.contains(&value) {
            self.values.push(value);
        }
    }

    /// Both masks as one; without effect if one of them is.
    pub fn joined(mut self, other: &Self) -> Self {
        self.names.extend(other.names.iter().cloned());
        self.is_off |= other.is_off;
        self.with_values(&other.values)
    }

    /// Takes note of several values.
    pub fn with_values(mut self, values: &[String]) -> Self {
        values.iter().for_each(|value| self.add(value));
        self
    }

    /// Takes note of a value if its name is that of a secret.
    pub fn add_named(&mut self, name: &str, value: &str) {
        if self.is_secret(name) {
            self.add(value);
        }
    }

    /// Takes note of the values that a text has under secret names: those of a request, a body or a URL.
    pub fn add_fields(&mut self, text: &str) {
        for place in secret_places(text, &|name| self.is_secret(name)) {
            let value = text[place].to_owned();
            self.add(&percent_decoded(&value));
            self.add(&value);
        }
    }

    /// Values that a text has under secret names, as they are written.
    pub fn values_of<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'t> {
        secret_places(text, &|name| self.is_secret(name)).into_iter().map(|place| &text[place])
    }

    /// Takes note of the secrets of a head of HTTP/1.1; each cookie counts.
    pub fn add_head(&mut self, head: &str) {
        let (line, fields) = head.split_once('\n').unwrap_or((head, ""));
        self.add_fields(line);
        for (name, value) in fields.lines().filter_map(|line| line.split_once(':')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "cookie" => value.split(';').filter_map(|pair| pair.split_once('=')).for_each(|(_, it)| self.add(it)),
                // Path, domain and times may be shown.
                "set-cookie" => {
                    let first = value.split(';').next().and_then(|pair| pair.split_once('='));
                    first.into_iter().for_each(|(_, it)| self.add(it));
                }
                name if self.is_secret(name) => self.add(value),
                _ => self.add_fields(value),
            }
        }
    }

    /// The text without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.is_off {
            return Cow::Borrowed(text);
        }
        let places = secret_places(text, &|name| self.is_secret(name));
        let mut shown = Cow::Borrowed(text);
        // A template shows where a value comes from, and no value.
        let mut places = places.into_iter().filter(|place| !is_template(&text[place.clone()])).peekable();
        if places.peek().is_some() {
            let mut parts = String::with_capacity(text.len());
            let mut end = 0;
            for place in places {
                parts.extend([&text[end..place.start], MASK]);
                end = place.end;
            }
            parts.push_str(&text[end..]);
            shown = Cow::Owned(parts);
        }
        for value in &self.values {
            if shown.contains(value.as_str()) {
                shown = Cow::Owned(shown.replace(value.as_str(), MASK));
            }
        }
        shown
    }

    /// The same text as an owned one.
    pub fn shown(&self, text: &str) -> String {
        self.text(text).into_owned()
    }

    /// Value of a header.
    pub fn header(&self, name: &str, value: &str) -> String {
        if !self.is_off && self.is_secret(name) { MASK.to_owned() } else { self.shown(value) }
    }

    /// Head of HTTP/1.1 without secrets, its lines ended by `\n`.
    pub fn head(&self, head: &str) -> String {
        let mut shown = String::with_capacity(head.len());
        for (index, line) in head.trim_end().lines().enumerate() {
            match line.split_once(':').filter(|_| index > 0) {
                Some((name, value)) => shown.extend([name, ": ", &self.header(name, value.trim())]),
                None => shown.push_str(&self.text(line)),
            }
            shown.push('\n');
        }
        shown
    }

    /// Command line in which no argument shows a secret, in whatever notation it is given.
    pub fn command(&self, args: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
        args.into_iter().map(|arg| self.shown(arg.as_ref())).collect()
    }
}

/// Text of a user without what has a secret name, and without user and password of URLs, for an error.
pub fn without_secrets(text: &str) -> String {
    SecretMask::default().shown(text)
}

/// Scheme, host and path of a URL, as a label: without user, query and fragment, so that a value of a parameter neither is
/// shown nor makes a series of its own.
pub fn url_label(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = path.split_once("://") else { return path.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// A header line as an error shows it: without the value if that may be a secret, as in a line without a colon.
pub fn shown_header(line: &str) -> String {
    if let Some((name, value)) = line.split_once(':').filter(|(name, _)| !is_secret_name(name)) {
        return format!("{name}:{}", without_secrets(value));
    }
    let name = line.split([':', ' ', '\t', '=']).next().unwrap_or_default();
    if name.len() < line.trim_end().len() { format!("{name} {MASK}") } else { name.to_owned() }
}

/// `NAME=VALUE` as an error shows it: what is before the equals sign, if there is one.
pub fn shown_pair(pair: &str) -> String {
    pair.split_once('=').map_or_else(|| MASK.to_owned(), |(name, _)| format!("{name}={MASK}"))
}

fn is_template(value: &str) -> bool {
    let value = value.trim();
    let has_scheme = |first: &str| SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(first));
    let value = value.split_once(' ').filter(|(first, _)| has_scheme(first)).map_or(value, |(_, rest)| rest);
    value.starts_with("{{") && value.ends_with("}}")
}

fn percent_encoded(text: &str, space: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => encoded.push_str(space),
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn percent_decoded(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes().peekable();
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        match (byte, digit(ahead.next().as_ref()), digit(ahead.next().as_ref())) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(u8::try_from(high * 16 + low).unwrap_or(byte));
                bytes = ahead;
            }
            (b'+', ..) => decoded.push(b' '),
            _ => decoded.push(byte),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn json_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            '\r' => escaped.push_str("\\r"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_left_out() {
        let mut mask = SecretMask::new(&["X-Tenant".to_owned(), "pass'word".to_owned()]);
        assert!(mask.is_secret("authorization") && mask.is_secret(" x-tenant ") && !mask.is_secret("X-Other"));
        assert_eq!((mask.header("x-tenant", "x"), mask.header("X-Id", "7")), (MASK.to_owned(), "7".to_owned()));
        mask.add_fields(r#"{"a": [{"pass'word": "on\"e"}, {"pass'word": 22}], "X-Tenant": "none"}"#);
        mask.add_named("token", "a b&c");
        mask.add_named("page", "seven");
        mask.add("Bearer abc.def");
        mask.add("me:pass:word");
        for text in ["on\\\"e", "a b&c", "a%20b%26c", "a+b%26c", "abc.def", "pass:word", "me:pass:word"] {
            assert_eq!(mask.text(&format!("x {text} y")), "x *** y", "{text}");
        }
        assert_eq!(mask.text("seven, none, 22"), "seven, none, 22");
        assert_eq!(mask.text("http://h/?x-tenant=S&page=1"), "http://h/?x-tenant=***&page=1");
        assert_eq!(SecretMask::off().text("token=S"), "token=S");
    }

    #[test]
    fn a_head_shows_which_headers_it_has() {
        let mut mask = SecretMask::default();
        mask.add_head("GET /?sid=query-1 HTTP/1.1\r\nCookie: a=cookie-1; b=cookie-2\r\nAccept: */*\r\n\r\n");
        let head = "HTTP/1.1 302 Found\r\nSet-Cookie: a=1\r\nLocation: /?b=cookie-2&c=query-1&token=x\r\n\r\n";
        assert_eq!(mask.head(head), "HTTP/1.1 302 Found\nSet-Cookie: ***\nLocation: /?b=***&c=***&token=***\n");
        assert_eq!(mask.text("cookie-1"), MASK);
        assert_eq!(mask.text("-H 'Authorization: Bearer {{token}}'"), "-H 'Authorization: Bearer {{token}}'");
    }

    #[test]
    fn labels_and_errors_have_no_values() {
        assert_eq!(url_label("http://me:pw@h:1/a?token=1#x"), "http://h:1/a");
        assert_eq!((url_label("/a/b?c"), url_label("http://h")), ("/a/b".to_owned(), "http://h".to_owned()));
        assert_eq!(shown_header("Authorization SECRET"), "Authorization ***");
        assert_eq!((shown_pair("SECRET"), shown_pair("a=SECRET")), ("***".to_owned(), "a=***".to_owned()));
        assert_eq!(without_secrets("http://bob:SECRET@h:x/?key=S&a=1"), "http://***@h:x/?key=***&a=1");
    }
}
