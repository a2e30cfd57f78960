//! Places of secrets in a text, found by their names: members of JSON, parameters of URLs and forms, headers, cookies,
//! parts of a multipart body, elements of XML, and the user and password of a URL.
//!
//! The text is that of others, often cut or broken, and of no one grammar: a URL in a JSON text in a log line. So nothing
//! is parsed: what stands on both sides of `=`, `:` and `>` decides. One pass, linear in the length of the text.

use std::ops::Range;

/// Longest name that is looked at, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Places of the values of secrets, in order and without overlap; `is_secret` says which names are those of secrets.
pub(crate) fn secret_places(text: &str, is_secret: &dyn Fn(&str) -> bool) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut places: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(|byte| matches!(byte, b'=' | b':' | b'>' | b'%' | b'@')) {
        let sign = at + offset;
        at = sign + 1;
        let place = match bytes[sign] {
            b'=' => after_equals(text, sign, sign + 1, is_secret),
            b'%' if is_escape(bytes, sign, b"3D") => after_equals(text, sign, sign + 3, is_secret),
            b':' => after_colon(text, sign, is_secret),
            b'>' => after_tag(text, sign, is_secret),
            b'@' => before_at(bytes, sign, places.last().map_or(0, |place| place.end)),
            _ => None,
        };
        if let Some(place) = place.filter(|place| !place.is_empty()) {
            at = at.max(place.end);
            places.push(place);
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
    let name = name_before(text, sign)?;
    // `$a["key"] == "x"` and `a >= b` compare.
    let start = skip_blanks(bytes, if bytes.get(after) == Some(&b'=') { after + 1 } else { after });
    if is_secret(name.text) {
        return Some(quoted_value(bytes, start).unwrap_or_else(|| start..end_of_parameter(bytes, start)));
    }
    let is_form_name = matches!(name.text, "name" | "id");
    let announced = quoted_value(bytes, start).filter(|_| is_form_name)?;
    if is_secret(text.get(announced.clone())?) { announced_value(text, announced.end) } else { None }
}

/// Value of a member, `"name": value`, of a header, and what follows the scheme of a URL.
fn after_colon(text: &str, sign: usize, is_secret: &dyn Fn(&str) -> bool) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let name = name_before(text, sign)?;
    if !is_secret(name.text) {
        return None;
    }
    if name.is_quoted {
        let start = skip_white(bytes, sign + 1);
        return Some(quoted_value(bytes, start).unwrap_or_else(|| start..end_of_json(bytes, start)));
    }
    // Words before a colon are mostly prose: `the key: not found`. Headers begin a line or a quotation, or are compound.
    let is_flag = name.text.starts_with("--");
    let begins = name.start == 0 || matches!(bytes[name.start - 1], b'\n' | b'\r' | b'"' | b'\'' | b'`');
    let is_compound = name.text.trim_matches('-').contains('-');
    let is_credential = super::secret_names::CREDENTIAL_HEADERS.iter().any(|it| it.eq_ignore_ascii_case(name.text));
    if is_flag || !(begins && name.start > 0 || is_compound || is_credential) {
        return None;
    }
    let start = skip_blanks(bytes, sign + 1);
    let quote =
        name.start.checked_sub(1).map(|before| bytes[before]).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r') || quote == Some(*byte);
    Some(start..bytes[start..].iter().position(is_end).map_or(bytes.len(), |length| start + length))
}

/// Text of an element: `<password>value<`.
fn after_tag(text: &str, sign: usize, is_secret: &dyn Fn(&str) -> bool) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let start = sign - bytes[..sign].iter().rev().take(MAX_NAME_BYTES).take_while(|byte| is_name_byte(**byte)).count();
    let is_open = start > 0 && matches!(bytes[start - 1], b'<' | b':');
    if !is_open || !is_secret(text.get(start..sign)?) {
        return None;
    }
    let end = bytes[sign + 1..].iter().position(|byte| *byte == b'<').map_or(bytes.len(), |length| sign + 1 + length);
    Some(sign + 1..end)
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

/// Value of the field that a quoted name has announced: of `value="..."` of the same tag, or the part of a form.
fn announced_value(text: &str, from: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let rest = &bytes[from..];
    if let Some(tag) = rest.iter().position(|byte| matches!(byte, b'>' | b'\n')).filter(|end| rest[*end] == b'>') {
        let value = rest[..tag].windows(6).position(|part| part.eq_ignore_ascii_case(b"value="))?;
        return quoted_value(bytes, from + value + 6);
    }
    let head = rest.windows(2).take(MAX_NAME_BYTES * 4).position(|part| part == b"\n\n");
    let head = head
        .map(|at| at + 2)
        .or_else(|| rest.windows(4).take(MAX_NAME_BYTES * 4).position(|part| part == b"\r\n\r\n").map(|at| at + 4))?;
    let start = from + head;
    let end = bytes[start..].windows(3).position(|part| part == b"\n--").map_or(bytes.len(), |length| start + length);
    Some(start..if end > start && bytes[end - 1] == b'\r' { end - 1 } else { end })
}

