//! Places of secrets in markup: elements of XML, tags of HTML, parts of a multipart body.

use std::ops::Range;

use crate::secret_values::{MAX_NAME_BYTES, quoted_value, skip_white};

/// Longest tag that is examined, in bytes.
const MAX_TAG_BYTES: usize = 1024;
/// Deepest element whose text is that of a secret.
const MAX_DEPTH: usize = 4;
const CDATA: &[u8] = b"<![CDATA[";

/// Text of an element that ends its first tag here: `<password>S<`, `<a:Password b="c"><![CDATA[S]]>`,
/// `<password><value>S<`, `<key>password</key><string>S<`.
pub(super) fn after_tag(text: &str, sign: usize, is_secret: &dyn Fn(&str) -> bool) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let name = tag_name(text, sign)?;
    if matches!(name, "key" | "name") {
        let (named, rest) = text.get(sign + 1..)?.split_once('<')?;
        let next = skip_white(bytes, sign + 2 + named.len() + rest.find('>')? + 1);
        if is_secret(named) && rest.starts_with('/') && is_open(bytes, next) {
            return element_text(bytes, next);
        }
    }
    let local = name.rsplit(':').next().unwrap_or(name);
    // `--token <TOKEN>` of a help text has no closing tag.
    let is_placeholder = name.bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-'));
    let is_element = !is_placeholder || text.get(sign..).is_some_and(|rest| rest.contains(&format!("</{name}")));
    if is_element && (is_secret(name) || is_secret(local)) { element_text(bytes, sign + 1) } else { None }
}

/// Name of the opening tag that ends here.
fn tag_name(text: &str, sign: usize) -> Option<&str> {
    let from = sign.saturating_sub(MAX_TAG_BYTES);
    let before = &text.as_bytes()[from..sign];
    let open = before.iter().rposition(|byte| matches!(byte, b'<' | b'>')).filter(|at| before[*at] == b'<')?;
    let tag = text.get(from + open + 1..sign)?;
    let name = tag.split([' ', '\t', '\r', '\n']).next()?;
    let is_name = name.len() <= MAX_NAME_BYTES && !name.starts_with(['/', '!', '?']) && !tag.ends_with('/');
    (is_name && !name.is_empty()).then_some(name)
}

/// Whether a child begins here.
fn is_open(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&b'<') && bytes.get(at + 1).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
}

/// Text that begins here, or that of the first child.
fn element_text(bytes: &[u8], mut start: usize) -> Option<Range<usize>> {
    for _ in 0..MAX_DEPTH {
        let first = skip_white(bytes, start);
        let rest = bytes.get(first..)?;
        if rest.starts_with(CDATA) {
            let start = first + CDATA.len();
            let length = bytes[start..].windows(3).position(|part| part == b"]]>");
            return Some(start..length.map_or(bytes.len(), |length| start + length));
        }
        if !is_open(bytes, first) {
            break;
        }
        start = first + rest.iter().position(|byte| *byte == b'>')? + 1;
    }
    Some(start..bytes[start..].iter().position(|byte| *byte == b'<').map_or(bytes.len(), |length| start + length))
}

/// Name that an attribute or a parameter gives, from `start` on: `"password"`, `password` and `UTF-8''password` after a
/// blank, as a form's fields have it.
pub(super) fn announced_name(text: &str, attribute: usize, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if let Some(quoted) = quoted_value(bytes, start) {
        return Some(quoted);
    }
    let before = attribute.checked_sub(1).map(|before| bytes[before])?;
    if !before.is_ascii_whitespace() && before != b';' {
        return None;
    }
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b';' | b'>');
    let end = start + bytes[start..].iter().take(MAX_NAME_BYTES).position(is_end)?;
    let charset = bytes[start..end].iter().rposition(|byte| *byte == b'\'');
    Some(charset.map_or(start, |at| start + at + 1)..end)
}

/// Value of the field that a name has announced: of `value="..."` or `content="..."` of the same tag, or the part of a
/// form.
pub(super) fn announced_value(text: &str, from: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let rest = &bytes[from..];
    if let Some(tag) = rest.iter().position(|byte| matches!(byte, b'>' | b'\n')).filter(|end| rest[*end] == b'>') {
        let after = |name: &[u8]| {
            let found = rest[..tag].windows(name.len()).position(|part| part.eq_ignore_ascii_case(name));
            found.map(|at| from + at + name.len())
        };
        let start = after(b"value=").or_else(|| after(b"content="))?;
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'>';
        let bare = || start..bytes[start..].iter().position(is_end).map_or(bytes.len(), |length| start + length);
        return Some(quoted_value(bytes, start).unwrap_or_else(bare));
    }
    let head = rest.windows(2).take(MAX_NAME_BYTES * 4).position(|part| part == b"\n\n");
    let head = head
        .map(|at| at + 2)
        .or_else(|| rest.windows(4).take(MAX_NAME_BYTES * 4).position(|part| part == b"\r\n\r\n").map(|at| at + 4))?;
    let start = from + head;
    let end = bytes[start..].windows(3).position(|part| part == b"\n--").map_or(bytes.len(), |length| start + length);
    Some(start..if end > start && bytes[end - 1] == b'\r' { end - 1 } else { end })
}
