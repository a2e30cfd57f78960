//! Targets of requests that URLs do not have, and that callers send.

use super::request_head::{HeadError, HeadFields, HeadLimits, ParsedHead};
use weir_base::percent::percent_encode_byte;

impl ParsedHead {
    /// Parses the head at the start of `bytes`; returns it and its length, or None if it is incomplete.
    ///
    /// # Errors
    /// [`HeadError`].
    pub fn parse(
        bytes: &[u8],
        limits: HeadLimits,
        fields: &mut HeadFields,
    ) -> Result<Option<(Self, usize)>, HeadError> {
        let parsed = Self::parse_bytes(bytes, limits, fields);
        if matches!(parsed, Err(HeadError::Malformed))
            && let Some(escaped) = with_escaped_target(bytes)
        {
            fields.headers.clear();
            fields.passed.clear();
            let parsed = Self::parse_bytes(&escaped, limits, fields)?;
            return Ok(parsed.map(|(head, length)| (head, length - (escaped.len() - bytes.len()))));
        }
        parsed
    }
}

/// The head with escapes in its target for characters that [`http::Uri`] does not take, and that callers send and other servers
/// take: `"`, `<`, `>`, `` ` `` and all that is not ASCII. What is decided by the target and what is passed on is then one
/// text. None if there is nothing to escape.
fn with_escaped_target(bytes: &[u8]) -> Option<Vec<u8>> {
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next()?;
    let start = line.iter().position(|byte| *byte == b' ')? + 1;
    let length = line[start..].iter().position(|byte| *byte == b' ')?;
    let target = &line[start..start + length];
    let is_end = |byte: &u8| matches!(byte, b'/' | b'?');
    let path = match target.windows(3).position(|part| part == b"://") {
        _ if target.starts_with(b"/") => 0,
        Some(scheme) => scheme + 3 + target[scheme + 3..].iter().position(is_end)?,
        None => return None,
    };
    let is_escaped = |byte: &u8| !byte.is_ascii() || b"\"<>`".contains(byte);
    if !target[path..].iter().any(is_escaped) {
        return None;
    }
    let mut head = bytes[..start + path].to_vec();
    for byte in &target[path..] {
        if is_escaped(byte) { head.extend(percent_encode_byte(*byte).bytes()) } else { head.push(*byte) }
    }
    head.extend(&bytes[start + length..]);
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(head: &[u8]) -> Result<Option<(ParsedHead, usize)>, HeadError> {
        ParsedHead::parse(head, HeadLimits { bytes: 8192, fields: 100 }, &mut HeadFields::default())
    }

    #[test]
    fn a_target_is_taken_as_other_servers_take_it_and_escaped() {
        for (target, expected) in [
            (&b"/a\"<>`{}|^\\b?\"<>`{}|^\\'"[..], "/a%22%3C%3E%60{}|^\\b?%22%3C%3E%60{}|^\\'"),
            (b"/?where={\"a\":1}", "/?where={%22a%22:1}"),
            (b"/{\"a\":1}", "/{\"a\":1}"),
            (b"/caf\xe9", "/caf%E9"),
            (b"/\xff?\xc3\xa9", "/%FF?%C3%A9"),
            (b"http://h/<?>", "http://h/%3C?%3E"),
        ] {
            let head = [b"GET ", target, b" HTTP/1.1\r\nA: 1\r\n\r\nrest"].concat();
            let (parsed, length) = parse(&head).unwrap().unwrap();
            assert_eq!((parsed.request.uri().to_string().as_str(), length), (expected, head.len() - 4));
            assert_eq!(parsed.request.headers().len(), 1);
            for end in 0..length {
                let part = parse(&head[..end]);
                assert!(matches!(part, Ok(None)), "{end} {part:?}");
            }
        }
        for target in ["/a b", "/a\tb", "/a\u{7f}", "h<", "http://h<", "http://h<o>/", "<", "*<", "/<\0"] {
            let head = format!("GET {target} HTTP/1.1\r\n\r\n");
            assert_eq!(parse(head.as_bytes()).unwrap_err(), HeadError::Malformed, "{target:?}");
        }
        let twice = "GET /<> HTTP/1.1\r\nA: 1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(parse(twice.as_bytes()).unwrap_err(), HeadError::Malformed);
    }
}
