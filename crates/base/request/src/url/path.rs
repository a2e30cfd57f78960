//! Path and query as a request line has them.

use weir_base::percent::percent_encode_byte;

/// Treatment of the segments `.` and `..` of a path.
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
                EncodedPart::Path.push_encoded(segment, out);
            }
        }
    }
}

/// Appends `?` and a query.
pub(super) fn push_query(query: &[u8], out: &mut String) {
    out.push('?');
    EncodedPart::Query.push_encoded(query, out);
}

/// Part of a URL whose bytes are sent; the two differ in what browsers encode (WHATWG URL, "percent-encode sets").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodedPart {
    /// Path.
    Path,
    /// Query.
    Query,
}

impl EncodedPart {
    fn is_encoded(self, byte: u8) -> bool {
        match byte {
            b'"' | b'<' | b'>' | b'#' => true,
            b'^' | b'`' | b'{' | b'}' => self == Self::Path,
            b'\'' => self == Self::Query,
            _ => !byte.is_ascii_graphic(),
        }
    }

    /// Appends text, percent-encoded where browsers do; escapes stay as they are.
    pub fn push_encoded(self, text: &[u8], out: &mut String) {
        out.reserve(text.len());
        for &byte in text {
            if self.is_encoded(byte) {
                out.push_str(percent_encode_byte(byte));
            } else {
                // ASCII, since all else is encoded.
                out.push(char::from(byte));
            }
        }
    }
}
