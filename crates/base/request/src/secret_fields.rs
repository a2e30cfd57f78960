//! Places of secrets in a text, found by their names: members of JSON, parameters of URLs and forms, headers, cookies,
//! parts of a multipart body, elements of XML, and the user and password of a URL.
//!
//! The text is that of others, often cut or broken, and of no one grammar: a URL in a JSON text in a log line. So nothing
//! is parsed: what stands on both sides of `=`, `:` and `>` decides. One pass, linear in the length of the text.

use std::borrow::Cow;
use std::ops::Range;

use crate::secret_forms::{json_unescaped, percent_decoded};
use crate::secret_markup::{after_tag, announced_name, announced_value};
use crate::secret_values::{MAX_NAME_BYTES, quoted_value, skip_white};

/// Values of JSON without a secret, whatever their name is.
const NO_VALUES: [&str; 9] = ["null", "true", "false", "none", "undefined", "0", "1", "{}", "[]"];

/// Place of a secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretPlace {
    pub(crate) value: Range<usize>,
    /// Where the quotation mark is, with its backslashes, that what stands for the value needs, for JSON to remain JSON;
    /// empty for most.
    pub(crate) quote: Range<usize>,
}

/// Places of the values of secrets, in order and without overlap; `is_secret` says which names are those of secrets.
pub(crate) fn secret_places(text: &str, is_secret: &dyn Fn(&str) -> bool) -> Vec<SecretPlace> {
    let bytes = text.as_bytes();
    let mut places: Vec<SecretPlace> = Vec::new();
    let mut at = 0;
    let is_sign = |byte: &u8| matches!(byte, b'=' | b':' | b'>' | b'%' | b'@' | b',');
    while let Some(offset) = bytes[at..].iter().position(is_sign) {
        let sign = at + offset;
        at = sign + 1;
        let end = places.last().map_or(0, |place| place.value.end);
        let place = match bytes[sign] {
            b'=' => after_equals(text, sign, sign + 1, is_secret),
            b'%' if is_escape(bytes, sign, b"3D") => after_equals(text, sign, sign + 3, is_secret),
            b'%' if is_escape(bytes, sign, b"40") => before_encoded_at(bytes, sign, end),
            b':' => after_colon(text, sign, is_secret),
            b'>' => after_tag(text, sign, is_secret),
            b',' => after_comma(text, sign, is_secret),
            b'@' => before_at(bytes, sign, end),
            _ => None,
        };
        let Some(value) = place.filter(|place| !place.is_empty()) else { continue };
        let quote = if bytes[sign] == b':' { quote_of_bare(text, sign, &value) } else { 0..0 };
        if quote.is_empty() || !NO_VALUES.iter().any(|none| none.eq_ignore_ascii_case(&text[value.clone()])) {
            at = at.max(value.end);
            places.push(SecretPlace { value, quote });
        }
    }
    places
}

/// Whether `%XX` with these digits stands here.
fn is_escape(bytes: &[u8], at: usize, digits: &[u8; 2]) -> bool {
    bytes.get(at + 1..at + 3).is_some_and(|found| found.eq_ignore_ascii_case(digits))
}

/// Value of `name=value`, `name = "value"`, and of a field that a quoted name announces: `name="password"`.
fn after_equals(text: &str, sign: usize, after: usize, is_secret: &dyn Fn(&str) -> bool) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    // `name*=UTF-8''password` of a multipart body.
    let is_extended = sign > 0 && bytes[sign - 1] == b'*';
    let name = name_before(text, if is_extended { sign - 1 } else { sign })?;
    // `$a["key"] == "x"` and `a >= b` compare.
    let start = skip_blanks(bytes, if bytes.get(after) == Some(&b'=') { after + 1 } else { after });
    if is_secret(&name.text) {
        return Some(quoted_value(bytes, start).unwrap_or_else(|| start..end_of_parameter(bytes, start)));
    }
    let is_form_name = matches!(&*name.text, "name" | "id");
    let announced = announced_name(text, name.start, start).filter(|_| is_form_name)?;
    if is_secret(text.get(announced.clone())?) { announced_value(text, announced.end) } else { None }
}