/// Name before a sign.
struct FieldName<'t> {
    text: &'t str,
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
        return Some(FieldName { text: text.get(start..end)?, start, is_quoted: true });
    }
    let length = bytes[..end].iter().rev().take(MAX_NAME_BYTES).take_while(|byte| is_name_byte(**byte)).count();
    let mut start = end - length;
    // After an escape, as in `%26token%3D`: its digits are not the name's.
    if start > 0 && bytes[start - 1] == b'%' && length > 2 {
        start += 2;
    }
    let name = text.get(start..end).filter(|name| !name.is_empty())?;
    Some(FieldName { text: name, start, is_quoted: false })
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']' | b'$') || !byte.is_ascii()
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn skip_white(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Content of a quoted text that begins here; one that is cut goes to the end.
fn quoted_value(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let slashes = bytes[at.min(bytes.len())..].iter().take_while(|byte| **byte == b'\\').count();
    let quote = *bytes.get(at + slashes).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let start = at + slashes + 1;
    let (mut end, mut escapes) = (start, 0);
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'\\' => escapes += 1,
            // JSON in JSON: the quotes have as many backslashes as the first one; more are within the text.
            byte if *byte == quote && (escapes == slashes || slashes == 0 && escapes % 2 == 0) => {
                return Some(start..end - escapes);
            }
            _ => escapes = 0,
        }
        if *byte == quote {
            escapes = 0;
        }
        end += 1;
    }
    Some(start..bytes.len())
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
mod tests {
    use proptest::prelude::*;

    use super::super::secret_names::is_secret_name;
    use super::*;

    fn shown(text: &str) -> String {
        let places = secret_places(text, &is_secret_name);
        let mut masked = text.to_owned();
        places.iter().rev().for_each(|place| masked.replace_range(place.clone(), "*"));
        masked
    }

    #[test]
    fn secrets_are_found_in_all_notations() {
        for (text, expected) in [
            ("http://h/a?token=S&x=1#api_key=S", "http://h/a?token=*&x=1#api_key=*"),
            ("http://h/?to=http%3A%2F%2Fi%2F%3Fsid%3DS%26x%3D1", "http://h/?to=http%3A%2F%2Fi%2F%3Fsid%3D*%26x%3D1"),
            ("http://bob:S@h:x/", "http://*@h:x/"),
            ("http://bob:S/T@h/", "http://*@h/"),
            ("http://S@h/a@b", "http://*@h/a@b"),
            ("'bob:S@h:1'", "'*@h:1'"),
            ("http://h:80/a:b@c", "http://h:80/a:b@c"),
            ("a@b.example", "a@b.example"),
            (r#"{"a": 1, "password" : "S\"T", "pin": 12, "b": 2}"#, r#"{"a": 1, "password" : "*", "pin": *, "b": 2}"#),
            (r#"{"credentials": {"a": ["S", "}"]}, "b": 2}"#, r#"{"credentials": *, "b": 2}"#),
            (r#"{"json": "{\"token\":\"S\",\"b\":1}"}"#, r#"{"json": "{\"token\":\"*\",\"b\":1}"}"#),
            (r#"{"token": "S"#, r#"{"token": "*"#),
            ("{'apiKey': 'S', 'b': None}", "{'apiKey': '*', 'b': None}"),
            ("X-Id: 1\r\nX-Auth-Token: S T\r\nB: 2", "X-Id: 1\r\nX-Auth-Token: *\r\nB: 2"),
            ("-H 'Authorization: Bearer S' -b 'key: S'", "-H 'Authorization: *' -b 'key: *'"),
            ("a=1; sid=S; b=2", "a=1; sid=*; b=2"),
            ("user=a&user[password]=S&b=2", "user=a&user[password]=*&b=2"),
            ("token = \"S\"", "token = \"*\""),
            ("<a><password>S</password><b>1</b></a>", "<a><password>*</password><b>1</b></a>"),
            (
                "<input name=\"csrf_token\" type=hidden value=\"S\">",
                "<input name=\"csrf_token\" type=hidden value=\"*\">",
            ),
            (
                "--x\r\nContent-Disposition: form-data; name=\"pwd\"\r\n\r\nS\r\n--x--",
                "--x\r\nContent-Disposition: form-data; name=\"pwd\"\r\n\r\n*\r\n--x--",
            ),
            ("--auth: write USER:PASSWORD", "--auth: write USER:PASSWORD"),
            ("cannot read the key: it is gone", "cannot read the key: it is gone"),
            ("max_tokens=5&monkey=7", "max_tokens=5&monkey=7"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_has_places_in_order_at_characters(text in r#"[a-z=:@%&"'\\ \n{}\[\]<>/é;token3D]{0,60}"#) {
            let mut end = 0;
            for place in secret_places(&text, &|name| name.ends_with('n')) {
                prop_assert!(place.start >= end && !place.is_empty());
                prop_assert!(text.get(place.clone()).is_some());
                end = place.end;
            }
        }

        #[test]
        fn a_value_is_found_in_whatever_surrounds_it(before in "[a-z ,.]{0,9}", after in "[a-z ,.]{0,9}", marker in "M[0-9]{4}") {
            for text in [
                format!("{before}?{before}&token={marker}&{after}"),
                format!("{before}{{\"password\":\"{marker}\"}}{after}"),
                format!("{before}\nX-Api-Key: {marker}\n{after}"),
                format!("{before} http://u:{marker}@host/{after}"),
            ] {
                prop_assert!(!shown(&text).contains(&marker), "{text}");
            }
        }
    }
}
