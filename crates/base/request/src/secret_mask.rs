//! Secrets that are masked in all that is written: reports, samples, saved runs, commands, logs and errors.
//!
//! A secret is known by its name ([`secret_names`](super::secret_names), and names that the user gives), or by its
//! value once a name has shown it: a service may send a password back without its name.

use std::borrow::Cow;
use std::cmp::Reverse;

use crate::secret_fields::{SecretPlace, secret_places};
use crate::secret_forms::{json_escaped, percent_decoded, percent_encoded};
use crate::secret_names::is_secret_name;
use crate::url_text::UrlText;

/// Replacement of a secret in texts.
pub const MASK: &str = "***";

/// Shortest value that is left out wherever it is found as a whole word, in characters: a PIN of two digits is in each
/// time of a report.
const MIN_WORD_CHARS: usize = 3;
/// Shortest value that is left out also within words, in characters.
const MIN_VALUE_CHARS: usize = 8;

/// Longest header line without separators that an error shows, in characters.
const MAX_SHOWN_NAME_CHARS: usize = 20;

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

    /// Takes note of a value that no text shows, in all forms in which it is sent; a word counts, too.
    pub fn add(&mut self, value: &str) {
        self.add_form(value.trim().to_owned(), true);
        self.add_found(value);
    }

    /// Takes note of a value that a name has shown, unless it is likely elsewhere, too.
    fn add_found(&mut self, value: &str) {
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
                self.add_form(other, false);
            }
        }
        self.values.sort_by_key(|value| Reverse(value.len()));
    }

    fn add_form(&mut self, value: String, may_be_common: bool) {
        let is_found = is_searched_anywhere(&value)
            || value.chars().count() >= MIN_WORD_CHARS && (may_be_common || !is_common(&value));
        let is_secret =
            is_found && !NO_SECRETS.iter().any(|none| none.eq_ignore_ascii_case(&value)) && !value.starts_with("{{");
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

    /// Takes note of a cookie, hidden by its place in any case: a short one without a secret name is often a word.
    fn add_cookie(&mut self, pair: &str) {
        if let Some((name, value)) = pair.split_once('=')
            && (self.is_secret(name) || value.trim().chars().count() >= MIN_VALUE_CHARS)
        {
            self.add_found(value);
        }
    }

    /// Takes note of several values.
    pub fn with_values(mut self, values: &[String]) -> Self {
        values.iter().for_each(|value| self.add(value));
        self
    }

    /// Takes note of a value if its name is that of a secret.
    pub fn add_named(&mut self, name: &str, value: &str) {
        if self.is_secret(name) {
            self.add_found(value);
        }
    }

    /// Takes note of the values that a text has under secret names: those of a request, a body or a URL.
    pub fn add_fields(&mut self, text: &str) {
        for place in secret_places(text, &|name| self.is_secret(name)) {
            let value = text[place.value].to_owned();
            self.add_found(&percent_decoded(&value));
            self.add_found(&value);
        }
    }

    /// Values that a text has under secret names, as they are written.
    pub fn values_of<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'t> {
        secret_places(text, &|name| self.is_secret(name)).into_iter().map(|place| &text[place.value])
    }

    /// Takes note of the secrets of a head of HTTP/1.1; each cookie counts.
    pub fn add_head(&mut self, head: &str) {
        let (line, fields) = head.split_once('\n').unwrap_or((head, ""));
        self.add_fields(line);
        for (name, value) in fields.lines().filter_map(|line| line.split_once(':')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "cookie" => value.split(';').for_each(|pair| self.add_cookie(pair)),
                // Path, domain and times may be shown.
                "set-cookie" => value.split(';').take(1).for_each(|pair| self.add_cookie(pair)),
                name if self.is_secret(name) => self.add_found(value),
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
        let mut places = places.into_iter().filter(|place| !is_template(&text[place.value.clone()])).peekable();
        if places.peek().is_some() {
            let mut parts = String::with_capacity(text.len());
            let mut end = 0;
            for SecretPlace { value, quote } in places {
                let quote = &text[quote];
                parts.extend([&text[end..value.start], quote, MASK, quote]);
                end = value.end;
            }
            parts.push_str(&text[end..]);
            shown = Cow::Owned(parts);
        }
        for value in &self.values {
            if let Some(replaced) = without_value(&shown, value) {
                shown = Cow::Owned(replaced);
            }
        }
        shown
    }

    /// Masked text, owned.
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
        let mut is_of_secret = false;
        let mut shown = |arg: &str| {
            let is_value =
                is_of_secret && !self.is_off && !arg.is_empty() && !arg.starts_with('-') && !arg.contains('=');
            is_of_secret = arg.strip_prefix("--").is_some_and(|flag| self.is_secret(flag));
            if is_value && !is_template(arg) { MASK.to_owned() } else { self.shown(arg) }
        };
        args.into_iter().map(|arg| shown(arg.as_ref())).collect()
    }
}

/// Text of a user without what has a secret name, and without user and password of URLs, for an error.
pub fn without_secrets(text: &str) -> String {
    SecretMask::default().shown(text)
}

/// Scheme, host and path of a URL, as a label: without user, query and fragment, so that a value of a parameter neither
/// is shown nor makes a series of its own.
pub fn url_label(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let text = UrlText::of(url);
    let Some(scheme) = text.scheme else { return url.to_owned() };
    format!("{scheme}://{}{}", text.host(), text.after_authority)
}

/// A header line as an error shows it, where any part may be a secret: its first word, if that may be a name.
pub fn shown_header(line: &str) -> String {
    let line = line.trim();
    match line.find(|c: char| c.is_whitespace() || matches!(c, ':' | ';' | '/' | '=')) {
        Some(end) => format!("{} {MASK}", &line[..end]),
        None if line.chars().count() > MAX_SHOWN_NAME_CHARS => MASK.to_owned(),
        None => line.to_owned(),
    }
}