/// Value of a member, `"name": value`, of a header, and what follows the scheme of a URL.
fn after_colon(text: &str, sign: usize, is_secret: &dyn Fn(&str) -> bool) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let name = name_before(text, sign)?;
    let start = skip_white(bytes, sign + 1);
    // `'--token <TOKEN>': reason` of an error names a flag.
    if name.text.contains('<') || !is_secret(&name.text) {
        return match &*name.text {
            _ if !name.is_quoted => None,
            name if is_pair_name(name) => after_named_pair(text, start, is_secret),
            name if is_pair_value(name) => before_named_pair(text, start, is_secret),
            _ => None,
        };
    }
    if name.is_quoted {
        return Some(quoted_value(bytes, start).unwrap_or_else(|| start..end_of_json(bytes, start)));
    }
    // Members of objects whose names have no quotes.
    match bytes[..name.start].iter().rposition(|byte| !byte.is_ascii_whitespace()).map(|before| bytes[before]) {
        Some(b'{') => {
            return Some(quoted_value(bytes, start).unwrap_or_else(|| start..end_of_json(bytes, start)));
        }
        Some(b',') => {
            if let Some(value) = quoted_value(bytes, start) {
                return Some(value);
            }
        }
        _ => {}
    }
    // Words before a colon are mostly prose: `the key: not found`. Headers begin a line or a quotation, or are compound.
    let is_flag = name.text.starts_with("--");
    let begins = name.start > 0 && matches!(bytes[name.start - 1], b'\n' | b'\r' | b'"' | b'\'' | b'`');
    let is_alone = name.start == 0 && is_one_word(text[sign + 1..].lines().next().unwrap_or_default());
    let is_compound = name.text.trim_matches('-').contains('-');
    let is_credential = super::secret_names::CREDENTIAL_HEADERS.iter().any(|it| it.eq_ignore_ascii_case(&name.text));
    if is_flag || !(begins || is_alone || is_compound || is_credential) {
        return None;
    }
    let start = skip_blanks(bytes, sign + 1);
    let quote =
        name.start.checked_sub(1).map(|before| bytes[before]).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r') || quote == Some(*byte);
    Some(start..bytes[start..].iter().position(is_end).map_or(bytes.len(), |length| start + length))
}

fn is_one_word(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// Value of a pair whose name is the text that begins here: `"name": "password", "value": "S"`.
fn after_named_pair(text: &str, start: usize, is_secret: &dyn Fn(&str) -> bool) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let name = quoted_value(&bytes[..bytes.len().min(start + 2 * MAX_NAME_BYTES)], start)?;
    if name.len() > MAX_NAME_BYTES || !is_secret(&json_unescaped(text.get(name.clone())?)) {
        return None;
    }
    let comma = skip_white(bytes, skip_quote(bytes, name.end));
    let second = quoted_value(bytes, skip_white(bytes, comma + 1)).filter(|_| bytes.get(comma) == Some(&b','))?;
    let colon = skip_white(bytes, skip_quote(bytes, second.end));
    let is_value = text.get(second).is_some_and(is_pair_value);
    if !is_value || bytes.get(colon) != Some(&b':') {
        return None;
    }
    let start = skip_white(bytes, colon + 1);
    Some(quoted_value(bytes, start).unwrap_or_else(|| start..end_of_json(bytes, start)))
}

