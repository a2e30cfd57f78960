//! Path and query as a request line has them.

/// What happens with the segments `.` and `..` of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DotSegments {
    /// Removed, each `..` with the segment before it (RFC 3986, section 5.2.4).
    #[default]
    Remove,
    /// Sent as they are, as curl does with `--path-as-is`.
    Keep,
}

/// Appends a path, beginning with `/` also if `path` does not.
pub(super) fn push_path(path: &[u8], dot_segments: DotSegments, out: &mut String) {
    let start = out.len();
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let mut segments = path.split(|b| *b == b'/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match (dot_segments, segment) {
            (DotSegments::Remove, b"." | b"..") => {
                if segment == b".." {
                    let parent = out[start..].rfind('/').unwrap_or(0);
                    out.truncate(start + parent);
                }
                if is_last {
                    out.push('/');
                }
            }
            _ => {
                out.push('/');
                push_encoded(segment, "%20", out);
            }
        }
    }
}

/// Appends `?` and a query.
pub(super) fn push_query(query: &[u8], out: &mut String) {
    out.push('?');
    push_encoded(query, "+", out);
}

/// Appends text, percent-encoded where a request line does not allow a byte; escapes stay as they are. curl writes
/// spaces of a query as `+`.
fn push_encoded(text: &[u8], space: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(text.len());
    for &byte in text {
        match byte {
            b' ' => out.push_str(space),
            b'!'..=b'~' => out.push(char::from(byte)),
            _ => {
                out.push('%');
                out.push(char::from(DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
}