/// `NAME=VALUE` as an error shows it: what is before the equals sign, if there is one.
pub fn shown_pair(pair: &str) -> String {
    pair.split_once('=').map_or_else(|| MASK.to_owned(), |(name, _)| format!("{name}={MASK}"))
}

/// Whether a value is left out also within words: one of many characters, or a user with a password, as in `-qame:pw`.
fn is_searched_anywhere(value: &str) -> bool {
    let is_word = |text: &str| text.chars().any(char::is_alphabetic);
    value.chars().count() >= MIN_VALUE_CHARS
        || value.split_once(':').is_some_and(|(user, password)| is_word(user) && is_word(password))
}

/// Whether a short value is likely elsewhere, too: a word, a small number, punctuation.
fn is_common(value: &str) -> bool {
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let is_word = value.chars().all(char::is_alphabetic);
    // Capitals within a word make it no word.
    let is_mixed = value.chars().zip(value.chars().skip(1)).any(|(c, next)| c.is_lowercase() && next.is_uppercase());
    is_word && !is_mixed || digits <= 4 && !value.chars().any(char::is_alphabetic)
}

/// The text without a value, if it is there; a short one is left out as a whole word alone.
fn without_value(text: &str, value: &str) -> Option<String> {
    if is_searched_anywhere(value) {
        return text.contains(value).then(|| text.replace(value, MASK));
    }
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut shown: Option<String> = None;
    let mut end = 0;
    for (at, _) in text.match_indices(value) {
        let after = at + value.len();
        if !text[..at].ends_with(is_of_word) && !text[after..].starts_with(is_of_word) {
            shown.get_or_insert_default().extend([&text[end..at], MASK]);
            end = after;
        }
    }
    shown.map(|shown| shown + &text[end..])
}

fn is_template(value: &str) -> bool {
    let value = value.trim();
    let has_scheme = |first: &str| SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(first));
    let value = value.split_once(' ').filter(|(first, _)| has_scheme(first)).map_or(value, |(_, rest)| rest);
    value.starts_with("{{") && value.ends_with("}}")
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
        assert_eq!(mask.text("a b&cd a b&c, xa b&c"), "a b&cd ***, xa b&c");
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
    fn short_values_leave_words_and_numbers_as_they_are() {
        let mut mask = SecretMask::default();
        mask.add_fields("http://h/?token=http&key=8080");
        mask.add_fields(r#"{"password":"alice","api_key":"key","pin":1234,"tok":"EUR"}"#);
        mask.add_head(
            "GET / HTTP/1.1\nCookie: theme=dark; h=127; currency=EUR; v=a1b2; sid=k9x\nX-Key-Token: Bearer load",
        );
        for text in [
            r#"weir load http://127.0.0.1:8080/ {"status": 127, "name": "alice"} dark EUR a1b2 1234"#,
            "k9xy _k9x monk9x",
        ] {
            assert_eq!(mask.text(text), text);
        }
        assert_eq!(mask.text("is k9x, 'k9x'"), "is ***, '***'");
        assert_eq!(mask.text(r#"{"password":"alice","api_key":"key"}"#), r#"{"password":"***","api_key":"***"}"#);
        mask.add("me:pw");
        mask.add("aBcDe");
        mask.add("12345");
        assert_eq!(mask.command(["-qame:pw", "aBcDe", "12345", "x12345"]), ["-qa***", "***", "***", "x12345"]);
        assert_eq!(SecretMask::default().with_values(&["grace".to_owned()]).text("grace graces"), "*** graces");
        assert_eq!(mask.command(["--web-token", "test", "test"]), ["--web-token", "***", "test"]);
    }

    #[test]
    fn json_stays_json() {
        for (text, expected) in [
            (r#"{"token":null,"pin":0,"key":"", "otp": false }"#, r#"{"token":null,"pin":0,"key":"", "otp": false }"#),
            (r#"{"pin": 12, "a": 1}"#, r#"{"pin": "***", "a": 1}"#),
            (r#"{"pin": 12 }"#, r#"{"pin": "***" }"#),
            (r#"{"credentials":{"a":[1]},"secrets":{}}"#, r#"{"credentials":"***","secrets":{}}"#),
            (r#"{"a":"{\"pin\":12}"}"#, r#"{"a":"{\"pin\":\"***\"}"}"#),
            ("{'pin': 12, 'key': None}", "{'pin': '***', 'key': None}"),
        ] {
            assert_eq!(SecretMask::default().text(text), expected);
        }
    }

    #[test]
    fn labels_and_errors_have_no_values() {
        assert_eq!(url_label("http://me:pw@h:1/a?token=1#x"), "http://h:1/a");
        assert_eq!((url_label("/a/b?c"), url_label("http://h")), ("/a/b".to_owned(), "http://h".to_owned()));
        for (line, shown) in [
            ("Authorization SECRET", "Authorization ***"),
            ("X-Id;SECRET: a", "X-Id ***"),
            ("a/SECRET", "a ***"),
            ("Accept : text", "Accept ***"),
            ("Accept", "Accept"),
            ("0123456789abcdefghijk", "***"),
        ] {
            assert_eq!(shown_header(line), shown);
        }
        assert_eq!((shown_pair("SECRET"), shown_pair("a=SECRET")), ("***".to_owned(), "a=***".to_owned()));
        assert_eq!(without_secrets("http://bob:SECRET@h:x/?key=S&a=1"), "http://***@h:x/?key=***&a=1");
    }
}