/// Value that begins here, of a pair whose name follows: `"value": "S", "name": "password"`.
fn before_named_pair(text: &str, start: usize, is_secret: &dyn Fn(&str) -> bool) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_bare = |byte: &&u8| !matches!(byte, b'{' | b'[' | b'"' | b'\'' | b'\\');
    let (value, after) = match quoted_value(bytes, start) {
        Some(value) => (value.clone(), skip_quote(bytes, value.end)),
        None => {
            let end = bytes.get(start).filter(is_bare).map(|_| end_of_json(bytes, start))?;
            (start..end, end)
        }
    };
    let comma = skip_white(bytes, after);
    let near = &bytes[..bytes.len().min(comma + 4 * MAX_NAME_BYTES)];
    let name = quoted_value(near, skip_white(near, comma + 1)).filter(|_| near.get(comma) == Some(&b','))?;
    let colon = skip_white(near, skip_quote(near, name.end));
    if !text.get(name).is_some_and(is_pair_name) || near.get(colon) != Some(&b':') {
        return None;
    }
    let secret = quoted_value(near, skip_white(near, colon + 1)).filter(|secret| secret.len() <= MAX_NAME_BYTES)?;
    is_secret(&json_unescaped(text.get(secret)?)).then_some(value)
}

fn is_pair_name(name: &str) -> bool {
    matches!(name, "name" | "key" | "id" | "field")
}

fn is_pair_value(name: &str) -> bool {
    matches!(name, "value" | "val" | "content" | "text")
}

/// Value of a pair without names: `["password", "S"]`.
fn after_comma(text: &str, sign: usize, is_secret: &dyn Fn(&str) -> bool) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    // Most commas follow something else.
    let last = sign.checked_sub(1).map(|last| bytes[last]);
    let name = name_before(text, sign).filter(|_| matches!(last, Some(b'"' | b'\'')))?;
    let quote = name.start - 1;
    let quote = quote - bytes[..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
    let before = bytes[..quote].iter().rposition(|byte| !byte.is_ascii_whitespace())?;
    // Two lines of headers are not a pair.
    let is_name = !name.text.contains(':') && is_secret(&name.text);
    if !matches!(bytes[before], b'[' | b'(') || !is_name {
        return None;
    }
    let value = quoted_value(bytes, skip_white(bytes, sign + 1))?;
    let after = skip_white(bytes, skip_quote(bytes, value.end));
    bytes.get(after).is_none_or(|byte| matches!(byte, b']' | b')')).then_some(value)
}

/// Place of the quotation mark of a name before a colon, if its value has none: a number, a word, an object.
fn quote_of_bare(text: &str, sign: usize, value: &Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let end = text[..sign].trim_end_matches([' ', '\t']).len();
    let is_quote = |at: usize| matches!(bytes[at], b'"' | b'\'');
    if end == 0 || !is_quote(end - 1) || is_quote(value.start - 1) {
        return 0..0;
    }
    let slashes = bytes[..end - 1].iter().rev().take_while(|byte| **byte == b'\\').count();
    end - 1 - slashes..end
}

/// User and password of a URL in a parameter: `http%3A%2F%2Fuser%3Apassword%40`.
fn before_encoded_at(bytes: &[u8], sign: usize, from: usize) -> Option<Range<usize>> {
    let from = from.max(sign.saturating_sub(MAX_NAME_BYTES));
    let before = &bytes[from..sign];
    let scheme = before.windows(9).rposition(|part| part.eq_ignore_ascii_case(b"%3A%2F%2F"))? + 9;
    let userinfo = &before[scheme..];
    let is_break =
        |byte: &u8| !byte.is_ascii_graphic() || matches!(byte, b'/' | b'&' | b'=' | b'"' | b'\'' | b'<' | b'>');
    let is_path = userinfo.windows(3).any(|part| part.eq_ignore_ascii_case(b"%2F"));
    (!is_path && !userinfo.iter().any(is_break)).then_some(from + scheme..sign)
}

