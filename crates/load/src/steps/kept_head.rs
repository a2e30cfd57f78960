//! Heads of responses as captures and checks see them.

/// Maximum number of headers that a step looks at.
const MAX_HEADERS: usize = 256;

/// Head of a response, parsed.
#[derive(Debug)]
pub(super) struct KeptHead<'h> {
    /// Version of HTTP, as `1.1`.
    pub(super) version: &'static str,
    pub(super) status: u16,
    fields: [(&'h str, &'h [u8]); MAX_HEADERS],
    count: usize,
}

impl<'h> KeptHead<'h> {
    /// Parses a head that a lenient client has accepted before; what cannot be parsed again has no headers.
    pub(super) fn parse(head: &'h [u8]) -> Self {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Response::new(&mut headers);
        let mut config = httparse::ParserConfig::default();
        config
            .allow_obsolete_multiline_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .allow_multiple_spaces_in_response_status_delimiters(true);
        let _ = config.parse_response(&mut parsed, head);
        let (mut fields, mut count) = ([("", &b""[..]); MAX_HEADERS], 0);
        for (field, header) in fields.iter_mut().zip(parsed.headers.iter()) {
            *field = (header.name, header.value);
            count += 1;
        }
        let version = if parsed.version == Some(0) { "1.0" } else { "1.1" };
        Self { version, status: parsed.code.unwrap_or(0), fields, count }
    }

    /// Names and values of the headers, in order.
    pub(super) fn fields(&self) -> &[(&'h str, &'h [u8])] {
        self.fields.get(..self.count).unwrap_or_default()
    }

    /// Value of `Content-Encoding`.
    pub(super) fn content_encoding(&self) -> Option<&'h [u8]> {
        let mut fields = self.fields().iter();
        fields.find(|(name, _)| name.eq_ignore_ascii_case("content-encoding")).map(|(_, value)| *value)
    }
}