/// User and password of a URL: `//user:password@`, `user:password@`, also where the password has a character that it must
/// not have.
fn before_at(bytes: &[u8], sign: usize, from: usize) -> Option<Range<usize>> {
    let from = from.max(sign.saturating_sub(MAX_NAME_BYTES));
    let is_break = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\');
    let start = bytes[from..sign].iter().rposition(is_break).map_or(from, |at| from + at + 1);
    let token = &bytes[start..sign];
    let (start, has_scheme) = match token.windows(3).position(|part| part == b"://") {
        Some(scheme) => (start + scheme + 3, true),
        None => (start, false),
    };
    let userinfo = &bytes[start..sign];
    let colon = userinfo.iter().position(|byte| *byte == b':');
    let path = userinfo.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    let is_port = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let is_userinfo = match (colon, path) {
        (_, None) => has_scheme || colon.is_some_and(|colon| colon > 0 && colon + 1 < userinfo.len()),
        // What looks like a port ends a host: `http://host:80/a@b`.
        (Some(colon), Some(path)) => has_scheme && colon < path && !is_port(&userinfo[colon + 1..path]),
        (None, Some(_)) => false,
    };
    is_userinfo.then_some(start..sign)
}

/// Name before a sign, as it is meant.
struct FieldName<'t> {
    text: Cow<'t, str>,
    start: usize,
    is_quoted: bool,
}

/// Name that ends at `end`, but for blanks, with or without quotes; those of JSON in JSON are escaped.
fn name_before(text: &str, end: usize) -> Option<FieldName<'_>> {
    let bytes = text.as_bytes();
    let end =
        end - bytes[..end].iter().rev().take(MAX_NAME_BYTES).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let quote = end.checked_sub(1).map(|last| bytes[last]).filter(|byte| matches!(byte, b'"' | b'\''));
    if let Some(quote) = quote {
        let slashes = bytes[..end - 1].iter().rev().take_while(|byte| **byte == b'\\').count();
        let end = end - 1 - slashes;
        let from = end.saturating_sub(MAX_NAME_BYTES);
        let start = from + bytes[from..end].iter().rposition(|byte| *byte == quote)? + 1;
        return Some(FieldName { text: json_unescaped(text.get(start..end)?), start, is_quoted: true });
    }
    let (mut start, mut is_escaped) = (end, false);
    while end - start < MAX_NAME_BYTES {
        start -= bytes[..start].iter().rev().take(MAX_NAME_BYTES).take_while(|byte| is_name_byte(**byte)).count();
        let escaped = text.get(start..(start + 2).min(end)).filter(|_| start > 0 && bytes[start - 1] == b'%');
        let digits = escaped.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else { break };
        // After another escape, as in `%26token%3D`: its digits are not the name's.
        if !is_name_byte(byte) {
            start += 2;
            break;
        }
        (start, is_escaped) = (start - 1, true);
    }
    let name = text.get(start..end).filter(|name| !name.is_empty())?;
    let name = if is_escaped { Cow::Owned(percent_decoded(name)) } else { Cow::Borrowed(name) };
    Some(FieldName { text: name, start, is_quoted: false })
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']' | b'$') || !byte.is_ascii()
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// End of the quotation mark, with its backslashes, that ends a quoted text here.
fn skip_quote(bytes: &[u8], at: usize) -> usize {
    let slashes = bytes[at.min(bytes.len())..].iter().take_while(|byte| **byte == b'\\').count();
    (at + slashes + 1).min(bytes.len())
}

/// End of a value without quotes, of a query or a form.
fn end_of_parameter(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start..];
    let is_end = |at: &usize| match rest[*at] {
        b'&' | b';' | b'#' | b'"' | b'\'' | b'`' | b'<' | b'>' => true,
        b'%' => is_escape(rest, *at, b"26") || is_escape(rest, *at, b"23"),
        byte => byte.is_ascii_whitespace(),
    };
    (0..rest.len()).find(is_end).map_or(bytes.len(), |length| start + length)
}

/// End of a value of JSON without quotes: a number, a word, or all that brackets hold.
fn end_of_json(bytes: &[u8], start: usize) -> usize {
    let end = end_with_blanks(bytes, start);
    start + bytes[start..end].trim_ascii_end().len()
}

fn end_with_blanks(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in (start..).zip(&bytes[start..]) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return at + depth,
            b'}' | b']' => depth -= 1,
            b',' | b'\n' | b'\r' if depth == 0 => return at,
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests;
